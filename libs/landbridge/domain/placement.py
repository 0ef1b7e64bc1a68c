"""Where an operation should run, among the places where it may: measured, weighed, recorded, and computable again.

`rank` measures and orders environments for one requirement class; `choose` picks for one operation, given which
environments are full. Both are pure, and `Ranking` holds all that `choose` reads, so a stored ranking replays. Where
several accelerator classes of an environment could serve, each is an alternative with a name of its own: a place.
"""

import hashlib
from collections.abc import Container, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

import msgspec

from landbridge.domain.candidate import Candidate, class_of, environment_of, place_name
from landbridge.domain.measured import Column, Measured, column
from landbridge.domain.preferences import NOTHING_OBSERVED, PREFERENCES, Measurement, Observed
from landbridge.domain.requirements import Requirements
from landbridge.domain.weighing import weighted


class Route(StrEnum):
    """Why the chosen environment was chosen."""

    PREFERRED = "preferred"  # no environment ranked higher
    OVERFLOW = "overflow"  # a better environment was full, or not eligible for now
    FAILOVER = "failover"  # the previous environment was lost
    DRIFT = "drift"  # the ranking changed since the previous attempt
    EMERGENCY_OVERRIDE = "emergency-override"  # a person forced it


class ScoreCard(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """All scores of one environment. One that is not eligible for now was measured to tell what it would have been.

    Where several classes could serve, of one alternative: `served_by` is its class, `alternative` its number from 0.
    """

    environment: str
    total: float
    measurements: tuple[Measured, ...]
    eligible: bool = True
    served_by: str = ""
    alternative: int = 0

    @property
    def place(self) -> str:
        return place_name(self.environment, self.served_by)


class Ranking(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Environments for one class, best first. Equals stand in the order of their names; `choose` tells them apart."""

    id: str
    cards: tuple[ScoreCard, ...]
    overflow_allowed: bool = True
    failed_over: bool = False

    def prefers(self, environment: str, reached: float) -> bool:
        """Tell whether no environment ranks above one that is used at a score; it may have a better class itself."""
        best = self.cards[0].total if self.cards else 0.0
        if reached >= best:
            return True
        top = takewhile(lambda card: card.total == best, self.cards)
        return any(card.environment == environment for card in top)


class Choice(NamedTuple):
    """The pick for one operation. `full` are the better or equal places that had no room, in the order tried.

    `served_by` is the class of the place; empty where it is the one that serves anyway.
    """

    environment: str
    route: Route
    full: tuple[str, ...]
    served_by: str = ""

    @property
    def place(self) -> str:
        return place_name(self.environment, self.served_by)


# -- ranking -----------------------------------------------------------------------------------------------------------


_encode = msgspec.json.Encoder().encode


def make_cards(
    names: Sequence[str], columns: Sequence[Column], *, hopeful: Container[str] = ()
) -> tuple[ScoreCard, ...]:
    """Weigh columns; return score cards, best first. `names` of places are in order; `hopeful` are not eligible."""
    if not names:
        return ()
    totals = weighted([c.scores for c in columns], [c.weight for c in columns])
    rows = list(zip(*[c.measured for c in columns], strict=True))
    # Equals keep their order, which is that of their names, also where the order is reversed.
    ordered = sorted(range(len(names)), key=totals.__getitem__, reverse=True)
    cards = [ScoreCard(names[at], totals[at], rows[at], names[at] not in hopeful) for at in ordered]
    return tuple(_taken_apart(names, cards) if "/" in "".join(names) else cards)


def _taken_apart(names: Sequence[str], cards: Sequence[ScoreCard]) -> list[ScoreCard]:
    """Take places that are alternatives of one environment apart, and number them in the order of their names."""
    numbers: dict[str, int] = {}
    seen: dict[str, int] = {}
    for name in names:
        environment = environment_of(name)
        numbers[name] = seen[environment] = seen.get(environment, -1) + 1
    return [
        ScoreCard(environment_of(n), card.total, card.measurements, card.eligible, class_of(n), numbers[n])
        for card in cards
        for n in (card.environment,)
    ]


class Asked(NamedTuple):
    """What a ranking is asked with beside what is measured. `head` stands for it, and for the places, in hashes."""

    overflow_allowed: bool
    failed_over: bool
    head: bytes


def asked_with(
    names: Sequence[str],
    weights: Sequence[float],
    *,
    hopeful: Container[str] = (),
    overflow_allowed: bool = True,
    failed_over: bool = False,
) -> Asked:
    """Put together what many rankings are asked with."""
    places = [(name, name not in hopeful) for name in names]
    return Asked(overflow_allowed, failed_over, _encode((places, list(weights), overflow_allowed, failed_over)))


def ranking_of(cards: tuple[ScoreCard, ...], columns: Sequence[Column], asked: Asked) -> Ranking:
    """Give a ranking its content address: a hash of everything that its cards follow from."""
    digest = hashlib.sha256(b"".join([asked.head, *[c.digest for c in columns]]))
    return Ranking(digest.hexdigest()[:32], cards, asked.overflow_allowed, asked.failed_over)


def score(
    measurements: Mapping[str, Sequence[Measurement]],
    weights: Mapping[str, float],
    *,
    names: Sequence[str],
    hopeful: Container[str] = (),
    overflow_allowed: bool = True,
    failed_over: bool = False,
) -> Ranking:
    """Rank environments by measurements of each preference, in the order of the environments' `names`."""
    columns = [column(name, found, weights.get(name, 0.0)) for name, found in measurements.items()]
    asked = asked_with(
        names,
        [each.weight for each in columns],
        hopeful=hopeful,
        overflow_allowed=overflow_allowed,
        failed_over=failed_over,
    )
    return ranking_of(make_cards(names, columns, hopeful=hopeful), columns, asked)


def rank(
    requirements: Requirements,
    eligible: Sequence[Candidate],
    weights: Mapping[str, float],
    *,
    hopeful: Sequence[Candidate] = (),
    observed: Mapping[str, Observed] | None = None,
    overflow_allowed: bool = True,
) -> Ranking:
    """Measure and order environments for one class. `hopeful` ones take part in the order but are never chosen."""
    candidates = sorted([*eligible, *hopeful], key=lambda candidate: candidate.environment)  # alternatives as given
    seen = observed or {}
    measurements = {}
    for preference in PREFERENCES:
        ask, profile = preference.asking(requirements), preference.profile
        measurements[preference.name] = ask(
            [profile(candidate, seen.get(candidate.environment, NOTHING_OBSERVED)) for candidate in candidates]
        )
    return score(
        measurements,
        weights,
        names=[candidate.place for candidate in candidates],
        hopeful=frozenset(candidate.environment for candidate in hopeful),
        overflow_allowed=overflow_allowed,
        failed_over=requirements.failed_over,
    )


# -- choosing ----------------------------------------------------------------------------------------------------------


class Order(NamedTuple):
    """A ranking made ready for many choices: eligible places in groups of equals, best first."""

    ranking: Ranking
    groups: tuple[tuple[float, tuple[str, ...]], ...]


def order(ranking: Ranking) -> Order:
    """Group the eligible environments of a ranking by their totals."""
    groups: list[tuple[float, tuple[str, ...]]] = []
    members: list[str] = []
    reached = -1.0
    for card in ranking.cards:
        if not card.eligible:
            continue
        if card.total != reached and members:
            groups.append((reached, tuple(members)))
            members = []
        reached = card.total
        members.append(card.place if card.served_by else card.environment)
    if members:
        groups.append((reached, tuple(members)))
    return Order(ranking, tuple(groups))


def choose(
    order: Order, operation: str, full: Container[str], *, previous: str = "", overflow: bool = True
) -> Choice | None:
    """Pick the best place with room for one operation; None if there is none.

    `full` says of places whether they have none. `previous` is where its last attempt was placed. `overflow` False
    holds it for the best environments a while longer, in which any class that can serve will do.
    """
    tried: list[str] = []
    for reached, group in _in_question(order, overflow=overflow):
        for name in _shuffled(group, operation) if len(group) > 1 else group:
            if name not in full:
                environment = environment_of(name)
                route = _route(order.ranking, reached, environment, previous)
                return Choice(environment, route, tuple(tried), class_of(name))
            tried.append(name)
    return None


def groups_in_question(order: Order, *, overflow: bool = True) -> list[str]:
    """Return the places that `choose` would look at if none had room, better groups first."""
    return [name for _, group in _in_question(order, overflow=overflow) for name in group]


def _in_question(order: Order, *, overflow: bool) -> tuple[tuple[float, tuple[str, ...]], ...]:
    """Return groups; without overflow the best one, and what other classes of its environments could serve by."""
    first, others = order.groups[:1], order.groups[1:]
    if overflow and order.ranking.overflow_allowed:
        return order.groups
    environments = {environment_of(place) for _, group in first for place in group if class_of(place)}
    if not environments:
        return first
    stays = ((reached, tuple([p for p in group if environment_of(p) in environments])) for reached, group in others)
    return (*first, *[(reached, group) for reached, group in stays if group])


def _bits(text: str) -> int:
    """Return 64 bits that stand for an id in ties."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


_environment_bits = lru_cache(maxsize=16384)(_bits)


def _shuffled(group: Sequence[str], operation: str) -> list[str]:
    """Order equals by a hash of both ids: as good as drawn, and the same on every machine.

    Alternatives of one environment stay in their order.
    """
    bits = _bits(operation)
    hashed = [(_mix(bits ^ _environment_bits(environment := environment_of(name))), environment) for name in group]
    return [group[at] for at in sorted(range(len(group)), key=hashed.__getitem__)]


def _mix(bits: int) -> int:
    mixed = bits * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    return (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 & 0xFFFFFFFFFFFFFFFF


def _route(ranking: Ranking, reached: float, environment: str, previous: str) -> Route:
    if ranking.failed_over:
        return Route.FAILOVER
    if previous and previous != environment:
        return Route.DRIFT
    return Route.PREFERRED if ranking.prefers(environment, reached) else Route.OVERFLOW
