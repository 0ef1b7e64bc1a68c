"""The environment's side, second half: true start, running, stopping, ending."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from landbridge.domain.ownership.environment_model import (
    FINAL,
    AllowStart,
    Checkpointed,
    Decision,
    DenyStart,
    Disappeared,
    Exited,
    FinalReport,
    HeldOperation,
    Outcome,
    Report,
    ReportState,
    SlotPhase,
    Started,
    StartFailed,
    Stop,
    StopWork,
    TrueStartCheck,
)
from landbridge.domain.ownership.environment_shared import (
    SUPERSEDED,
    Context,
    active_below,
    give_back,
    proceed,
    put,
    repeat_answer,
)
from landbridge.domain.ownership.gang_model import GANG_BROKEN
from landbridge.domain.ownership.leases import StartVerdict, start_verdict
from landbridge.domain.ownership.policy import OnDisconnect

CANCELLED = "cancelled"
STOPPED_ON_SITE = "stopped-on-site"
MOVED = "moved"
"""Stop for a move: a checkpoint is asked for first, and the work is given back."""
PREEMPTED = "preempted"
"""Stop so that other work finds room: as for a move."""
LATE = "gang-not-started"
"""Stop of a gang that has not started in time: it is given back."""
SEALING = frozenset({MOVED, PREEMPTED, GANG_BROKEN})
"""Stops before which a checkpoint is asked for."""
# A stop for any other reason gives the work back, to be placed again.
_STOPS_THAT_END_IT = frozenset({CANCELLED, STOPPED_ON_SITE})


def _true_start_check(state: HeldOperation, check: TrueStartCheck, context: Context) -> Decision:
    slot = state.slot(check.epoch)
    if slot is None or slot.phase is not SlotPhase.CREATED or slot.stopping:
        if slot is None and not context.rules.true_start_check:
            return Decision(state, (AllowStart(check.epoch),))
        reason = "no-slot" if slot is None else slot.stopping or f"slot-{slot.phase}"
        return Decision(state, (DenyStart(check.epoch, wait=False, reason=reason),))
    if context.rules.stop_lower_first and active_below(state, check.epoch):
        return Decision(state, (DenyStart(check.epoch, wait=True, reason="lower-epoch-active"),))
    verdict = start_verdict(slot.term, context.lease, context.now, context.rules)
    if verdict is StartVerdict.START:
        return Decision(state, (AllowStart(check.epoch),))
    return Decision(state, (DenyStart(check.epoch, wait=verdict is StartVerdict.WAIT, reason="lease"),))


def _started(state: HeldOperation, started: Started, context: Context) -> Decision:
    slot = state.slot(started.epoch)
    if slot is None or slot.phase in FINAL:
        alarm = context.alarm("started-without-slot", state.operation, started.epoch)
        return Decision(state, (StopWork(started.epoch, SUPERSEDED, 0), alarm))
    if slot.phase is SlotPhase.RUNNING:
        return Decision(state)
    report = Report(started.epoch, ReportState.STARTED, context.lease.term, detail=started.detail)
    return Decision(put(state, replace(slot, phase=SlotPhase.RUNNING)), (report,))


def _exited(state: HeldOperation, exited: Exited, context: Context) -> Decision:
    slot = state.slot(exited.epoch)
    if slot is None or slot.phase in FINAL:
        return Decision(state)
    stopped_by_us = exited.outcome is Outcome.CANCELLED and slot.stopping not in _STOPS_THAT_END_IT
    if exited.self_stopped or (stopped_by_us and slot.stopping):
        reason = "self-stopped" if exited.self_stopped else slot.stopping
        decision = give_back(state, slot.epoch, reason, context, detail=exited.detail)
    else:
        report = FinalReport(ReportState.FINISHED, str(exited.outcome), exited.reason, exited.detail)
        decision = context.finish(state, slot, report)
    return _then_proceed(decision, context)


def _start_failed(state: HeldOperation, failed: StartFailed, context: Context) -> Decision:
    slot = state.slot(failed.epoch)
    if slot is not None and slot.phase in FINAL:
        return Decision(state)
    # In a cluster a slot is taken, and told as running, before the workload's guardian has heard that it may start: one
    # that does not hear it in time has run nothing, and that is no failure of the operation.
    if slot is not None and slot.phase is SlotPhase.RUNNING and not failed.denied:
        report = FinalReport(ReportState.FINISHED, Outcome.FAILED, failed.reason, failed.detail)
        return _then_proceed(context.finish(state, slot, report), context)
    if slot is not None and slot.stopping in _STOPS_THAT_END_IT:
        report = FinalReport(ReportState.FINISHED, Outcome.CANCELLED, slot.stopping, failed.detail)
        return _then_proceed(context.finish(state, slot, report), context)
    given_back = failed.denied or (slot is not None and slot.stopping != "")
    kind = ReportState.RELINQUISHED if given_back else ReportState.FAILED_TO_START
    reason = slot.stopping if slot is not None and slot.stopping else failed.reason
    decision = give_back(state, failed.epoch, reason, context, report_state=kind, detail=failed.detail)
    return _then_proceed(decision, context)


def _then_proceed(decision: Decision, context: Context) -> Decision:
    """Go on with a higher epoch that waited for this one to end."""
    if decision.state.granted is None:
        return decision
    following = proceed(decision.state, context)
    return Decision(following.state, decision.effects + following.effects)


def _disappeared(state: HeldOperation, gone: Disappeared, context: Context) -> Decision:
    slot = state.slot(gone.epoch)
    if slot is None or slot.phase in FINAL:
        return Decision(state)
    if slot.phase is SlotPhase.RUNNING:
        report = FinalReport(ReportState.FINISHED, Outcome.FAILED, gone.reason)
        return _then_proceed(context.finish(state, slot, report), context)
    failed = ReportState.FAILED_TO_START
    return _then_proceed(give_back(state, gone.epoch, gone.reason, context, report_state=failed), context)


def _stop(state: HeldOperation, stop: Stop, context: Context) -> Decision:
    slot = state.slot(stop.epoch)
    term = context.lease.term
    if slot is None:
        if stop.epoch < state.highest:
            return Decision(state, (Report(stop.epoch, ReportState.REFUSED, term, reason="stale-epoch"),))
        return give_back(state, stop.epoch, "not-here", context)
    if slot.phase in FINAL:
        return repeat_answer(state, slot, context)
    must_finish = state.policy.policy is OnDisconnect.MUST_FINISH and slot.phase is SlotPhase.RUNNING
    if must_finish and stop.reason == CANCELLED and not stop.force:
        return Decision(state, (Report(stop.epoch, ReportState.REFUSED, term, reason="must-finish"),))
    if slot.stopping and not stop.force:
        return Decision(state)
    state = put(state, replace(slot, stopping=slot.stopping or stop.reason))
    return Decision(state, (StopWork(stop.epoch, stop.reason, stop.grace_ms, checkpoint=stop.reason in SEALING),))


def _checkpointed(state: HeldOperation, sealed: Checkpointed, context: Context) -> Decision:
    slot = state.slot(sealed.epoch)
    if slot is None or slot.phase is not SlotPhase.RUNNING:
        return Decision(state)
    return Decision(state, (Report(sealed.epoch, ReportState.CHECKPOINTED, context.lease.term, detail=sealed.detail),))


WORK_HANDLERS: dict[type, Callable[[HeldOperation, Any, Context], Decision]] = {
    TrueStartCheck: _true_start_check,
    Started: _started,
    Exited: _exited,
    StartFailed: _start_failed,
    Disappeared: _disappeared,
    Stop: _stop,
    Checkpointed: _checkpointed,
}
