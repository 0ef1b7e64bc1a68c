"""Decisions as they are kept: with everything that is needed to make them again and compare."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import msgspec

from landbridge.domain.placement import Choice, Measured, Ranking, Route, choose, order, score
from landbridge.domain.preferences import Measurement


class Placed(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One operation that a decision holds for, with what of it the choice depended on.

    `previous` is where its last attempt was; `held_out` whether it still held out for the best environments.
    """

    operation: str
    round: int
    previous: str = ""
    held_out: bool = False


class DecisionRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One decision: these operations go to this environment by this route, because of this ranking.

    `full` are better or equal environments that had no room. `inputs` names the version of everything that was read;
    `id` is a hash of all but the time.
    """

    id: str
    assessment: str
    at: datetime
    policy: str
    ranking: Ranking
    environment: str
    route: Route
    full: tuple[str, ...] = ()
    inputs: Mapping[str, str] = {}


def make_record(
    *, assessment: str, at: datetime, policy: str, ranking: Ranking, choice: Choice, inputs: Mapping[str, str]
) -> DecisionRecord:
    """Give a decision its content address."""
    content = (assessment, policy, ranking.id, choice.environment, choice.route, choice.full)
    digest = hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:32]
    return DecisionRecord(
        digest, assessment, at, policy, ranking, choice.environment, choice.route, choice.full, inputs
    )


def replay(record: DecisionRecord, placed: Placed) -> DecisionRecord:
    """Decide again for one operation, from what was measured: scores, order, choice and route. Equal to the record."""
    again = rescored(record.ranking)
    choice = choose(
        order(again), placed.operation, frozenset(record.full), previous=placed.previous, overflow=not placed.held_out
    )
    return make_record(
        assessment=record.assessment,
        at=record.at,
        policy=record.policy,
        ranking=again,
        choice=choice or Choice("", Route.PREFERRED, ()),
        inputs=record.inputs,
    )


def rescored(ranking: Ranking) -> Ranking:
    """Normalise and weigh the raw measurements of a ranking again."""
    cards = sorted(ranking.cards, key=lambda card: card.environment)
    columns = list(zip(*[card.measurements for card in cards], strict=True))
    return score(
        {column[0].preference: [_raw(measured) for measured in column] for column in columns},
        {column[0].preference: column[0].weight for column in columns},
        names=[card.environment for card in cards],
        hopeful=frozenset(card.environment for card in cards if not card.eligible),
        overflow_allowed=ranking.overflow_allowed,
        failed_over=ranking.failed_over,
    )


def _raw(measured: Measured) -> Measurement:
    return Measurement(measured.value, measured.unit, measured.source)
