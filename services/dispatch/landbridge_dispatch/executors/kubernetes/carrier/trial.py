"""Tries a store as work uses it: writes and reads back, or reads what is there, and measures how fast that goes.

What it found is the container's termination message: its word, the moment, and bits per second; else what is wrong.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from .__main__ import keys_of
from .store import Place, Store, StoreError

TASK = "LANDBRIDGE_TRIAL"
LISTED_MAX = 100


def tried(store: Store, task: dict[str, Any]) -> float:
    """Return the measured bits per second; 0: nothing there is large enough to tell. Raises StoreError."""
    access, size = task["access"], int(task["bytes"])
    if access == "read-only":
        return _read(store, size)
    key, body = f".landbridge-probe-{task['word']}", os.urandom(size)
    began = time.monotonic()
    store.write(key, body)
    took_s = time.monotonic() - began
    try:
        if access == "read-write":
            began = time.monotonic()
            if store.read(key, size) != body:
                raise StoreError(0, "what is read is not what was written")
            took_s = time.monotonic() - began
    finally:
        store.delete(key)
    return size * 8 / max(took_s, 1e-6)


def _read(store: Store, size: int) -> float:
    """Read the largest of the first objects, as much of it as is wanted."""
    largest = max(store.list("", at_most=LISTED_MAX), key=lambda item: item.size, default=None)
    if largest is None or not largest.size:
        return 0.0
    began = time.monotonic()
    read = len(store.read(largest.key, size))
    took_s = time.monotonic() - began
    return read * 8 / max(took_s, 1e-6) if read >= size // 16 else 0.0


def main() -> None:
    """Try it once."""
    task = json.loads(os.environ[TASK])
    message = Path(task["message"])
    try:
        speed = tried(Store(Place(**task["place"]), keys_of(dict(os.environ), "STORE")), task)
    except (StoreError, OSError) as error:
        message.write_text(f"{error}\n", encoding="utf-8")
        sys.exit(1)
    message.write_text(f"{task['word']} {time.time():.0f} {speed:.0f}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
