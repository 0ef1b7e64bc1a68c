"""The cost section of a contract, from the rows of a price list that hold at a moment."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from landbridge.domain.documents.nearest import did_you_mean
from landbridge.domain.prices.price_list import EGRESS, PriceRow
from landbridge.domain.tables import Problem

_PRECISION = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Section:
    """What the contract states: the rows that hold by class, the one for data that leaves, and what stays unknown.

    `unknown` says of each class why it has no price.
    """

    currency: str
    prices: dict[str, PriceRow]
    egress: PriceRow | None
    unknown: dict[str, str]
    problems: tuple[Problem, ...] = ()

    @property
    def sources(self) -> list[str]:
        """Where the prices come from, each once."""
        rows = [*self.prices.values(), *([self.egress] if self.egress is not None else [])]
        return list(dict.fromkeys(row.source for row in rows))

    @property
    def until(self) -> datetime | None:
        """When the first of the prices ends; None: none does."""
        rows = [*self.prices.values(), *([self.egress] if self.egress is not None else [])]
        return min((row.until for row in rows if row.until is not None), default=None)


def cost_section(
    rows: Sequence[PriceRow], environment: str, at: datetime, classes: Collection[str] | None = None
) -> Section:
    """Choose the rows of one environment that hold at a moment; what is listed for it goes before what is for all.

    `classes` are those that the contract offers; None: not known. A class that it does not offer is a problem.
    """
    own = _of(rows, environment)
    subjects = dict.fromkeys(row.capability_class for row in own)
    chosen: dict[str, PriceRow] = {}
    unknown: dict[str, str] = {}
    for subject in subjects:
        listed = [row for row in own if row.capability_class == subject]
        row = next((row for row in listed if row.holds(at)), None)
        if row is None:
            unknown[subject] = _when(listed, at)
        elif row.price is None:
            unknown[subject] = f"line {row.line} says so"
        else:
            chosen[subject] = row
    for name in classes or ():
        if name not in subjects:
            unknown[name] = "it is not in the list"
    currencies = dict.fromkeys(row.currency for row in chosen.values())
    egress = chosen.pop(EGRESS, None)
    problems = (*_offered(own, classes), *_mixed(currencies, [*chosen.values(), *([egress] if egress else [])]))
    return Section(next(iter(currencies), ""), chosen, egress, unknown, problems)


def _of(rows: Sequence[PriceRow], environment: str) -> list[PriceRow]:
    """Return the rows for an environment; those for all only where it has none of its own."""
    own = [row for row in rows if row.environment == environment]
    named = {row.capability_class for row in own}
    return [*own, *(row for row in rows if not row.environment and row.capability_class not in named)]


def _when(listed: list[PriceRow], at: datetime) -> str:
    later = min((row.since for row in listed if row.since is not None and row.since > at), default=None)
    if later is not None:
        return f"its price holds from {later:%Y-%m-%d}"
    ended = max((row.until for row in listed if row.until is not None), default=at)
    return f"its price ended with {last_day(ended)}"


def last_day(until: datetime) -> str:
    """Return the last day before an end."""
    return f"{until - timedelta(microseconds=1):%Y-%m-%d}"


def _offered(rows: list[PriceRow], classes: Collection[str] | None) -> list[Problem]:
    if classes is None:
        return []
    return [
        Problem(
            row.line,
            "class",
            f"the contract offers no class {row.capability_class}",
            did_you_mean(row.capability_class, classes) or f"it offers {', '.join(sorted(classes)) or 'none'}",
        )
        for row in rows
        if row.capability_class not in classes and row.capability_class != EGRESS
    ]


def _mixed(currencies: dict[str, None], rows: list[PriceRow]) -> list[Problem]:
    if len(currencies) < 2:
        return []
    first = next(iter(currencies))
    return [
        Problem(
            row.line,
            "currency",
            f"expected {first} as in the lines before, found {row.currency}",
            "a contract has one currency; convert the others and say so in source",
        )
        for row in rows
        if row.currency != first
    ]


def as_number(price: Decimal | int) -> int | float:
    """Return a price as the contract writes it: to a millionth, whole numbers without a fraction."""
    exact = Decimal(price)
    rounded = exact.quantize(_PRECISION) if exact >= _PRECISION else exact
    return int(rounded) if rounded == rounded.to_integral_value() else float(rounded)
