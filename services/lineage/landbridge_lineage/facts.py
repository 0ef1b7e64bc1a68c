"""Reading messages of the OPERATIONS stream into facts about single operations and the documents they refer to."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound
from landbridge.schema.wire.event_v1 import (
    Assessment,
    Decision,
    OperationFreed,
    OperationRefused,
    OperationRequeued,
    OperationsAssessed,
    OperationsDecided,
    OperationsWaiting,
)
from landbridge_lineage.fold import ASSESSED, DECIDED, FREED, LIFECYCLE, REQUEUED, WAITING, Fact
from landbridge_lineage.state import Waiting


class UnreadableError(Exception):
    """A message is not what its type says."""


class ClassVerdict(msgspec.Struct, frozen=True):
    """The newest verdict of a requirement class; `id` is the message's id and orders verdicts in time."""

    requirement_class: str
    assessment_id: str
    project: str
    id: str
    at: datetime
    eligible: bool
    condition: str


class Refusal(msgspec.Struct, frozen=True):
    """A submission that was refused."""

    id: str
    project: str
    source: str
    submission: str
    at: datetime
    body: bytes


class Read(msgspec.Struct):
    """Everything that a batch of messages says."""

    facts: list[Fact] = msgspec.field(default_factory=list)
    assessments: dict[str, tuple[Assessment, bytes]] = msgspec.field(default_factory=dict)
    verdicts: dict[str, ClassVerdict] = msgspec.field(default_factory=dict)
    decisions: dict[str, tuple[Decision, bytes]] = msgspec.field(default_factory=dict)
    refusals: list[Refusal] = msgspec.field(default_factory=list)


class _Numbered(msgspec.Struct, rename="camel"):
    """The few fields of a lifecycle event that place it; the fold reads the rest."""

    operation: str
    project: str
    op_seq: int


_numbered: Final = msgspec.json.Decoder(_Numbered)
_assessed: Final = msgspec.json.Decoder(OperationsAssessed)
_waiting: Final = msgspec.json.Decoder(OperationsWaiting)
_decided: Final = msgspec.json.Decoder(OperationsDecided)
_requeued: Final = msgspec.json.Decoder(OperationRequeued)
_freed: Final = msgspec.json.Decoder(OperationFreed)
_refused: Final = msgspec.json.Decoder(OperationRefused)


def read(messages: Iterable[Inbound], into: Read | None = None) -> Read:
    """Return what the messages say, in their order. Raises UnreadableError that names the message."""
    found = into or Read()
    for message in messages:
        reader = _READERS.get(message.type.rpartition(".")[2])
        if reader is None:
            continue  # a type of a later release: other consumers' business
        try:
            _check_id(message.id)
            reader(message, found)
        except (msgspec.MsgspecError, ValueError) as error:
            raise UnreadableError(message.id, f"{message.type} on {message.subject}: {error}") from error
    return found


def moment_of(message_id: str) -> datetime:
    """Return when a UUIDv7 was minted: the time of messages that carry none. Raises ValueError for other ids."""
    number = UUID(message_id)
    if number.version != 7:
        raise ValueError(f"message id {message_id}: expected a UUIDv7")
    return datetime.fromtimestamp((number.int >> 80) / 1000, UTC)


def _read_lifecycle(message: Inbound, found: Read) -> None:
    event = _numbered.decode(message.body)
    if (event.op_seq == 1) is not message.type.endswith("Accepted") or event.op_seq < 1:
        raise ValueError(f"opSeq: expected 1 for an acceptance and more for a change, found {event.op_seq}")
    _check_id(event.operation)
    name = subjects.token(message.subject, 3)
    found.facts.append(
        Fact(event.operation, event.project, LIFECYCLE, event.op_seq, "", name, message.id, message.body)
    )


def _read_assessed(message: Inbound, found: Read) -> None:
    event = _assessed.decode(message.body)
    verdict, project = event.assessment, subjects.project_of(message.subject)
    found.assessments[verdict.id] = (verdict, msgspec.json.encode(verdict))
    known = found.verdicts.get(verdict.requirement_class)
    if known is None or known.id < message.id:
        found.verdicts[verdict.requirement_class] = ClassVerdict(
            verdict.requirement_class,
            verdict.id,
            project,
            message.id,
            verdict.at,
            verdict.eligible,
            verdict.condition,
        )
    for each in event.operations:
        _check_id(each.operation)
        found.facts.append(Fact(each.operation, project, ASSESSED, each.round, verdict.id, "assessed", message.id))


def _read_waiting(message: Inbound, found: Read) -> None:
    event, project = _waiting.decode(message.body), subjects.project_of(message.subject)
    at = moment_of(message.id)
    bodies: dict[int, bytes] = {}
    for each in event.operations:
        _check_id(each.operation)
        if each.round not in bodies:
            told = Waiting(
                round=each.round,
                id=message.id,
                at=at,
                by=event.by,
                reason=event.reason,
                message=event.message,
                assessment_id=event.assessment_id,
                condition=event.condition,
            )
            bodies[each.round] = msgspec.json.encode(told)
        body = bodies[each.round]
        found.facts.append(Fact(each.operation, project, WAITING, each.round, message.id, "waiting", message.id, body))


def _read_decided(message: Inbound, found: Read) -> None:
    event, project = _decided.decode(message.body), subjects.project_of(message.subject)
    decision = event.decision
    found.decisions[decision.id] = (decision, msgspec.json.encode(decision))
    for each in event.operations:
        _check_id(each.operation)
        body = msgspec.json.encode({"environment": each.environment, "servedBy": each.served_by})
        found.facts.append(Fact(each.operation, project, DECIDED, each.round, decision.id, "decided", message.id, body))


def _read_requeued(message: Inbound, found: Read) -> None:
    event = _requeued.decode(message.body)
    _check_id(event.operation)
    # The specification is kept with the acceptance; a copy for every round would only cost space.
    body = msgspec.json.encode(msgspec.structs.replace(event, effective=b""))
    found.facts.append(Fact(event.operation, event.project, REQUEUED, event.round, "", "requeued", message.id, body))


def _read_freed(message: Inbound, found: Read) -> None:
    event = _freed.decode(message.body)
    _check_id(event.operation)
    found.facts.append(
        Fact(event.operation, event.project, FREED, event.round, message.id, "freed", message.id, message.body)
    )


def _read_refused(message: Inbound, found: Read) -> None:
    event = _refused.decode(message.body)
    project = event.project or subjects.project_of(message.subject)
    found.refusals.append(Refusal(message.id, project, event.source, event.submission, event.at, message.body))


def _check_id(identifier: str) -> None:
    """Refuse here what Postgres would refuse for the whole batch."""
    if len(identifier) != 36:
        raise ValueError(f"id: expected a UUID, found {identifier!r}")


_READERS: Final[dict[str, Any]] = {
    "OperationAccepted": _read_lifecycle,
    "OperationRefused": _read_refused,
    "OperationsAssessed": _read_assessed,
    "OperationsWaiting": _read_waiting,
    "OperationsDecided": _read_decided,
    "OperationChanged": _read_lifecycle,
    "OperationRequeued": _read_requeued,
    "OperationFreed": _read_freed,
}
TYPES: Final = tuple(sorted(_READERS))
