"""The log of a workload: what its processes write to stdout and stderr, in the order of writing, up to a limit.

Beyond the limit the newest lines count most: the beginning stays, the middle is dropped, and the last part is kept in
memory and written at the end. Writers are always read, so that a full log never blocks a workload.
"""

import os
from collections import deque
from pathlib import Path

from landbridge_dispatch.executors.local.files import FULL

LOG_FILE = "output.log"
_CHUNK_BYTES = 65_536
_TAIL_BYTES = 65_536


class OutputLog:
    """Copies a pipe into the slot's log. `write_fd` is for the workload, `read_fd` for poll."""

    def __init__(self, slot: Path, limit_bytes: int) -> None:
        self.read_fd, self.write_fd = os.pipe()
        os.set_blocking(self.read_fd, False)
        self._file = os.open(slot / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._room = max(0, limit_bytes - _TAIL_BYTES)
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._dropped_bytes = 0

    def close_writer(self) -> None:
        """Forget the write end once the workload holds its copies."""
        os.close(self.write_fd)

    def pump(self) -> bool:
        """Copy what is there; False at the end of the pipe."""
        while True:
            try:
                chunk = os.read(self.read_fd, _CHUNK_BYTES)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._keep(chunk)

    def finish(self) -> None:
        """Copy the rest, then what was kept of the end."""
        self.pump()
        if self._dropped_bytes:
            self._write(f"\n[landbridge] log limit reached; {self._dropped_bytes} bytes left out here\n".encode())
        self._write(b"".join(self._tail))
        os.close(self._file)
        os.close(self.read_fd)

    def _keep(self, chunk: bytes) -> None:
        head, rest = chunk[: self._room], chunk[self._room :]
        self._room -= len(head)
        self._write(head)
        if rest:
            self._tail.append(rest)
            self._tail_bytes += len(rest)
        while self._tail and self._tail_bytes - len(self._tail[0]) >= _TAIL_BYTES:
            dropped = self._tail.popleft()
            self._tail_bytes -= len(dropped)
            self._dropped_bytes += len(dropped)

    def _write(self, body: bytes) -> None:
        while body:
            try:
                body = body[os.write(self._file, body) :]
            except OSError as failure:
                if failure.errno not in FULL:
                    raise
                # A full disk costs log lines, never the workload.
                self._dropped_bytes += len(body)
                return
