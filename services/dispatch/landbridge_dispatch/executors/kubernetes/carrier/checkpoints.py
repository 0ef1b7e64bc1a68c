"""Sealed checkpoints of an operation in a store: stored whole or not at all, found again, and brought back."""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from . import files
from .store import Store, StoreError

MANIFEST = "manifest.json"
MANIFEST_MAX = 8 << 20
SEALED = "sealed-"
_FOUND = re.compile(r"e(\d{1,18})-(\d{1,18})/(sealed-[^/]{1,200})/manifest\.json")
_LAST_FIGURE = re.compile(r"(\d{1,18})\D*\Z")


class UnreadableError(Exception):
    """The checkpoint that the work has to go on from cannot be read in full."""


@dataclass(frozen=True, order=True)
class _Found:
    """A sealed checkpoint: what is later is larger. `path` is below the store.

    Stores tell times to the second: within one, `number`, the last figure of the name, decides (10 is behind 9).
    """

    generation: int
    counter: int
    modified: str
    number: int
    path: str


def keep(store: Store, place: str, directory: Path) -> None:
    """Store one sealed checkpoint below `place`; its manifest goes last. Raises StoreError, OSError, ValueError."""
    file, size = files.opened(str(directory), MANIFEST)
    with file:
        told = file.read(min(size, MANIFEST_MAX) + 1)
    if len(told) > MANIFEST_MAX:
        raise ValueError(f"its manifest has more than {MANIFEST_MAX} bytes")
    for name in sorted(_files_of(told)):
        body, length = files.opened(str(directory), name)
        with body:
            store.put(f"{place}/{directory.name}/{name}", body, length)
    store.write(f"{place}/{directory.name}/{MANIFEST}", told)


def forget(store: Store, place: str, name: str) -> None:
    """Delete a stored checkpoint, its manifest first, so that it is never found in part. Raises StoreError."""
    store.delete(f"{place}/{name}/{MANIFEST}")
    for item in list(store.list(f"{place}/{name}/")):
        store.delete(item.key)


def bring(store: Store, root: Path, *, named: str, own: str, epoch: tuple[int, int]) -> str:
    """Bring the latest complete checkpoint below `root`, and return its path there; empty: there is none.

    `named`: the one that the centre knows of; an earlier attempt below `own` may have sealed later ones and could not
    say so, because its environment was cut off. Raises UnreadableError if `named` cannot be brought, StoreError.
    """
    later = sorted(_sealed(store, own, epoch, after=named), reverse=True)
    for found in later:
        try:
            return _bring_one(store, root, found.path)
        except (UnreadableError, StoreError, OSError, ValueError):
            continue
    if not named:
        return ""
    try:
        return _bring_one(store, root, named)
    except StoreError as error:
        if error.status not in (0, 404):
            raise
        raise UnreadableError(str(error)) from error
    except (OSError, ValueError) as error:
        raise UnreadableError(str(error)) from error


def _sealed(store: Store, own: str, epoch: tuple[int, int], *, after: str) -> Iterable[_Found]:
    """Yield what earlier attempts have sealed since the one that is known. What cannot be listed is not there."""
    if not own:
        return
    found = []
    try:
        for item in store.list(f"{own}/"):
            match = _FOUND.fullmatch(item.key.removeprefix(f"{own}/"))
            if match and (int(match[1]), int(match[2])) < epoch:
                path = item.key.removesuffix(f"/{MANIFEST}")
                found.append(_Found(int(match[1]), int(match[2]), item.modified, _number(path), path))
    except StoreError:
        return
    known = next((each for each in found if each.path == after), None)
    yield from (each for each in found if known is None or each > known)


def _number(path: str) -> int:
    figures = _LAST_FIGURE.search(path.rpartition("/")[2])
    return int(figures[1]) if figures else -1


def _bring_one(store: Store, root: Path, path: str) -> str:
    told = store.read(f"{path}/{MANIFEST}", MANIFEST_MAX + 1)
    target = root / path
    for name, described in _files_of(told).items():
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as body:
            _verified(store, f"{path}/{name}", body, described, name)
    target.mkdir(parents=True, exist_ok=True)
    part = target / f".{MANIFEST}"
    part.write_bytes(told)
    os.replace(part, target / MANIFEST)  # noqa: PTH105 - all of it is there, or no manifest
    return path


class _Digest:
    """Writes into a file and sums up what it writes."""

    def __init__(self, body: BinaryIO) -> None:
        self._body = body
        self.sum = hashlib.sha256()

    def write(self, piece: bytes) -> int:
        self.sum.update(piece)
        return self._body.write(piece)


def _verified(store: Store, key: str, body: BinaryIO, described: dict[str, Any], name: str) -> None:
    digest = _Digest(body)
    size = store.get(key, digest)
    if size != described.get("bytes", size):
        raise UnreadableError(f"{name}: {size} bytes, its manifest says {described['bytes']}")
    if described.get("sha256", digest.sum.hexdigest()) != digest.sum.hexdigest():
        raise UnreadableError(f"{name}: its bytes are not those that were sealed")


def _files_of(manifest: bytes) -> dict[str, dict[str, Any]]:
    """Return the files that a manifest names. Raises ValueError for one that cannot be used."""
    try:
        told = json.loads(manifest)
    except RecursionError:
        raise ValueError("its manifest is nested too deeply") from None
    listed = told.get("files", {}) if isinstance(told, dict) else None
    if not isinstance(listed, dict) or len(listed) > files.FILES_MAX:
        raise ValueError("its manifest has no list of files that can be used")
    for name, described in listed.items():
        if not files.is_below(name) or not isinstance(described, dict):
            raise ValueError(f"its manifest names {name[:100]!r}, which leads out of it")
    return listed
