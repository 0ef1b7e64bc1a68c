"""Between the domain's values and the messages on the bus."""

from functools import lru_cache

from msgspec.structs import replace

from landbridge.domain.ownership import environment_model as own
from landbridge.domain.ownership.environment import decide
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases import HeldLease
from landbridge.schema.wire import common_v1 as common
from landbridge.schema.wire import report_v1 as wire
from landbridge_dispatch.dispatcher.clocks import wall
from landbridge_dispatch.executors.protocol import SlotKey, SlotView

SELF_STOPPED = "self-stopped"


def to_wire(epoch: Epoch) -> common.Epoch:
    return common.Epoch(generation=epoch.generation, counter=epoch.counter)


@lru_cache(maxsize=4096)
def from_wire(epoch: common.Epoch) -> Epoch:
    """Return the domain's epoch. Most operations are at their first: one object serves them all."""
    return Epoch(epoch.generation, epoch.counter)


def placement(key: SlotKey) -> common.PlacementRef:
    return common.PlacementRef(operation=key.operation, epoch=to_wire(key.epoch))


_STATES = {state: wire.AttemptState(state) for state in own.ReportState}
_OUTCOMES = {outcome.value: outcome for outcome in wire.AttemptOutcome}
_RUNNING = frozenset({wire.AttemptState.STARTED, wire.AttemptState.CHECKPOINTED})


def attempt_report(
    operation: str, report: own.Report, detail: wire.AttemptReport | None, message: str = ""
) -> wire.AttemptReport:
    """Return the full report: all that is known of the attempt, with what ownership says of it on top."""
    state = _STATES[report.state]
    if detail is not None:
        if state in _RUNNING:
            running = detail if detail.finished_at is None else _as_running(detail)
            return replace(running, state=state, term=report.term)
        return replace(
            detail,
            state=state,
            term=report.term,
            outcome=_OUTCOMES[report.outcome],
            reason=report.reason,
            message=message or detail.message,
        )
    return wire.AttemptReport(
        operation=operation,
        epoch=to_wire(report.epoch),
        state=state,
        term=report.term,
        at=wall(),
        outcome=_OUTCOMES[report.outcome],
        reason=report.reason,
        message=message,
    )


def _as_running(detail: wire.AttemptReport) -> wire.AttemptReport:
    """Return what was true while it ran, of an attempt that has ended since."""
    return wire.AttemptReport(
        operation=detail.operation,
        epoch=detail.epoch,
        at=detail.started_at or detail.at,
        started_at=detail.started_at,
        checkpoint=detail.checkpoint,
        resolved=detail.resolved,
    )


def ending(view: SlotView) -> own.Exited | own.StartFailed:
    """Return how a slot's workload ended, or why it never began."""
    if view.phase is own.SlotPhase.TOMBSTONE:
        return own.StartFailed(view.epoch, view.reason, None, view.denied)
    outcome = _ENDINGS[view.report.outcome] if view.report is not None else own.Outcome.FAILED
    return own.Exited(view.epoch, outcome, view.reason, None, view.reason == SELF_STOPPED)


_ENDINGS = {
    wire.AttemptOutcome(outcome): outcome
    for outcome in (own.Outcome.COMPLETED, own.Outcome.FAILED, own.Outcome.CANCELLED)
} | {wire.AttemptOutcome.UNSPECIFIED: own.Outcome.FAILED}


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
    return replace(slot, report=final)


def slot_state(view: SlotView, term: int) -> wire.SlotState:
    """Return a slot as an inventory shows it."""
    held = held_slot(view)
    report = None
    if held.report is not None:
        final = held.report
        told = own.Report(view.epoch, final.state, term, final.outcome, final.reason)
        report = attempt_report(view.operation, told, view.report if view.told else None)
    elif view.report is not None and view.phase is own.SlotPhase.RUNNING:
        report = replace(view.report, state=wire.AttemptState.STARTED, term=term)
    return wire.SlotState(
        operation=view.operation,
        epoch=to_wire(view.epoch),
        state=wire.SlotPhase(held.phase),
        grant_term=view.term,
        report=report,
    )
