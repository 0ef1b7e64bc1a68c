"""Hints from guardians that a slot has changed: names of slots, one a line, through a named pipe.

A hint may be lost or repeated: it says where to look, never what to believe.
"""

import asyncio
import contextlib
import os
from pathlib import Path

from landbridge_dispatch.executors.local import files, slots


class Changes:
    """The reading end, in the dispatcher's event loop."""

    def __init__(self, home: Path) -> None:
        self._path = home / slots.CHANGES_FIFO
        self._fd = -1
        self._rest = b""
        self._names: set[str] = set()
        self._arrived = asyncio.Event()

    def open(self) -> None:
        """Begin to listen."""
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self._path, files.FILE_MODE)
        # For writing too, so that the pipe never ends when the last guardian closes it.
        self._fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def close(self) -> None:
        """Stop listening; guardians then write to nobody."""
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def note(self, name: str) -> None:
        """Add a hint of our own."""
        self._names.add(name)
        self._arrived.set()

    async def take(self, timeout_s: float) -> set[str]:
        """Return the names hinted at since the last call; waits for one up to `timeout_s`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._arrived.wait()
        self._arrived.clear()
        names, self._names = self._names, set()
        return names

    def _read(self) -> None:
        try:
            chunk = os.read(self._fd, 65_536)
        except BlockingIOError:
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._names.update(line.decode("ascii", "replace") for line in lines if line.startswith(b"op-"))
        self._arrived.set()
