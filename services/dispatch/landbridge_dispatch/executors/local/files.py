"""Small durable files: whole or absent, never half-written. Standard library only, for launcher and guardians."""

import json
import os
from pathlib import Path
from typing import Any

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600


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
        os.write(fd, body)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)
    temporary.rename(path)
    if sync:
        sync_directory(path.parent)


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
    """Append one line in a single write, so that writers never mix within it; with `sync` it is then on disk."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)
    try:
        os.write(fd, line.encode() + b"\n")
        if sync:
            os.fdatasync(fd)
    finally:
        os.close(fd)
