"""Carbon intensity of an environment's power as its own source tells it: a time series in CSV, or an answer in JSON.

Grams of CO2 equivalent per kWh, always for a span of time: outside it nothing is known.
"""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from landbridge.domain import claims
from landbridge.domain.evidence import PROVEN, ClaimState
from landbridge.domain.tables import MOST_PROBLEMS, Problem, Row, read_table

# Lignite causes about 1,200; what is beyond this is another unit.
MOST_GRAMS: Final = 5_000.0
MOST_POINTS: Final = 100_000
# An answer that does not say until when it holds does so for this; a series' last point for as long as the one before.
HOLDS: Final = timedelta(hours=1)
# So far may a source's clock be ahead.
AHEAD: Final = timedelta(minutes=5)
_COLUMNS: Final = ("from", "until", "grams_per_kwh")


class Point(NamedTuple):
    """An intensity from a moment until just before another."""

    since: datetime
    until: datetime
    grams: float


class Series(NamedTuple):
    """Points in the order of time, none overlapping; what is wrong with the file, if anything is."""

    points: tuple[Point, ...]
    problems: tuple[Problem, ...] = ()


class Reading(NamedTuple):
    """The intensity that counts for an environment now, and where it comes from, with the time of the reading."""

    grams: float
    source: str


# -- CSV --------------------------------------------------------------------------------------------------------------


def read_series(data: bytes) -> Series:
    """Read a series: `from` and `grams_per_kwh`, `until` where a point does not last until the next one."""
    table = read_table(data, _COLUMNS, ("from", "grams_per_kwh"), most_rows=MOST_POINTS)
    problems, read = list(table.problems), []
    for row in table.rows:
        found = _point(row, problems, decimal_comma=table.decimal_comma)
        if found is not None:
            read.append((row.line, *found))
    points = _joined(sorted(read, key=lambda each: each[1]), problems)
    ordered = sorted(problems)
    return Series(tuple(points), tuple(ordered[:MOST_PROBLEMS]))


def point_at(points: Sequence[Point], now: datetime) -> Point | None:
    """Return the point that holds at a moment; None: none does."""
    place = bisect_right(points, now, key=lambda point: point.since) - 1
    return points[place] if place >= 0 and now < points[place].until else None


def _point(row: Row, problems: list[Problem], *, decimal_comma: bool) -> tuple[datetime, datetime | None, float] | None:
    moments: list[datetime | None] = []
    for column in ("from", "until"):
        text = row.cells.get(column, "")
        moment = _moment(text) if text else None
        if moment is None and (text or column == "from"):
            told = f'expected a time such as 2026-12-01T00:00Z, found "{text[:80]}"'
            problems.append(Problem(row.line, column, told, "with its offset from UTC; without one it is UTC"))
            return None
        moments.append(moment)
    since, until = moments
    assert since is not None
    text = row.cells["grams_per_kwh"]
    grams = _grams(text.replace(",", ".") if decimal_comma else text)
    if grams is None:
        told = f'expected grams per kWh from 0 to {MOST_GRAMS:g}, found "{text[:80]}"'
        problems.append(Problem(row.line, "grams_per_kwh", told, "leave out times that are not known"))
        return None
    if until is not None and until <= since:
        problems.append(Problem(row.line, "until", f"expected a time after {row.cells['from']}"))
        return None
    return since, until, grams


def _joined(read: Sequence[tuple[int, datetime, datetime | None, float]], problems: list[Problem]) -> list[Point]:
    """Give points without an end the beginning of the next one; tell of those that overlap."""
    points: list[Point] = []
    lasts = HOLDS
    for place, (line, since, until, grams) in enumerate(read):
        following = read[place + 1][1] if place + 1 < len(read) else None
        if following is not None and (following == since or (until is not None and until > following)):
            other = read[place + 1][0]
            problems.append(Problem(other, "from", f"line {line} states an intensity of the same time", "keep one"))
            continue
        end = until or following or since + lasts
        lasts = end - since
        points.append(Point(since, end, grams))
    return points


# -- JSON --------------------------------------------------------------------------------------------------------------


class _Answer(msgspec.Struct, rename="camel"):
    """`{"gramsPerKWh": 312.5, "at": "2026-12-01T00:00:00Z", "validUntil": "…", "source": "…"}`; others are not read."""

    at: datetime
    grams: float = msgspec.field(name="gramsPerKWh")
    valid_until: datetime | None = None
    source: str = ""


class Told(NamedTuple):
    """An answer of an HTTP source that holds: the point, and whom it names."""

    point: Point
    source: str = ""


def read_answer(body: bytes, now: datetime) -> Told | str:
    """Read an answer; return why it does not count if it does not."""
    try:
        found = msgspec.json.decode(body, type=_Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return f"expected JSON with gramsPerKWh and at: {error}"
    if not 0 <= found.grams <= MOST_GRAMS:
        return f"expected gramsPerKWh from 0 to {MOST_GRAMS:g}, found {found.grams:g}"
    since = _utc(found.at)
    until = _utc(found.valid_until) if found.valid_until is not None else since + HOLDS
    if since > now + AHEAD:
        return f"expected an intensity of now, found one of {since:%Y-%m-%d %H:%MZ}"
    if until <= now:
        return f"the intensity that it tells ended at {until:%Y-%m-%d %H:%MZ}"
    return Told(Point(since, until, found.grams), "".join(c for c in found.source[:100] if c.isprintable()))


# -- what counts -------------------------------------------------------------------------------------------------------


def reading_of(evidence: ClaimState | None, now: datetime) -> Reading | None:
    """Return the intensity that an environment's latest evidence tells; None if there is none, or it has expired."""
    if evidence is None or evidence.result != PROVEN or evidence.proven is None or evidence.expires <= now:
        return None
    piece = evidence.decisive
    told = f"; {piece.detail}" if piece.detail else ""
    return Reading(evidence.proven, f"{piece.subject or claims.CARBON}, read {piece.at:%Y-%m-%d %H:%MZ}{told}")


def _grams(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= MOST_GRAMS else None


def _moment(text: str) -> datetime | None:
    try:
        return _utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
