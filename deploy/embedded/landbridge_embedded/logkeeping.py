"""Keeps logs from filling the disk while everything runs: a large one is copied aside and emptied in place."""

import asyncio
import os
import shutil
from pathlib import Path

LOG_BYTES_MAX = 64 * 1024 * 1024
_EVERY_S = 60.0


async def keep_logs_small(directory: Path, *, limit_bytes: int = LOG_BYTES_MAX, every_s: float = _EVERY_S) -> None:
    """Look after the logs of a directory until cancelled; one older part of each is kept beside it."""
    while True:
        await asyncio.sleep(every_s)
        await asyncio.to_thread(shrink, directory, limit_bytes)


def shrink(directory: Path, limit_bytes: int) -> None:
    """Set aside what is too large. Writers go on in the emptied file: all of them append.

    Lines that arrive between copy and emptying are lost; a log is no record.
    """
    for path in directory.glob("*.log"):
        if path.stat().st_size <= limit_bytes:
            continue
        shutil.copyfile(path, path.with_suffix(".log.1"))
        path.with_suffix(".log.1").chmod(0o600)
        os.truncate(path, 0)
