"""Between the domain's values and the messages on the bus."""

from datetime import datetime

from msgspec.structs import replace

from landbridge.domain.ownership import environment_model as own
from landbridge.domain.ownership.environment import decide
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases import HeldLease
from landbridge.schema.wire import common_v1 as common
from landbridge.schema.wire import report_v1 as wire
from landbridge_dispatch.executors.protocol import SlotKey, SlotView

SELF_STOPPED = "self-stopped"


def to_wire(epoch: Epoch) -> common.Epoch:
    return common.Epoch(generation=epoch.generation, counter=epoch.counter)


def from_wire(epoch: common.Epoch) -> Epoch:
    return Epoch(epoch.generation, epoch.counter)


def placement(key: SlotKey) -> common.PlacementRef:
    return common.PlacementRef(operation=key.operation, epoch=to_wire(key.epoch))


def attempt_report(operation: str, report: own.Report, now: datetime, message: str = "") -> wire.AttemptReport:
    """Return the full report: all that is known of the attempt, with what ownership says of it on top."""
    state, outcome = wire.AttemptState(report.state), wire.AttemptOutcome(report.outcome)
    detail = report.detail
    if isinstance(detail, wire.AttemptReport):
        if report.state in (own.ReportState.STARTED, own.ReportState.CHECKPOINTED):
            return replace(detail, state=state, term=report.term)
        return replace(detail, state=state, term=report.term, outcome=outcome, reason=report.reason)
    return wire.AttemptReport(
        operation=operation,
        epoch=to_wire(report.epoch),
        state=state,
        term=report.term,
        at=now,
        outcome=outcome,
        reason=report.reason,
        message=message,
    )


def observed(view: SlotView, known_checkpoint: bool) -> own.Message | None:
    """Return what an observed slot means to ownership; None if nothing is new to it."""
    match view.phase:
        case own.SlotPhase.RUNNING:
            if known_checkpoint:
                return own.Checkpointed(view.epoch, view.report)
            return own.Started(view.epoch, view.report)
        case own.SlotPhase.FINISHED | own.SlotPhase.TOMBSTONE:
            return ending(view) if view.ended else None
        case own.SlotPhase.EMPTY:
            return own.Disappeared(view.epoch)
    return None


def ending(view: SlotView) -> own.Exited | own.StartFailed:
    """Return how a slot's workload ended, or why it never began."""
    if view.phase is own.SlotPhase.TOMBSTONE:
        return own.StartFailed(view.epoch, view.reason, view.report, view.denied)
    outcome = own.Outcome(view.report.outcome) if view.report is not None else own.Outcome.FAILED
    return own.Exited(view.epoch, outcome, view.reason, view.report, view.reason == SELF_STOPPED)


def held_slot(view: SlotView) -> own.Slot:
    """Return a slot that an earlier dispatcher left, as ownership holds it. Its answer is derived as it was then."""
    slot = own.Slot(
        epoch=view.epoch,
        phase=view.phase,
        term=view.term,
        settled_term=view.settled_term,
        stopping="" if view.phase in own.FINAL else view.stopping,
    )
    if view.phase not in own.FINAL:
        return slot
    final = view.final
    if final is None:
        before = own.SlotPhase.RUNNING if view.phase is own.SlotPhase.FINISHED else own.SlotPhase.CREATED
        stopping = view.stopping or (view.reason if before is own.SlotPhase.RUNNING else "")
        undecided = own.Slot(epoch=view.epoch, phase=before, term=view.term, stopping=stopping)
        state = own.HeldOperation(operation=view.operation, slots=(undecided,), policy=view.policy)
        decided = decide(state, ending(view), HeldLease(term=view.term), 0).state.slot(view.epoch)
        assert decided is not None
        return replace(decided, reported_term=0, settled_term=view.settled_term)
    answer = own.FinalReport(final.state, final.outcome, final.reason, view.report)
    return replace(slot, report=answer)


def slot_state(view: SlotView, term: int, now: datetime) -> wire.SlotState:
    """Return a slot as an inventory shows it."""
    held = held_slot(view)
    report = None
    if held.report is not None:
        final = held.report
        told = own.Report(view.epoch, final.state, term, final.outcome, final.reason, final.detail)
        report = attempt_report(view.operation, told, now)
    elif view.report is not None and view.phase is own.SlotPhase.RUNNING:
        report = replace(view.report, state=wire.AttemptState.STARTED, term=term)
    return wire.SlotState(
        operation=view.operation,
        epoch=to_wire(view.epoch),
        state=wire.SlotPhase(held.phase),
        grant_term=view.term,
        report=report,
    )
