"""Rows of a price list: one price of one class, or of data that leaves, for a time."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final

from landbridge.domain.documents.nearest import did_you_mean
from landbridge.domain.tables import MOST_PROBLEMS, Problem, Row, read_table

REQUIRED: Final = ("class", "unit", "currency", "rate", "source")
COLUMNS: Final = ("environment", *REQUIRED, "valid_from", "valid_until", "note")
EGRESS: Final = "egress"
PREPAID: Final = "prepaid"
UNKNOWN: Final = "unknown"
_HOURS_A_MONTH: Final = 730
# How many of the contract's unit (an hour of a device or processor, a gigabyte) one of the list's is.
HOURLY: Final = {
    "hour": Decimal(1),
    "minute": Decimal(1) / 60,
    "second": Decimal(1) / 3600,
    "day": Decimal(24),
    "month": Decimal(_HOURS_A_MONTH),
}
DATA: Final = {"GB": Decimal(1), "GiB": Decimal(2**30) / 10**9, "TB": Decimal(1000), "TiB": Decimal(2**40) / 10**9}
_AT_ONCE: Final = timedelta(0)
_MOST_RATE: Final = Decimal(10) ** 9
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class PriceRow:
    """A price per hour of one device or processor, or per gigabyte; None: stated to be unknown, 0: paid in advance.

    It holds from `since` until just before `until`; None: always. `environment` empty: everywhere.
    """

    line: int
    environment: str
    capability_class: str
    currency: str
    price: Decimal | None
    since: datetime | None
    until: datetime | None
    source: str

    def holds(self, at: datetime) -> bool:
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)

    def overlaps(self, other: "PriceRow") -> bool:
        return not (
            (self.until is not None and other.since is not None and self.until <= other.since)
            or (other.until is not None and self.since is not None and other.until <= self.since)
        )


@dataclass(frozen=True, slots=True)
class PriceList:
    """A price list that was read; with problems, the rows are those that have none."""

    rows: tuple[PriceRow, ...]
    problems: tuple[Problem, ...]


def read_prices(data: bytes) -> PriceList:
    """Read a price list and check every row; everything that is wrong is told at once, the first hundred of it."""
    table = read_table(data, COLUMNS, REQUIRED)
    problems, rows = list(table.problems), []
    for row in table.rows:
        reading = _Reading(row, decimal_comma=table.decimal_comma)
        found = reading.read()
        if reading.problems:
            problems += reading.problems
        else:
            rows.append(found)
    problems += _contradictions(rows)
    ordered = sorted(problems, key=lambda problem: problem.line)
    if len(ordered) > MOST_PROBLEMS:
        rest = len(ordered) - MOST_PROBLEMS
        ordered = [*ordered[:MOST_PROBLEMS], Problem(0, "", f"and {rest} more problems")]
    return PriceList(tuple(rows), tuple(ordered))


class _Reading:
    """One row, cell by cell."""

    def __init__(self, row: Row, *, decimal_comma: bool) -> None:
        self._row = row
        self._decimal_comma = decimal_comma
        self.problems: list[Problem] = []

    def read(self) -> PriceRow:
        name = self._name("class", required=True)
        factor = self._factor(name)
        rate = self._rate()
        since, until = self._moment("valid_from"), self._moment("valid_until")
        if since is not None and until is not None and until <= since:
            self._wrong("valid_until", f"expected a moment after valid_from, found {self._row.cells['valid_until']}")
        if not self._row.cells["source"]:
            self._wrong(
                "source", "expected where the price comes from", "name the list, contract or offer, with its date"
            )
        return PriceRow(
            line=self._row.line,
            environment=self._name("environment", required=False),
            capability_class=name,
            currency=self._currency(),
            price=None if rate is None or factor is None else rate / factor,
            since=since,
            until=until,
            source=self._row.cells["source"],
        )

    def _wrong(self, column: str, message: str, suggestion: str = "") -> None:
        self.problems.append(Problem(self._row.line, column, message, suggestion))

    def _name(self, column: str, *, required: bool) -> str:
        value = self._row.cells.get(column, "")
        if not value and not required:
            return ""
        if not _NAME.fullmatch(value):
            told = f"a class of the contract, or {EGRESS} for data that leaves" if column == "class" else "its name"
            self._wrong(column, f'expected a name such as gpu-80gb, found "{value[:80]}"', told)
        return value

    def _factor(self, name: str) -> Decimal | None:
        unit, known = self._row.cells["unit"], DATA if name == EGRESS else HOURLY
        if unit in known:
            return known[unit]
        wanted = f"expected one of {', '.join(known)}"
        suggestion = did_you_mean(unit, known)
        if unit.lower().startswith(("node", "instance")):
            suggestion = "divide by the devices, or the processors, of a node, and write hour"
        self._wrong("unit", f'{wanted}, found "{unit[:80]}"', suggestion)
        return None

    def _currency(self) -> str:
        value = self._row.cells["currency"]
        if not re.fullmatch(r"[A-Z]{3}", value):
            upper = value.upper()
            known = {"€": "EUR", "$": "USD", "£": "GBP"}.get(value, upper if re.fullmatch(r"[A-Z]{3}", upper) else "")
            self._wrong(
                "currency",
                f'expected an ISO 4217 code such as EUR, found "{value[:80]}"',
                f"write {known}" if known else "",
            )
        return value

    def _rate(self) -> Decimal | None:
        value = self._row.cells["rate"]
        if value.lower() == PREPAID:
            return Decimal(0)
        if value.lower() == UNKNOWN:
            return None
        number = _number(value, decimal_comma=self._decimal_comma)
        if number is None:
            suggestion = f"a price that is not known is {UNKNOWN}" if value in ("", "-", "n/a", "N/A") else ""
            if re.fullmatch(r"[\d.,' ]+", value):
                suggestion = "write thousands without a sign between them, such as 1234.50"
            self._wrong("rate", f'expected a number, {PREPAID} or {UNKNOWN}, found "{value[:80]}"', suggestion)
        elif not number:
            self._wrong(
                "rate",
                "expected a price above 0",
                f"capacity that is paid for in advance is {PREPAID}, a price that is not known is {UNKNOWN}",
            )
        elif number > _MOST_RATE:
            self._wrong("rate", f"expected at most {_MOST_RATE:.0f}, found {value[:80]}")
        return number

    def _moment(self, column: str) -> datetime | None:
        value = self._row.cells.get(column, "")
        if not value:
            return None
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self._wrong(column, f'expected a date such as 2027-01-01, found "{value[:80]}"', "year-month-day")
            return None
        try:
            # A date alone is the first moment of that day, or, as an end, the last: the next day's first.
            ends = timedelta(days=1) if column == "valid_until" and "T" not in value and " " not in value else _AT_ONCE
            return (found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)) + ends
        except OverflowError:
            self._wrong(column, f"expected a date before 9999, found {value}", "leave it empty if there is no end")
            return None


def _number(value: str, *, decimal_comma: bool) -> Decimal | None:
    plain = value.replace(",", ".") if decimal_comma and "." not in value else value
    if not _NUMBER.fullmatch(plain):
        return None
    try:
        return Decimal(plain)
    except InvalidOperation:
        return None


def _contradictions(rows: list[PriceRow]) -> list[Problem]:
    """Return rows that state a price of the same thing at the same time as one before."""
    problems, by_subject = [], dict[tuple[str, str], list[PriceRow]]()
    for row in rows:
        before = by_subject.setdefault((row.environment, row.capability_class), [])
        other = next((each for each in before if each.overlaps(row)), None)
        if other is not None:
            told = f"line {other.line} states a price of {row.capability_class} for the same time"
            problems.append(
                Problem(row.line, "valid_from", told, "valid_until is the last day: end the older one before")
            )
        before.append(row)
    return problems
