"""What a guardian looks at from time to time: sealed checkpoints and resident memory. Standard library only."""

import contextlib
import os
import time
from pathlib import Path

from landbridge_dispatch.executors.local import evidence, procfs
from landbridge_dispatch.executors.local.course import MS
from landbridge_dispatch.executors.local.order import CheckpointPlace

CHECKPOINT_POLL_NS = 1000 * MS
MEMORY_POLL_NS = 250 * MS
PRIVATE = ".landbridge"
CHECKPOINT_REQUEST_FILE = "checkpoint-requested"


class CheckpointWatch:
    """Notices newly sealed checkpoints, and asks for one."""

    def __init__(self, place: CheckpointPlace | None, work: Path) -> None:
        self.manifest = ""
        self._place = place
        self._request = work / PRIVATE / CHECKPOINT_REQUEST_FILE
        self._sealed_ns = self._asked_ns = 0
        self._next_ns = 0

    @property
    def sealed_since_asked(self) -> bool:
        return 0 < self._asked_ns < self._sealed_ns

    @property
    def sealed_at(self) -> float:
        """When, in seconds since the epoch; 0 for never."""
        return self._sealed_ns / 1e9

    def ask(self) -> None:
        """Leave the file that the workload looks for."""
        self._asked_ns = time.time_ns()
        # The workload owns this directory: a link planted here, or in its place, must not be followed.
        with contextlib.suppress(OSError):
            below = os.open(self._request.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                os.close(os.open(self._request.name, flags, 0o644, dir_fd=below))
            finally:
                os.close(below)

    def look(self, now_ns: int, *, at_once: bool = False) -> bool:
        """Tell whether a newer checkpoint was found; looks at most once a second unless told to."""
        if self._place is None or (now_ns < self._next_ns and not at_once):
            return False
        self._next_ns = now_ns + CHECKPOINT_POLL_NS
        newest = evidence.newest_checkpoint(Path(self._place.directory))
        if newest is None or newest[1] <= self._sealed_ns:
            return False
        self._sealed_ns = newest[1]
        self.manifest = f"{self._place.path}/{newest[0]}/{evidence.MANIFEST_FILE}"
        return True

    def next_ns(self) -> int | None:
        return None if self._place is None else self._next_ns


class MemoryWatch:
    """Compares resident memory with its limit where no cgroup does."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._next_ns = 0

    def exceeded(self, now_ns: int) -> bool:
        if not self._limit_bytes or now_ns < self._next_ns:
            return False
        self._next_ns = now_ns + MEMORY_POLL_NS
        pids = procfs.subtree(os.getpid())
        # The exact count is slow: taken only once the rough one, which is never below it, is too high.
        return procfs.resident_bytes(pids) > self._limit_bytes and procfs.proportional_bytes(pids) > self._limit_bytes

    def next_ns(self) -> int | None:
        return self._next_ns if self._limit_bytes else None
