"""When an environment's recurring maintenance windows are open."""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr

from landbridge.domain.contract import Window
from landbridge.domain.units import parse_duration

HORIZON = timedelta(days=62)
# Rules without a start are counted from here; only rules with an INTERVAL depend on it.
EPOCH = date(2024, 1, 1)


class Opening(NamedTuple):
    """One occurrence of a window, in UTC; `end` does not belong to it."""

    start: datetime
    end: datetime


def openings(windows: tuple[Window, ...], now: datetime) -> tuple[Opening, ...]:
    """Return the occurrences that are open at `now` or open within two months, in order."""
    return tuple(opening for opening in _expanded(windows, now.astimezone(UTC).date()) if opening.end > now)


def next_opening(windows: tuple[Window, ...], now: datetime) -> Opening | None:
    """Return the first of them."""
    return next((opening for opening in _expanded(windows, now.astimezone(UTC).date()) if opening.end > now), None)


@lru_cache(maxsize=4096)
def _expanded(windows: tuple[Window, ...], day: date) -> tuple[Opening, ...]:
    """Expand once a day: walking a rule from its start costs milliseconds."""
    found = [opening for window in windows for opening in _occurrences(window, day)]
    return tuple(sorted(found))


def _occurrences(window: Window, day: date) -> list[Opening]:
    zone = ZoneInfo(window.time_zone or "UTC")
    length = timedelta(milliseconds=parse_duration(window.duration))
    anchor = date.fromisoformat(window.start) if window.start else EPOCH
    rule = rrulestr(window.rrule, dtstart=datetime(anchor.year, anchor.month, anchor.day))  # noqa: DTZ001 local time
    # A day more on both sides, because the rule speaks local time.
    first = datetime(day.year, day.month, day.day) - length - timedelta(days=1)  # noqa: DTZ001
    starts = rule.between(first, first + length + HORIZON, inc=True)
    utc = [start.replace(tzinfo=zone).astimezone(UTC) for start in starts]
    return [Opening(start, start + length) for start in utc]
