"""Small durable files: whole or absent, never half-written. Standard library only, for launcher and guardians."""

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors that end when there is room again: of a full disk, a quota, a limit on files."""


@contextlib.contextmanager
def room_lacking() -> Iterator[None]:
    """Go on behind a write for which there is no room."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise


def sync_directory(path: Path) -> None:
    """Make entries created or renamed in `path` survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_bytes(path: Path, body: bytes, *, sync: bool = True) -> None:
    """Replace `path` by `body` in one step; with `sync` both content and name are on disk when this returns."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    try:
        _write_all(fd, body)
        if sync:
            os.fsync(fd)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    temporary.rename(path)
    if sync:
        sync_directory(path.parent)


def _write_all(fd: int, body: bytes) -> None:
    """Write everything: on a disk that is nearly full the kernel writes a part, and tells only when asked again."""
    while body:
        body = body[os.write(fd, body) :]


def write_json(path: Path, value: dict[str, Any], *, sync: bool = True) -> None:
    """`write_bytes` of compact JSON."""
    write_bytes(path, json.dumps(value, separators=(",", ":")).encode(), sync=sync)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in `path`, None where there is no such file. Raises ValueError for anything but an object."""
    try:
        body = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected a JSON object, found {type(value).__name__}")
    return value


def claim_once(path: Path, owner: str) -> bool:
    """Write `owner` (without a slash, short) under `path` unless somebody did; False means that another was first.

    A link whose target is the content: created exclusively and whole, in one cheap step.
    """
    try:
        path.symlink_to(owner)
    except FileExistsError:
        return False
    return True


def owner_of(path: Path) -> str:
    """Return what `claim_once` wrote; empty where nobody did."""
    try:
        return str(path.readlink())
    except OSError:
        return ""


def append_line(path: Path, line: str, *, sync: bool = False) -> None:
    """Append one line in a single write, so that writers never mix within it; with `sync` it is then on disk.

    Raises OSError, and then nothing of the line stays.
    """
    body = line.encode() + b"\n"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)
    try:
        written = os.write(fd, body)
        if written < len(body):
            os.ftruncate(fd, os.fstat(fd).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        if sync:
            os.fdatasync(fd)
    finally:
        os.close(fd)
