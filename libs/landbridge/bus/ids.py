"""Event ids: UUIDv7, so that they sort by time, cannot be guessed, and never repeat within a process."""

import secrets
import threading
import time

_RANDOM_BITS = 62
_MASK = (1 << _RANDOM_BITS) - 1
_lock = threading.Lock()
_last = 0  # the last (milliseconds << 12 | counter)


def new_event_id() -> str:
    """Return a fresh UUIDv7 in canonical text; later calls in one process give strictly greater ids."""
    return new_event_ids(1)[0]


def new_event_ids(count: int) -> list[str]:
    """Return `count` fresh ids in ascending order, with one read of the clock and of the random source."""
    global _last  # noqa: PLW0603 - one monotonic counter per process is the point
    with _lock:
        first = max(_last + 1, (time.time_ns() // 1_000_000) << 12)
        _last = first + count - 1
    noise = secrets.token_bytes(8 * count)
    return [_text(first + i, int.from_bytes(noise[8 * i : 8 * i + 8], "big") & _MASK) for i in range(count)]


def _text(stamp: int, noise: int) -> str:
    """RFC 9562 layout: 48 bits of milliseconds, version 7, 12 bits counter, variant 2, 62 random bits."""
    value = (stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0x2 << 62 | noise
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
