"""What eligibility reads and what it tells the others."""

from collections.abc import Sequence
from typing import Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.domain import verdict as domain
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.waiting import Reason
from landbridge.schema.wire.event_v1 import (
    Assessment,
    EnvironmentVerdict,
    OperationRound,
    OperationsWaiting,
    Violation,
    ViolationKind,
)

SERVICE: Final = "eligibility"
# One message lists so many operations at most; the broker bounds a message's size.
MOST_OPERATIONS: Final = 1000
MOST_CACHED: Final = 5000

_ASSESSED: Final = event_type("operation", "OperationsAssessed")
_WAITING: Final = event_type("operation", "OperationsWaiting")
_encode = msgspec.json.Encoder().encode
_KINDS: Final = {kind.value: kind for kind in ViolationKind}


class AssessmentEncoder:
    """Encodes assessments, each once: the same one goes out with many batches of operations."""

    def __init__(self) -> None:
        self._encoded: dict[str, tuple[domain.Assessment, bytes]] = {}

    def encode(self, requirement_class: RequirementClass, assessment: domain.Assessment) -> bytes:
        """Return the wire form of an assessment as JSON."""
        known = self._encoded.get(requirement_class.key)
        if known is not None and known[0] is assessment:
            return known[1]
        if len(self._encoded) >= MOST_CACHED:
            self._encoded.clear()
        body = _encode(to_wire(requirement_class, assessment))
        self._encoded[requirement_class.key] = (assessment, body)
        return body


def to_wire(requirement_class: RequirementClass, assessment: domain.Assessment) -> Assessment:
    """Return an assessment as it travels."""
    outlook = assessment.outlook
    return Assessment(
        id=assessment.id,
        requirement_class=requirement_class.key,
        at=assessment.at,
        valid_until=assessment.valid_until,
        requirements=requirement_class.body,
        eligible=outlook is domain.Outlook.ELIGIBLE,
        condition=outlook.value,
        environments=tuple(
            EnvironmentVerdict(
                environment=verdict.environment,
                contract_version=verdict.contract_version,
                eligible=not verdict.violations,
                valid_until=verdict.valid_until,
                violations=tuple(
                    Violation(
                        constraint=violation.constraint,
                        reason=violation.reason,
                        kind=_KINDS[violation.kind],
                        wanted=violation.wanted,
                        found=violation.found,
                    )
                    for violation in verdict.violations
                ),
                classes=verdict.classes,
            )
            for verdict in assessment.verdicts
        ),
        inputs=assessment.inputs,
    )


def assessed(project: str, assessment: bytes, operations: Sequence[OperationRound]) -> list[Outbound]:
    """Tell the verdict about operations of one class; without operations, that the class's verdict has changed."""
    subject = subjects.operation("assessed", project)
    chunks = [operations[i : i + MOST_OPERATIONS] for i in range(0, len(operations), MOST_OPERATIONS)] or [()]
    return [
        Outbound(subject, _ASSESSED, b'{"assessment":%b,"operations":%b}' % (assessment, _encode(chunk)))
        for chunk in chunks
    ]


def waiting(
    project: str, assessment: domain.Assessment, why: Reason, operations: Sequence[OperationRound]
) -> list[Outbound]:
    """Tell that operations wait because nothing is eligible, and why."""
    subject = subjects.operation("waiting", project)
    return [
        Outbound(
            subject,
            _WAITING,
            _encode(
                OperationsWaiting(
                    by=SERVICE,
                    operations=tuple(operations[i : i + MOST_OPERATIONS]),
                    reason=why.code.value,
                    message=why.message,
                    assessment_id=assessment.id,
                    condition=assessment.outlook.value,
                )
            ),
        )
        for i in range(0, len(operations), MOST_OPERATIONS)
    ]
