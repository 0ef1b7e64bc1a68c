"""What all handlers of the centre's side share: events, leaving a placement, ending an operation."""

from typing import Any

from msgspec.structs import replace

from landbridge.domain.lifecycle import TERMINAL, Condition, Phase
from landbridge.domain.ownership.centre_model import (
    OWNED,
    Decision,
    Effect,
    Former,
    Free,
    KnownEnd,
    Lifecycle,
    OperationState,
    PlacementState,
    Requeue,
    Timer,
    Verdict,
)

_RETURN_BACKOFF_MS = 1_000
_RETURN_BACKOFF_MAX_MS = 60_000


def event(state: OperationState, name: str, **details: Any) -> Lifecycle:
    """Return a lifecycle event that describes `state`, whose `op_seq` already counts it."""
    return Lifecycle(
        event=name,
        op_seq=state.op_seq,
        phase=state.phase,
        round=state.round,
        attempt=state.attempts,
        epoch=state.epoch,
        environment=state.environment,
        decision_id=state.decision_id,
        **details,
    )


def observe(state: OperationState, report: Any, verdict: Verdict, reason: str = "") -> Decision:
    """Record a report in the history without moving the operation."""
    state = replace(state, op_seq=state.op_seq + 1)
    observed = event(
        state,
        "observed",
        reason=reason or report.reason,
        message=report.message,
        report=report.report,
        verdict=verdict,
    )
    return Decision(state, (observed,))


def former_of(state: OperationState) -> Former:
    """Return the current placement as one that another is to follow. Had it been completed, none would."""
    told = KnownEnd.ENDED if state.concluded else KnownEnd.NONE
    return Former(state.epoch, state.environment, state.attempts, told)


def set_condition(
    state: OperationState, condition: Condition, status: bool, reason: str, message: str = ""
) -> tuple[OperationState, Lifecycle]:
    """Append the event of a condition; the caller keeps the flag itself."""
    state = replace(state, op_seq=state.op_seq + 1)
    return state, event(state, "condition", condition=condition, status=status, reason=reason, message=message)


def move(state: OperationState, phase: Phase, **changes: Any) -> OperationState:
    """Return the state in another phase, with the event counted."""
    return replace(state, phase=phase, op_seq=state.op_seq + 1, **changes)


def end(
    state: OperationState,
    phase: Phase,
    *,
    reason: str,
    message: str = "",
    report: object = None,
    extra: tuple[Effect, ...] = (),
) -> Decision:
    """End an operation for good: the one terminal event, which also frees what its placement held."""
    state = move(
        state,
        phase,
        placement=PlacementState.DONE,
        timer=Timer.NONE,
        due_at=0,
        concluded=state.concluded or report is not None,
    )
    verdict = Verdict.NONE if report is None else Verdict.ACCEPTED
    terminal = event(state, phase.value, reason=reason, message=message, report=report, verdict=verdict)
    return Decision(state, (terminal, *extra))


def leave(
    state: OperationState,
    phase: Phase,
    now: int,
    *,
    reason: str,
    message: str = "",
    wait_ms: int = -1,
    exclude: tuple[str, ...] = (),
    failed_over: bool = False,
    report: object = None,
    extra: tuple[Effect, ...] = (),
) -> Decision:
    """Leave the current placement and begin a new round: event, free, and requeue now or after a wait.

    `wait_ms` -1: no wait the first time, then longer with every placement in a row that came to nothing.
    A pending cancel ends the operation here: nothing can be running any more.
    """
    if state.cancel:
        return end(state, Phase.CANCELLED, reason="cancelled", message=message, report=report, extra=extra)
    before: tuple[Effect, ...] = ()
    if state.control_lost:
        # It is no longer there, so that its environment is not heard is no longer true of it.
        state, cleared = set_condition(state, Condition.CONTROL_LOST, False, reason)
        before = (cleared,)
    had_started = state.placement is PlacementState.RUNNING
    returns = 0 if had_started else state.returns + 1
    if wait_ms < 0:
        wait_ms = 0 if returns <= 1 else min(_RETURN_BACKOFF_MS << min(returns - 2, 6), _RETURN_BACKOFF_MAX_MS)
    freed = Free(state.round, state.environment)
    queue_due = now + wait_ms + state.queue_timeout_ms if had_started else state.queue_due
    moved = state.phase is not phase
    state = replace(
        state,
        phase=phase,
        op_seq=state.op_seq + 1,
        placement=PlacementState.IDLE,
        round=state.round + 1,
        returns=returns,
        queue_due=queue_due,
        timer=Timer.RETRY if wait_ms else Timer.QUEUE,
        due_at=now + wait_ms if wait_ms else queue_due,
        exclude=exclude,
        control_lost=False,
        missing=False,
        stopping="",
        claimed=0,
        together=state.together and state.gang.apart,
        concluded=state.concluded or report is not None,
    )
    verdict = Verdict.NONE if report is None else Verdict.ACCEPTED
    name = phase.value if moved else "observed"
    effects: tuple[Effect, ...] = (
        *before,
        event(state, name, reason=reason, message=message, report=report, verdict=verdict),
        *extra,
        freed,
    )
    if not wait_ms:
        effects += (Requeue(state.round, reason, exclude, failed_over, state.pinned),)
    return Decision(state, effects)


def is_terminal(state: OperationState) -> bool:
    """Whether the operation has ended."""
    return state.phase in TERMINAL


def is_owned(state: OperationState) -> bool:
    """Whether an environment may be running the current epoch."""
    return state.placement in OWNED


def phase_after_leaving(state: OperationState) -> Phase:
    """Return where an interrupted operation goes: `retrying` once it had started, else back to `queued`."""
    return Phase.RETRYING if state.phase is Phase.RUNNING else Phase.QUEUED
