"""Which ports of this machine are spoken for: chosen by a living process of this user, bound or not yet.

Between choosing a port and a server's binding it lie seconds. Two instances started beside each other would sometimes
choose the same, and the later server would find it taken. So who chooses a port holds a lock for it until it ends.
The locks are POSIX record locks on one file, a byte for each port: they end with the process that took them, whatever
ends it, and a forked service does not inherit them.
"""

import contextlib
import fcntl
import os
import tempfile
from functools import cache
from pathlib import Path

_mine: set[int] = set()


def claim(port: int) -> bool:
    """Speak for a port until this process ends; False if another process of this user does.

    Where the file of locks cannot be had, nobody can be asked, and every port is free to claim.
    """
    if port in _mine:
        return True
    file = _locks()
    if file is not None:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
    _mine.add(port)
    return True


def give_back(port: int) -> None:
    """Speak for a port no longer."""
    file = _locks()
    if port in _mine and file is not None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, port)
    _mine.discard(port)


def claimed(port: int) -> bool:
    """Tell whether this process speaks for a port."""
    return port in _mine


@cache
def _locks() -> int | None:
    """Open the file once; it stays open, since closing it would give all locks back."""
    path = Path(tempfile.gettempdir()) / f"landbridge-ports-{os.getuid()}"
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    return None
