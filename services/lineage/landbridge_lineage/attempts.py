"""The placements of one operation with everything that they ran on and left behind, folded from its facts."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from landbridge.schema.wire.event_v1 import OperationChanged, Phase, ReportVerdict
from landbridge.schema.wire.report_v1 import (
    AcceptanceResult,
    AttemptOutcome,
    AttemptReport,
    AttemptState,
    CheckpointRef,
    OutputRef,
    Resolved,
)
from landbridge_lineage.fold import LIFECYCLE, Fact, epoch_text
from landbridge_lineage.state import Part

_changed: Final = msgspec.json.Decoder(OperationChanged)


class Placement(Part, frozen=True, kw_only=True):
    """One epoch of the operation. It is an attempt once it has started."""

    epoch: str
    attempt: int = 0
    round: int = 0
    environment: str = ""
    decision_id: str = ""
    offered_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    outcome: AttemptOutcome = AttemptOutcome.UNSPECIFIED
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    outputs: Mapping[str, OutputRef] = msgspec.field(default_factory=dict)
    metrics: Mapping[str, float] = msgspec.field(default_factory=dict)
    acceptance: tuple[AcceptanceResult, ...] = ()
    checkpoint: CheckpointRef | None = None
    resolved: Resolved | None = None
    verdict: ReportVerdict = ReportVerdict.UNSPECIFIED


def placements(facts: Iterable[Fact]) -> list[Placement]:
    """Return the placements in the order in which they were made."""
    found: dict[str, Placement] = {}
    for fact in sorted(facts, key=lambda each: (each.lane, each.number)):
        if fact.lane == LIFECYCLE and fact.number > 1:
            event = _changed.decode(fact.body)
            _place(found, event)
            if event.report is not None:
                _report(found, event.report, event)
    return list(found.values())


def attempts(facts: Iterable[Fact]) -> list[Placement]:
    """Return the placements that started."""
    return [each for each in placements(facts) if each.started_at is not None]


def _place(found: dict[str, Placement], event: OperationChanged) -> None:
    epoch = epoch_text(event.epoch)
    late = event.verdict in (ReportVerdict.SUPERSEDED, ReportVerdict.REFUSED)
    if not epoch or late or event.phase not in (Phase.PENDING, Phase.RUNNING):
        return
    known = found.get(epoch) or Placement(epoch=epoch)
    changes: dict[str, Any] = {
        "attempt": event.attempt or known.attempt,
        "round": event.round or known.round,
        "environment": event.environment or known.environment,
        "decision_id": event.decision_id or known.decision_id,
    }
    if event.phase is Phase.PENDING and known.offered_at is None:
        changes["offered_at"] = event.at
    if event.phase is Phase.RUNNING and known.started_at is None:
        changes["started_at"] = event.at
    found[epoch] = msgspec.structs.replace(known, **changes)


def _report(found: dict[str, Placement], report: AttemptReport, event: OperationChanged) -> None:
    epoch = epoch_text(report.epoch)
    known = found.get(epoch) or Placement(epoch=epoch, environment=event.environment)
    changes: dict[str, Any] = {
        "verdict": event.verdict,
        "started_at": report.started_at or known.started_at,
        "finished_at": report.finished_at or known.finished_at,
        "outcome": report.outcome or known.outcome,
        "reason": report.reason or known.reason,
        "message": report.message or known.message,
        "exit_code": report.exit_code if report.exit_code is not None else known.exit_code,
        "signal": report.signal if report.signal is not None else known.signal,
        "outputs": report.outputs or known.outputs,
        "metrics": {**known.metrics, **report.metrics},
        "acceptance": report.acceptance or known.acceptance,
        "checkpoint": report.checkpoint or known.checkpoint,
        "resolved": report.resolved or known.resolved,
    }
    if report.state is AttemptState.FINISHED and changes["finished_at"] is None:
        changes["finished_at"] = report.at
    found[epoch] = msgspec.structs.replace(known, **changes)
