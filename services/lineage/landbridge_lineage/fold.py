"""Folding what happened to one operation into its state: a pure function from facts to `State`.

Lifecycle events are folded in the order of their numbers, whatever order they come in: an early one is parked until
the gap before it is filled, one that was folded already is a duplicate. Reasons to wait have no number; the newest of
the highest round counts. So every order and every repetition of the same facts gives the same state.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from landbridge.schema.wire.event_v1 import Condition, Epoch, Moment, Phase, ReportVerdict
from landbridge_lineage.state import TERMINAL_PHASES, WAITING_PHASES, Holding, State, Waiting

PARKED_MAX: Final = 1000

# Lanes: what a fact's number counts.
LIFECYCLE: Final = 0  # the event's number within the operation
ASSESSED: Final = 1  # the round, as in the lanes below
WAITING: Final = 2
DECIDED: Final = 3
REQUEUED: Final = 4
FREED: Final = 5


class TooManyParkedError(Exception):
    """An operation has more early events than may be parked: the ones before them were lost."""


class Fact(msgspec.Struct, frozen=True):
    """One thing that happened to one operation, as it is stored: `body` is what the fold reads.

    `number` counts within the `lane`; together with `ref` it identifies the fact. `event` names it for people.
    """

    operation: str
    project: str
    lane: int
    number: int
    ref: str
    event: str
    id: str
    body: bytes = b""


class _Metadata(msgspec.Struct):
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct):
    type: str = ""
    priority: str = ""


class _Effective(msgspec.Struct):
    """What lists show of a rendered operation."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Accepted(msgspec.Struct, rename="camel"):
    """What the fold reads of an OperationAccepted."""

    at: Moment
    name: str = ""
    queue: str = ""
    effective: bytes = b""
    spec_sha256: str = ""
    effective_sha256: str = ""
    idempotency_key: str = ""
    submitted_by: str = ""
    retry_of: str = ""


class _Changed(msgspec.Struct, rename="camel"):
    """What the fold reads of an OperationChanged: all but the report, which is much the largest part."""

    op_seq: int
    at: Moment
    phase: Phase = Phase.UNSPECIFIED
    round: int = 0
    attempt: int = 0
    epoch: Epoch | None = None
    environment: str = ""
    decision_id: str = ""
    reason: str = ""
    message: str = ""
    condition: Condition | None = None
    verdict: ReportVerdict = ReportVerdict.UNSPECIFIED


_effective: Final = msgspec.json.Decoder(_Effective)
_accepted: Final = msgspec.json.Decoder(_Accepted)
_changed: Final = msgspec.json.Decoder(_Changed)
_waiting: Final = msgspec.json.Decoder(Waiting)


def fold(state: State | None, fact: Fact) -> State:
    """Return the state after `fact`; the same object if it changes nothing.

    Raises TooManyParkedError, or msgspec.ValidationError for a body that is not what its lane says.
    """
    if state is None:
        state = State(operation=fact.operation, project=fact.project)
    if fact.lane == LIFECYCLE:
        return _lifecycle(state, fact.number, fact.body)
    if fact.lane == WAITING:
        return _wait(state, _waiting.decode(fact.body))
    return state


def _wait(state: State, told: Waiting) -> State:
    known = state.waiting
    if known is not None and (known.round, known.id) >= (told.round, told.id):
        return state
    return msgspec.structs.replace(state, waiting=told)


def _lifecycle(state: State, number: int, body: bytes) -> State:
    if number <= state.seq or str(number) in state.parked:
        return state
    if number > state.seq + 1:
        return _park(state, number, body)
    state = _apply(state, number, body)
    parked = state.parked
    while (body_of_next := parked.get(str(state.seq + 1))) is not None:
        state = _apply(state, state.seq + 1, body_of_next)
    if parked:
        rest = {early: text for early, text in parked.items() if int(early) > state.seq}
        if len(rest) < len(parked):
            state = msgspec.structs.replace(state, parked=rest)
    return state


def _park(state: State, number: int, body: bytes) -> State:
    _read(number, body)  # what cannot be read must not wait for its turn
    if len(state.parked) >= PARKED_MAX:
        raise TooManyParkedError(
            f"operation {state.operation}: event {state.seq + 1} is missing and {PARKED_MAX} later ones wait for it; "
            "rebuild lineage from the coordinator's event log"
        )
    return msgspec.structs.replace(state, parked={**state.parked, str(number): body})


def _read(number: int, body: bytes) -> _Accepted | _Changed:
    return _accepted.decode(body) if number == 1 else _changed.decode(body)


def _apply(state: State, number: int, body: bytes) -> State:
    event = _read(number, body)
    if isinstance(event, _Accepted):
        return _accept(state, event)
    if event.verdict in (ReportVerdict.SUPERSEDED, ReportVerdict.REFUSED):
        return _record(state, event)
    return _move(state, event)


def _accept(state: State, event: _Accepted) -> State:
    shown = _shown(event.effective)
    return msgspec.structs.replace(
        state,
        seq=1,
        phase=Phase.ACCEPTED,
        name=event.name,
        queue=event.queue,
        type=shown.spec.type,
        priority=shown.spec.priority,
        labels=shown.metadata.labels,
        submitted_by=event.submitted_by,
        retry_of=event.retry_of,
        idempotency_key=event.idempotency_key,
        spec_sha256=event.spec_sha256,
        effective_sha256=event.effective_sha256,
        accepted_at=event.at,
        changed_at=event.at,
        round=1,
    )


def _shown(effective: bytes) -> _Effective:
    try:
        return _effective.decode(effective)
    except msgspec.MsgspecError:
        return _Effective()  # an accepted operation is shown, however odd its text


def _record(state: State, event: _Changed) -> State:
    """Count a report that came too late: it is kept with the facts and changes nothing."""
    return msgspec.structs.replace(state, seq=event.op_seq, superseded=state.superseded + 1)


def _move(state: State, event: _Changed) -> State:
    phase = event.phase or state.phase
    ended = phase in TERMINAL_PHASES
    changes: dict[str, Any] = {
        "seq": event.op_seq,
        "phase": phase,
        "changed_at": event.at,
        "round": event.round or state.round,
        "attempt": event.attempt or state.attempt,
        "epoch": epoch_text(event.epoch) or state.epoch,
        # Nothing is placed while it waits; elsewhere an event without a place says nothing about it.
        "environment": event.environment or ("" if phase in WAITING_PHASES else state.environment),
        "decision_id": event.decision_id or state.decision_id,
        "reason": event.reason,
        "message": event.message,
        "conditions": {} if ended else _conditions(state.conditions, event.condition, event.at),
    }
    if phase is Phase.RUNNING and state.started_at is None:
        changes["started_at"] = event.at
    if ended and state.ended_at is None:
        changes["ended_at"] = event.at
    return msgspec.structs.replace(state, **changes)


def epoch_text(epoch: Epoch | None) -> str:
    """Return "generation.counter", or an empty text without an epoch."""
    return f"{epoch.generation}.{epoch.counter}" if epoch is not None else ""


def _conditions(held: Mapping[str, Holding], told: Condition | None, at: datetime) -> Mapping[str, Holding]:
    if told is None:
        return held
    rest = {name: holding for name, holding in held.items() if name != told.type}
    if not told.status:
        return rest
    before = held.get(told.type)
    since = before.since if before is not None else at
    return {**rest, told.type: Holding(since=since, reason=told.reason, message=told.message)}
