"""Files of an untrusted workload, opened without following its links: what it points at is not always its own."""

import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

FILES_MAX = 100_000
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_below(name: str) -> bool:
    """Tell whether a name from elsewhere stays below the directory that it is about."""
    parts = name.split("/")
    return bool(name) and "\x00" not in name and not any(part in ("", ".", "..") for part in parts)


def opened(root: str, name: str) -> tuple[BinaryIO, int]:
    """Open the regular file `name` below `root`, step by step, and return it with its size. Raises OSError."""
    if not is_below(name):
        raise OSError(0, f"the name {name[:100]!r} leads out of its directory")
    *parents, last = name.split("/")
    held = os.open(root, _DIRECTORY)
    try:
        for part in parents:
            below = os.open(part, _DIRECTORY, dir_fd=held)
            os.close(held)
            held = below
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=held)
    finally:
        os.close(held)
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        os.close(file)
        raise OSError(0, f"{name[:100]} is no regular file")
    return os.fdopen(file, "rb"), status.st_size


def regular(root: str) -> Iterator[str]:
    """Yield the names of all regular files below a directory, links left out. Raises OSError for too many."""
    count = 0
    for place, _, names in os.walk(root):
        for name in sorted(names):
            path = os.path.join(place, name)  # noqa: PTH118 - names may be any bytes that a workload chose
            if stat.S_ISREG(os.lstat(path).st_mode):
                count += 1
                if count > FILES_MAX:
                    raise OSError(0, f"more than {FILES_MAX} files")
                yield os.path.relpath(path, root)
