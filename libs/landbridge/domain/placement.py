"""Where an operation should run, among the places where it may: measured, weighed, recorded, and computable again.

`rank` measures and orders environments for one requirement class; `choose` picks for one operation, given which
environments are full. Both are pure, and `Ranking` holds all that `choose` reads, so a stored ranking replays.
"""

import hashlib
from collections.abc import Container, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

import msgspec

from landbridge.domain.candidate import Candidate
from landbridge.domain.preferences import NOTHING_OBSERVED, PREFERENCES, Measurement, Observed, Preference
from landbridge.domain.requirements import Requirements
from landbridge.domain.weighing import common_unit, normalise, weighted


class Route(StrEnum):
    """Why the chosen environment was chosen."""

    PREFERRED = "preferred"  # nothing ranked higher
    OVERFLOW = "overflow"  # something better was full, or not eligible for now
    FAILOVER = "failover"  # the previous environment was lost
    DRIFT = "drift"  # the ranking changed since the previous attempt
    EMERGENCY_OVERRIDE = "emergency-override"  # a person forced it


class Measured(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One preference measured for one environment, with what became of it."""

    preference: str
    value: float | None
    unit: str
    source: str
    normalised: float
    weight: float

    @property
    def unknown(self) -> bool:
        return self.value is None


class ScoreCard(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """All scores of one environment. One that is not eligible for now was measured to tell what it would have been."""

    environment: str
    total: float
    measurements: tuple[Measured, ...]
    eligible: bool = True


class Ranking(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Environments for one class, best first. Equals stand in the order of their names; `choose` tells them apart."""

    id: str
    cards: tuple[ScoreCard, ...]
    overflow_allowed: bool = True
    failed_over: bool = False

    @property
    def best(self) -> float:
        return self.cards[0].total if self.cards else 0.0


class Choice(NamedTuple):
    """The pick for one operation. `full` are the better or equal ones that had no room, in the order tried."""

    environment: str
    route: Route
    full: tuple[str, ...]


def measure(
    requirements: Requirements,
    candidates: Sequence[Candidate],
    observed: Mapping[str, Observed],
    preferences: Sequence[Preference] = PREFERENCES,
) -> list[list[Measurement]]:
    """Return, by candidate, what every preference measures."""
    rows = []
    for candidate in candidates:
        seen = observed.get(candidate.environment, NOTHING_OBSERVED)
        rows.append([preference.measure(requirements, candidate, seen) for preference in preferences])
    return rows


NAMES = tuple(preference.name for preference in PREFERENCES)


def score(
    environments: Sequence[str],
    measurements: Sequence[Sequence[Measurement]],
    weights: Mapping[str, float],
    *,
    hopeful: Container[str] = (),
    names: Sequence[str] = NAMES,
) -> tuple[ScoreCard, ...]:
    """Normalise and weigh measurements; return score cards, best first. `hopeful` are not eligible for now."""
    columns = list(zip(*measurements, strict=True)) if measurements else [()] * len(names)
    scores = [normalise(column) for column in columns]
    units = [common_unit(column) for column in columns]
    shares = [weights.get(name, 0.0) for name in names]
    measured = [
        [
            Measured(name, m[0], m[1], m[2], n, share)
            if m[1] == unit or m[0] is None
            else _other_unit(name, m, unit, share)
            for m, n in zip(column, normalised, strict=True)
        ]
        for name, column, normalised, unit, share in zip(names, columns, scores, units, shares, strict=True)
    ]
    totals = weighted(scores, shares)
    cards = [
        ScoreCard(environment, totals[number], row, environment not in hopeful)
        for number, (environment, row) in enumerate(zip(environments, zip(*measured, strict=True), strict=True))
    ]
    return tuple(sorted(cards, key=lambda card: (-card.total, card.environment)))


def _other_unit(name: str, measurement: Measurement, unit: str, weight: float) -> Measured:
    """Keep what was found, as unknown: it cannot be compared with what most others are measured in."""
    value, own, source = measurement
    return Measured(name, None, own, f"{value:g} {own}, not comparable with {unit}: {source}", 0.0, weight)


def rank(
    requirements: Requirements,
    eligible: Sequence[Candidate],
    weights: Mapping[str, float],
    *,
    hopeful: Sequence[Candidate] = (),
    observed: Mapping[str, Observed] | None = None,
    overflow_allowed: bool = True,
) -> Ranking:
    """Order environments for one class. `hopeful` ones take part in the order but are never chosen."""
    candidates = [*eligible, *hopeful]
    cards = score(
        [candidate.environment for candidate in candidates],
        measure(requirements, candidates, observed or {}),
        weights,
        hopeful={candidate.environment for candidate in hopeful},
    )
    return make_ranking(cards, overflow_allowed=overflow_allowed, failed_over=requirements.failed_over)


_CARDS = msgspec.json.Encoder()


def make_ranking(cards: tuple[ScoreCard, ...], *, overflow_allowed: bool = True, failed_over: bool = False) -> Ranking:
    """Give score cards, best first, their content address."""
    digest = hashlib.sha256(_CARDS.encode((cards, overflow_allowed, failed_over))).hexdigest()
    return Ranking(digest[:32], cards, overflow_allowed, failed_over)


class Order(NamedTuple):
    """A ranking made ready for many choices: groups of equals, best first, with the bits that tell equals apart."""

    ranking: Ranking
    groups: tuple[tuple[float, tuple[tuple[str, int], ...]], ...]


def order(ranking: Ranking) -> Order:
    """Group the eligible environments of a ranking by their totals."""
    eligible = [card for card in ranking.cards if card.eligible]
    groups = tuple(
        (reached, tuple((card.environment, operation_hash(card.environment)) for card in cards))
        for reached, cards in groupby(eligible, key=lambda card: card.total)
    )
    return Order(ranking, groups)


def choose(
    order: Order, operation: str, full: Container[str], *, previous: str = "", overflow: bool = True
) -> Choice | None:
    """Pick the best environment with room for one operation; None if there is none.

    `previous` is where its last attempt was placed. `overflow` False holds it for the best ones a while longer.
    """
    tried: list[str] = []
    groups = order.groups if overflow and order.ranking.overflow_allowed else order.groups[:1]
    for reached, group in groups:
        for name, _ in _shuffled(group, operation) if len(group) > 1 else group:
            if name not in full:
                return Choice(name, _route(order.ranking, reached, name, previous), tuple(tried))
            tried.append(name)
    return None


def operation_hash(text: str) -> int:
    """Return 64 bits that stand for an operation or an environment in ties."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _shuffled(group: Sequence[tuple[str, int]], operation: str) -> list[tuple[str, int]]:
    """Order equals by a hash of both ids: as good as drawn, and the same on every machine."""
    bits = operation_hash(operation)
    return sorted(group, key=lambda member: (_mix(bits ^ member[1]), member[0]))


def _mix(bits: int) -> int:
    mixed = bits * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    return (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 & 0xFFFFFFFFFFFFFFFF


def _route(ranking: Ranking, reached: float, environment: str, previous: str) -> Route:
    if ranking.failed_over:
        return Route.FAILOVER
    if previous and previous != environment:
        return Route.DRIFT
    return Route.OVERFLOW if reached < ranking.best else Route.PREFERRED
