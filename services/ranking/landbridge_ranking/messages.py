"""What ranking reads and what it tells the others."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.domain.decision_record import DecisionRecord
from landbridge.domain.overriding import EmergencyOverride
from landbridge.domain.placement import ScoreCard
from landbridge.domain.queues import Wait
from landbridge.domain.room_making import Evicted
from landbridge.schema.wire import event_v1
from landbridge.schema.wire.event_v1 import DecidedOperation, OperationRound, OperationsPreempted, OperationsWaiting

SERVICE: Final = "ranking"
MOST_OPERATIONS: Final = 1000
MOST_CACHED: Final = 5000
REBUILT_AFTER: Final = timedelta(minutes=1)

_DECIDED: Final = event_type("operation", "OperationsDecided")
_WAITING: Final = event_type("operation", "OperationsWaiting")
_PREEMPTED: Final = event_type("operation", "OperationsPreempted")
_encode = msgspec.json.Encoder().encode


class Kind(msgspec.Struct):
    """Of a violation, ranking reads the kind only."""

    kind: str = ""


class Verdict(msgspec.Struct, rename="camel"):
    """Of an environment's verdict, all but what the violations say."""

    environment: str
    contract_version: int = 0
    eligible: bool = False
    valid_until: datetime | None = None
    violations: tuple[Kind, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def hopeful(self) -> bool:
        """Whether only passing obstacles stand against the environment."""
        return not self.eligible and all(violation.kind == "not-now" for violation in self.violations)


class Assessment(msgspec.Struct, rename="camel"):
    """Of an assessment, what ranking reads."""

    id: str
    requirement_class: str
    at: datetime
    requirements: bytes = b""
    condition: str = ""
    environments: tuple[Verdict, ...] = ()
    inputs: Mapping[str, str] = {}

    @property
    def read(self) -> int:
        """How much of the streams the assessor had read: the sum of the last sequences."""
        return sum(int(value) for value in self.inputs.values() if value.isdigit())

    def supersedes(self, other: "Assessment") -> bool:
        """Tell whether this is the newer one of two about a class.

        Who has read more knows more, whatever the clocks say. Only when a stream was rebuilt, and counts from 1 again,
        must a clock that is clearly ahead decide.
        """
        return (self.read, self.at) >= (other.read, other.at) or self.at - other.at > REBUILT_AFTER


class Assessed(msgspec.Struct):
    """An assessment as it came, to be kept as it came, and the operations that it was made for."""

    assessment: msgspec.Raw
    operations: tuple[OperationRound, ...] = ()


class Report(msgspec.Struct, rename="camel"):
    """Of an attempt's report, when it started and ended by the environment's clock, and how."""

    started_at: datetime | None = None
    finished_at: datetime | None = None
    outcome: str = ""

    @property
    def took_s(self) -> float | None:
        """How many seconds the work took; None if it did not complete."""
        if self.outcome != "completed" or self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


class Ended(msgspec.Struct, rename="camel"):
    """Of an operation's last event, what the ledger and observation need."""

    operation: str
    environment: str = ""
    reason: str = ""
    report: Report | None = None


read_assessed: Final = msgspec.json.Decoder(Assessed)
read_assessment: Final = msgspec.json.Decoder(Assessment)
read_ended: Final = msgspec.json.Decoder(Ended)
read_freed: Final = msgspec.json.Decoder(event_v1.OperationFreed)


class Requeued(msgspec.Struct):
    """Of a requeued operation, what the table of waiting ones needs; the specification goes to eligibility."""

    operation: str
    round: int
    reason: str = ""


read_requeued: Final = msgspec.json.Decoder(Requeued)


class _Decision(msgspec.Struct, rename="camel", omit_defaults=True):
    """`event_v1.Decision` with its largest part encoded before."""

    id: str
    assessment_id: str
    at: datetime
    policy_version: str
    route: str
    ranked: msgspec.Raw
    inputs: Mapping[str, str]
    override: event_v1.EmergencyOverride | None = None


class DecisionEncoder:
    """Encodes decisions; the cards of a ranking, which go out with many of them, once."""

    def __init__(self) -> None:
        self._cards: dict[str, msgspec.Raw] = {}

    def decided(
        self,
        project: str,
        record: DecisionRecord,
        at: datetime,
        operations: Sequence[tuple[str, int]],
        *,
        contract_version: int,
        valid_until: datetime | None,
        served_by: str = "",
    ) -> list[Outbound]:
        """Tell where operations go, and until when the verdict about that environment's contract version holds.

        `served_by` is the class of their accelerators there.
        """
        decision = _encode(
            _Decision(
                record.id,
                record.assessment,
                at,
                record.policy,
                record.route.value,
                self._ranked(record),
                record.inputs,
                _override(record.override),
            )
        )
        subject = subjects.operation("decided", project)
        placed = [
            DecidedOperation(
                operation=operation,
                round=round_,
                environment=record.environment,
                contract_version=contract_version,
                valid_until=valid_until,
                served_by=served_by,
            )
            for operation, round_ in operations
        ]
        return [
            Outbound(
                subject,
                _DECIDED,
                b'{"decision":%b,"operations":%b}' % (decision, _encode(placed[i : i + MOST_OPERATIONS])),
            )
            for i in range(0, len(placed), MOST_OPERATIONS)
        ]

    def _ranked(self, record: DecisionRecord) -> msgspec.Raw:
        known = self._cards.get(record.ranking.id)
        if known is None:
            if len(self._cards) >= MOST_CACHED:
                self._cards.clear()
            cards = [to_wire(card) for card in record.ranking.cards if card.eligible]
            known = self._cards[record.ranking.id] = msgspec.Raw(_encode(cards))
        return known


def _override(found: EmergencyOverride | None) -> event_v1.EmergencyOverride | None:
    """Return an override as it travels."""
    if found is None:
        return None
    broken = tuple(
        event_v1.Violation(
            constraint=v.constraint,
            reason=v.reason,
            kind=event_v1.ViolationKind(v.kind.value),
            wanted=v.wanted,
            found=v.found,
        )
        for v in found.overridden
    )
    return event_v1.EmergencyOverride(
        environment=found.environment, by=found.by, reason=found.reason, overridden=broken, waited=found.waited
    )


def to_wire(card: ScoreCard) -> event_v1.ScoreCard:
    """Return a score card as it travels."""
    return event_v1.ScoreCard(
        environment=card.environment,
        served_by=card.served_by,
        total=card.total,
        measurements=tuple(
            event_v1.Measured(
                preference=m.preference,
                value=m.value,
                unit=m.unit,
                source=m.source,
                normalised=m.normalised,
                weight=m.weight,
                unknown=m.unknown,
            )
            for m in card.measurements
        ),
    )


def preempted(evicted: Sequence[Evicted]) -> list[Outbound]:
    """Tell who has to leave, for whom and why."""
    groups: dict[tuple[str, str, str], list[Evicted]] = {}
    for found in evicted:
        why = "lower-priority" if found.charge.queue == found.claimant.queue else "reclaimed"
        groups.setdefault((found.charge.project, found.claimant.operation, why), []).append(found)
    return [_preempted(project, why, group) for (project, _, why), group in groups.items()]


def _preempted(project: str, why: str, group: Sequence[Evicted]) -> Outbound:
    claimant, queue = group[0].claimant, group[0].charge.queue
    if why == "reclaimed":
        told = f"queue {queue} holds more than its quota, operation {claimant.operation} of {claimant.queue} does not"
    else:
        told = f"operation {claimant.operation} of queue {queue} has the higher priority {claimant.priority}"
    body = OperationsPreempted(
        operations=tuple(OperationRound(operation=f.charge.operation, round=f.charge.round) for f in group),
        reason=why,
        message=told,
        claimant=claimant.operation,
    )
    return Outbound(subjects.operation("preempted", project), _PREEMPTED, _encode(body))


def waiting(
    project: str, wait: Wait, operations: Sequence[OperationRound], *, assessment: str, condition: str
) -> list[Outbound]:
    """Tell that operations wait for admission, and why."""
    subject = subjects.operation("waiting", project)
    return [
        Outbound(
            subject,
            _WAITING,
            _encode(
                OperationsWaiting(
                    by=SERVICE,
                    operations=tuple(operations[i : i + MOST_OPERATIONS]),
                    reason=wait.reason.value,
                    message=wait.message,
                    assessment_id=assessment,
                    condition=condition,
                )
            ),
        )
        for i in range(0, len(operations), MOST_OPERATIONS)
    ]
