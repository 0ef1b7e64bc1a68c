"""The centre's side: work that gives way to other work, gangs that did not start in time, what waits elsewhere.

As in a move nothing is freed by the wish: the environment stops the work and gives the placement back, or says that it
has ended. Until then it is the owner.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from landbridge.domain.ownership.centre_model import (
    Decision,
    OperationState,
    PlacementState,
    Preempted,
    QueueChanged,
    Requeue,
    SendStop,
    StartDue,
    Timer,
)
from landbridge.domain.ownership.centre_placement import take_back
from landbridge.domain.ownership.centre_shared import event, is_owned, is_terminal
from landbridge.domain.ownership.environment_work import LATE, PREEMPTED
from landbridge.domain.ownership.policy import OnDisconnect, Timing
from landbridge.domain.ownership.rules import Rules

_GRACE_MS = 30_000


def _preempted(state: OperationState, wish: Preempted, now: int, _rules: Rules, _timing: Timing) -> Decision:
    """Have an operation leave for another one. What it held by an earlier round is free already, or will be."""
    over = is_terminal(state) or wish.round != state.round or state.placement is PlacementState.RECOVERING
    if over or state.cancel or state.stopping:
        return Decision(state)
    if state.placement is PlacementState.OFFERED:
        return take_back(state, now, PREEMPTED, wish.message)
    if state.policy.policy is OnDisconnect.MUST_FINISH and state.placement is PlacementState.RUNNING:
        return Decision(state)
    state = replace(state, op_seq=state.op_seq + 1)
    told = event(state, "observed", reason=PREEMPTED, message=wish.message)
    if is_owned(state):
        state = replace(state, stopping=PREEMPTED)
        return Decision(state, (told, stop_to_give_way(state)))
    if state.timer is Timer.RETRY:
        return Decision(state, (told,))
    # The decision that it is about has not been heard yet: when it comes, it is for a round that is over.
    state = replace(state, round=state.round + 1)
    return Decision(state, (told, Requeue(state.round, PREEMPTED, state.exclude, only=state.pinned)))


def _start_due(state: OperationState, _due: StartDue, now: int, _rules: Rules, _timing: Timing) -> Decision:
    """Have a gang stopped that was claimed and has not started in time: all of it starts, or none."""
    if state.placement is not PlacementState.CLAIMED or state.timer is not Timer.START or now < state.due_at:
        return Decision(state)
    state = replace(state, timer=Timer.NONE, due_at=0)
    if state.cancel or state.stopping:
        return Decision(state)
    state = replace(state, op_seq=state.op_seq + 1, stopping=LATE)
    message = f"its replicas have not all started within {state.start_within_ms // 1000} s in {state.environment}"
    return Decision(state, (event(state, "observed", reason=LATE, message=message), stop_to_give_way(state)))


def why_not_requeue(state: OperationState) -> str:
    """Say why an operation's queue or priority cannot be changed; empty = it can."""
    if is_terminal(state):
        return f"it has ended: {state.phase.value}"
    if state.cancel:
        return "a cancel is pending"
    if state.placement is PlacementState.RECOVERING:
        return "the centre recovers and has not yet seen what the environments hold"
    if is_owned(state):
        return f"it is in {state.environment} already; only what waits for a place has a queue to change"
    return ""


def _queue_changed(state: OperationState, wish: QueueChanged, now: int, _rules: Rules, _timing: Timing) -> Decision:
    """Have an operation wait in another queue, or by another priority class; every rule is judged again."""
    waits_there = wish.queue in ("", state.queue) and wish.priority in ("", state.priority)
    if why_not_requeue(state) or waits_there:
        return Decision(state)
    parts = (("in queue", wish.queue), ("by priority class", wish.priority))
    where = " ".join(f"{what} {name}" for what, name in parts if name)
    message = f"{wish.by} has it wait {where}: {wish.reason}"
    state = replace(state, queue=wish.queue or state.queue, priority=wish.priority or state.priority)
    reason = "queue-changed" if wish.queue else "priority-changed"
    if state.placement is PlacementState.OFFERED:
        return take_back(state, now, reason, message)
    state = replace(state, op_seq=state.op_seq + 1)
    told = event(state, "observed", reason=reason, message=message)
    if state.timer is Timer.RETRY:
        return Decision(state, (told,))  # the next round begins when its wait is over
    state = replace(state, round=state.round + 1)
    return Decision(state, (told, Requeue(state.round, reason, state.exclude, only=state.pinned)))


def stop_to_give_way(state: OperationState) -> SendStop:
    """Return the command: a checkpoint first where one is declared and the work may have begun, then the end."""
    return SendStop(state.environment, state.epoch, state.stopping, state.policy.grace_ms or _GRACE_MS)


GIVE_WAY_HANDLERS: dict[type, Callable[[OperationState, Any, int, Rules, Timing], Decision]] = {
    Preempted: _preempted,
    StartDue: _start_due,
    QueueChanged: _queue_changed,
}
