"""Copying outputs from an environment to here, piece by piece, checked against the digest of the attempt's report."""

import hashlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from landbridge.cli import output
from landbridge.cli.exits import CliError

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient
    from landbridge.client.models import Output


async def fetch_all(client: "HttpClient", operation: str, found: "Sequence[Output]", target: Path) -> None:
    """Copy every existing output below `target`, each under its name. CliError when a digest does not match."""
    operation = await client.resolve(operation)
    files = await client.output_files(operation)
    for item in found:
        if not item.exists:
            output.note(f"output {item.name}: does not exist, nothing to fetch")
            continue
        paths = files.get(item.name, [])
        place = target / item.name
        for path in paths:
            await _fetch_file(client, operation, f"{item.name}/{path}" if path else item.name, _below(place, path))
        _check(item, place)
        count = len(paths)
        print(f"{place}: {count} file{'' if count == 1 else 's'}, {output.size(item.bytes)}, digest matches")


async def _fetch_file(client: "HttpClient", operation: str, name: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.part")
    with scratch.open("wb") as file:
        async for piece in client.output_bytes(operation, name):
            file.write(piece)
    scratch.replace(path)


def _below(place: Path, path: str) -> Path:
    """Return where a file goes. The names come from an environment: none may lead outside."""
    parts = PurePosixPath(path).parts
    if ".." in parts or path.startswith("/"):
        raise CliError(f"output file {path!r}: expected a path below the output; it is not fetched")
    return place.joinpath(*parts)


def _check(item: "Output", place: Path) -> None:
    found = digest_of(place)
    if item.sha256 and found != item.sha256:
        raise CliError(
            f"output {item.name}: expected digest {item.sha256[:16]}…, found {found[:16]}…; it was changed after the "
            "attempt ended, or the copy is damaged: fetch it again"
        )


def digest_of(place: Path) -> str:
    """Return the digest as environments make it: of a file, or of `<sha256>  <path>` lines in the order of paths."""
    if place.is_file():
        return _sha256(place)
    listing = hashlib.sha256()
    for path in sorted(item for item in place.rglob("*") if item.is_file()):
        listing.update(f"{_sha256(path)}  {path.relative_to(place)}\n".encode(errors="surrogateescape"))
    return listing.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
