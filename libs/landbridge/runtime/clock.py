"""Time as a dependency: the wall clock for people, the boot clock for deadlines."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Deadlines and leases use `boottime` only; `wall` is for showing and for stamping events."""

    def wall(self) -> datetime:
        """Return the current UTC time."""

    def boottime(self) -> float:
        """Return seconds since some fixed moment; never set back, and counting while the machine sleeps."""


class SystemClock:
    """The machine's clocks. Where CLOCK_BOOTTIME is missing (macOS), the monotonic clock stands in."""

    def __init__(self) -> None:
        self._id = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def wall(self) -> datetime:
        return datetime.now(UTC)

    def boottime(self) -> float:
        return time.clock_gettime(self._id)


class ManualClock:
    """A clock for tests: both times move only by `advance` and `set_wall`."""

    def __init__(self, wall: datetime | None = None, boottime: float = 1000.0) -> None:
        self._wall = wall or datetime(2026, 1, 1, tzinfo=UTC)
        self._boottime = boottime

    def wall(self) -> datetime:
        return self._wall

    def boottime(self) -> float:
        return self._boottime

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass on both clocks."""
        self._wall += timedelta(seconds=seconds)
        self._boottime += seconds

    def set_wall(self, wall: datetime) -> None:
        """Jump the wall clock alone, as an operator or NTP would."""
        self._wall = wall
