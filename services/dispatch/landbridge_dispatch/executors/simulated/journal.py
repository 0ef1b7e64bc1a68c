"""The simulated slots' memory: an append-only file that survives kill -9 of the dispatcher, though not a power cut.

Each line is a JSON array whose first item is the kind. Not synced: what is simulated dies with the machine anyway.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode_into
_decode = msgspec.json.Decoder(list[Any]).decode


class Journal:
    """One file; entries are collected and written together by `flush`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._buffer = bytearray()
        self._size = 0

    def read(self) -> Iterator[list[Any]]:
        """Yield what was written; the last line may be torn, and is then left out."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    return
                yield _decode(line)

    def rewrite(self, entries: Iterable[tuple[Any, ...]]) -> None:
        """Replace the file by these entries, and go on behind them."""
        self.close()
        temporary = self._path.with_suffix(".new")
        with temporary.open("wb") as file:
            for entry in entries:
                file.write(msgspec.json.encode(entry) + b"\n")
        temporary.rename(self._path)
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size = self._path.stat().st_size

    def add(self, entry: tuple[Any, ...]) -> None:
        """Collect an entry."""
        buffer = self._buffer
        _encode(entry, buffer, -1)
        buffer += b"\n"

    def flush(self) -> None:
        """Hand what was collected to the kernel, in one write."""
        if self._buffer:
            os.write(self._fd, self._buffer)
            self._size += len(self._buffer)
            self._buffer.clear()

    @property
    def size(self) -> int:
        """Return the file's size in bytes."""
        return self._size

    def close(self) -> None:
        if self._fd >= 0:
            self.flush()
            os.close(self._fd)
            self._fd = -1
