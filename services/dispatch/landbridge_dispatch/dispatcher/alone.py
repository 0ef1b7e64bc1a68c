"""One dispatcher per directory."""

import fcntl
import os
from pathlib import Path

from landbridge_dispatch.executors.local import files

LOCK_FILE = "dispatcher.lock"


class AlreadyRunningError(Exception):
    """Another dispatcher works in this directory."""


def only_one(home: Path) -> int:
    """Take the directory's lock. Raises AlreadyRunningError."""
    fd = os.open(home / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.FILE_MODE)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise AlreadyRunningError(f"another dispatcher runs in {home}; stop it first") from None
    return fd
