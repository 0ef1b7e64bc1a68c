"""Decisions as they are kept: with everything that is needed to make them again and compare."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import msgspec

from landbridge.domain.measured import Measured
from landbridge.domain.overriding import EmergencyOverride, stands
from landbridge.domain.placement import Choice, Ranking, Route, choose, order, score
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

    `override`: a person named the environment. `full` are better or equal environments that had no room. `inputs` names
    the version of everything that was read; `id` is a hash of all but the time. `served_by` is the accelerator class
    that was chosen where several could serve.
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
    override: EmergencyOverride | None = None
    served_by: str = ""


def make_record(
    *,
    assessment: str,
    at: datetime,
    policy: str,
    ranking: Ranking,
    choice: Choice,
    inputs: Mapping[str, str],
    override: EmergencyOverride | None = None,
) -> DecisionRecord:
    """Give a decision its content address."""
    content: tuple[object, ...] = (assessment, policy, ranking.id, choice.environment, choice.route, choice.full)
    if override is not None:
        content = (*content, override)
    if choice.served_by:
        content = (*content, choice.served_by)
    digest = hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:32]
    return DecisionRecord(
        digest,
        assessment,
        at,
        policy,
        ranking,
        choice.environment,
        choice.route,
        choice.full,
        inputs,
        override,
        choice.served_by,
    )


def replay(record: DecisionRecord, placed: Placed) -> DecisionRecord:
    """Decide again for one operation, from what was measured: scores, order, choice and route. Equal to the record."""
    again = rescored(record.ranking)
    choice = forced(record.override) if record.override is not None else _chosen(record, again, placed)
    return make_record(
        assessment=record.assessment,
        at=record.at,
        policy=record.policy,
        ranking=again,
        choice=choice or Choice("", Route.PREFERRED, ()),
        inputs=record.inputs,
        override=record.override,
    )


def _chosen(record: DecisionRecord, again: Ranking, placed: Placed) -> Choice | None:
    full = frozenset(record.full)
    return choose(order(again), placed.operation, full, previous=placed.previous, overflow=not placed.held_out)


def forced(override: EmergencyOverride) -> Choice | None:
    """Return where an override leads: where the person said, unless what was broken may not be."""
    if stands(override.overridden):
        return None
    return Choice(override.environment, Route.EMERGENCY_OVERRIDE, ())


def rescored(ranking: Ranking) -> Ranking:
    """Normalise and weigh the raw measurements of a ranking again."""
    cards = sorted(ranking.cards, key=lambda card: (card.environment, card.alternative))
    columns = list(zip(*[card.measurements for card in cards], strict=True))
    return score(
        {column[0].preference: [_raw(measured) for measured in column] for column in columns},
        {column[0].preference: column[0].weight for column in columns},
        names=[card.place for card in cards],
        hopeful=frozenset(card.place for card in cards if not card.eligible),
        overflow_allowed=ranking.overflow_allowed,
        failed_over=ranking.failed_over,
    )


def _raw(measured: Measured) -> Measurement:
    return Measurement(measured.value, measured.unit, measured.source)
