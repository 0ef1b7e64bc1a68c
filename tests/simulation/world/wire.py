"""What the coordinator makes of reports and inventories: from the environment's words to the centre's messages."""

from typing import Any

from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership import environment_model as away
from landbridge.domain.ownership.environment_model import ReportState


def as_report(name: str, report: away.Report, environment_term: int) -> model.Message:
    """What the coordinator makes of one item of a report message."""
    common: dict[str, Any] = {
        "environment": name,
        "epoch": report.epoch,
        "term": report.term,
        "environment_term": environment_term,
        "reason": report.reason,
        "checkpoint": report.detail or "",
        "report": report,
    }
    match report.state:
        case ReportState.STARTED:
            return model.ReportStarted(**common)
        case ReportState.FINISHED:
            return model.ReportFinished(outcome=str(report.outcome), **common)
        case ReportState.RELINQUISHED:
            return model.ReportRelinquished(**common)
        case ReportState.FAILED_TO_START:
            return model.ReportFailedToStart(**common)
        case ReportState.CHECKPOINTED:
            return model.ReportCheckpointed(**common)
        case _:
            return model.ReportRefused(**common)


def as_item(name: str, slot: away.Slot, term: int) -> model.InventoryItem:
    """What the coordinator makes of one slot of an inventory."""
    report = slot.report
    return model.InventoryItem(
        environment=name,
        epoch=slot.epoch,
        term=term,
        environment_term=term,
        slot=slot.phase,
        reason=report.reason if report is not None else "",
        final=str(report.state) if report is not None else "",
        outcome=str(report.outcome) if report is not None else "",
        checkpoint=(report.detail or "") if report is not None else "",  # type: ignore[arg-type]
        report=report,
    )
