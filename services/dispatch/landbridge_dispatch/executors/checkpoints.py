"""Which sealed checkpoint an attempt goes on from.

The centre names the last one that it has heard of. An earlier attempt may have sealed later ones and could not say so,
because its environment was cut off and its work was placed again by time: where its place can be read, they are found.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError, Work
from landbridge_dispatch.specification import Checkpoints

MANIFEST: Final = "manifest.json"
_ATTEMPT: Final = re.compile(r"e(\d{1,18})-(\d{1,18})")
_SEALED: Final = "sealed-"

Age = tuple[int, int, int]
"""Generation, counter, and when it was sealed in nanoseconds: what is later is larger."""


class _File(msgspec.Struct, frozen=True):
    bytes: int = 0


class _Manifest(msgspec.Struct, frozen=True):
    files: dict[str, _File] = {}


_manifest_decoder = msgspec.json.Decoder(_Manifest)


def resumable(bindings: Bindings, work: Work) -> Path | None:
    """Return the directory of the latest complete checkpoint, None: start afresh.

    Raises RefusedError if the one that the centre names cannot be read here in full.
    """
    checkpoints = work.view.spec.checkpoints
    if checkpoints is None:
        if work.resume_from:
            raise RefusedError(RefusalCode.RESUME, "a checkpoint to resume from, but the operation declares none")
        return None
    known: dict[Path, Age] = {}
    if work.resume_from:
        known[_named(bindings, work.resume_from, checkpoints)] = _age(work.resume_from, 0)
    for manifest, age in _sealed(bindings, work, checkpoints):
        if _is_complete(manifest):
            known[manifest.parent] = age
    return max(known, key=lambda directory: known[directory], default=None)


def _named(bindings: Bindings, path: str, checkpoints: Checkpoints) -> Path:
    """Return the directory of the checkpoint that the centre names."""
    manifest = bindings.place(checkpoints.connection, path)
    try:
        complete = manifest.name == MANIFEST and _read_complete(manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise RefusedError(
            RefusalCode.RESUME,
            f"checkpoint {path} cannot be read through connection {checkpoints.connection} here",
        ) from error
    if not complete:
        raise RefusedError(RefusalCode.RESUME, f"checkpoint {path} is not complete here")
    return manifest.parent


def _sealed(bindings: Bindings, work: Work, checkpoints: Checkpoints) -> Iterator[tuple[Path, Age]]:
    """Yield what earlier attempts have sealed. What cannot be listed is not there."""
    own = "/".join(part.strip("/") for part in (checkpoints.path, work.operation) if part.strip("/"))
    current = work.epoch.generation, work.epoch.counter
    with contextlib.suppress(OSError, RefusedError):
        for attempt in bindings.place(checkpoints.connection, own).iterdir():
            epoch = _age(attempt.name, 0)[:2]
            if epoch == (0, 0) or epoch >= current:
                continue
            for sealed in attempt.glob(f"{_SEALED}*/{MANIFEST}"):
                # Workloads own these directories: a link that leads out of the connection is refused here.
                with contextlib.suppress(OSError, RefusedError):
                    path = f"{own}/{attempt.name}/{sealed.parent.name}/{MANIFEST}"
                    manifest = bindings.place(checkpoints.connection, path)
                    yield manifest, (*epoch, manifest.stat().st_mtime_ns)


def _age(path: str, sealed_ns: int) -> Age:
    """Return the age that a path tells; zeros where it names no attempt."""
    found = [match for part in path.split("/") if (match := _ATTEMPT.fullmatch(part))]
    return (int(found[-1][1]), int(found[-1][2]), sealed_ns) if found else (0, 0, sealed_ns)


def _is_complete(manifest: Path) -> bool:
    try:
        return _read_complete(manifest)
    except (OSError, msgspec.MsgspecError):
        return False


def _read_complete(manifest: Path) -> bool:
    listed = _manifest_decoder.decode(manifest.read_bytes()).files
    return all((manifest.parent / name).stat().st_size == file.bytes for name, file in listed.items())
