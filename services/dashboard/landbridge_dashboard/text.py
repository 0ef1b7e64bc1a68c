"""Times, durations and numbers as people read them."""

from datetime import UTC, datetime
from typing import Any

TONES = {
    "accepted": "",
    "queued": "",
    "pending": "",
    "running": "run",
    "retrying": "warn",
    "completed": "good",
    "failed": "bad",
    "cancelled": "",
}


def moment(text: str | None) -> datetime | None:
    """Read an RFC 3339 time, or None for none."""
    if not text:
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def clock(text: str | None) -> str:
    """Return date and time of day in UTC, without the year: `30 Nov 10:21:05`."""
    found = moment(text)
    return found.astimezone(UTC).strftime("%d %b %H:%M:%S") if found else "—"


def seconds_between(start: str | None, end: str | None) -> float | None:
    """Return seconds from start to end, or None if either is not known."""
    first, last = moment(start), moment(end)
    return (last - first).total_seconds() if first and last else None


def duration(seconds: float | None) -> str:
    """Return a duration of two units at most: `850 ms`, `12.3 s`, `4 min 10 s`, `3 h 5 min`."""
    if seconds is None:
        return "—"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def size(count: float | None) -> str:
    """Return bytes in binary units."""
    if count is None:
        return "—"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def number(value: Any) -> str:
    """Return a number with three significant digits, without an exponent where it can be avoided."""
    if value is None:
        return "—"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(int(value))
