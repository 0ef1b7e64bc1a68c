"""The machine's clocks as the dispatcher uses them: the boot clock decides, the wall clock is shown."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from landbridge.domain.ownership.leases import ClockReading

BEST_ROUND_TRIPS = 8
_DRILL = os.environ.get("LANDBRIDGE_TEST_CLOCK", "")


def boot_ms() -> int:
    """Return milliseconds since boot, suspend included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def wall() -> datetime:
    """Return this machine's idea of the time in UTC."""
    return datetime.now(UTC) + timedelta(milliseconds=_drilled_ms())


def reading() -> ClockReading:
    """Read both clocks together."""
    return ClockReading(boot_ms(), time.time_ns() // 1_000_000 + _drilled_ms())


def _drilled_ms() -> int:
    """Return how wrong a drill wants the wall clock to be: what the file named by LANDBRIDGE_TEST_CLOCK says now."""
    if not _DRILL:
        return 0
    try:
        return int(json.loads(Path(_DRILL).read_bytes())["wallOffsetMs"])
    except (OSError, ValueError, KeyError):
        return 0


class CentreClock:
    """How far the centre's wall clock is ahead of ours, as measured in lease exchanges.

    The exchange with the shortest round trip of the last few tells best; half of that trip bounds the error.
    """

    def __init__(self) -> None:
        self._measured: list[tuple[timedelta, timedelta]] = []

    def note(self, sent: datetime, received: datetime, theirs: datetime) -> None:
        """Take one exchange into account."""
        trip = received - sent
        self._measured = [*self._measured[1 - BEST_ROUND_TRIPS :], (trip, theirs - (sent + trip / 2))]

    def forget(self) -> None:
        """Measure anew: our clock has jumped, and what was measured before says nothing any more."""
        self._measured = []

    @property
    def offset(self) -> timedelta | None:
        """Return what to add to our clock to get the centre's; None before the first exchange."""
        return min(self._measured)[1] if self._measured else None

    @property
    def uncertainty(self) -> timedelta:
        """Return the most by which `offset` may be wrong."""
        return min(self._measured)[0] / 2 if self._measured else timedelta.max

    def now(self) -> datetime:
        """Return the time on the centre's clock, as well as we know it."""
        return wall() + (self.offset or timedelta())
