"""The centre's side: what one member of a gang does when it is told of the others. Who tells it what: see `gang`."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from landbridge.domain.ownership.centre_give_way import stop_to_give_way
from landbridge.domain.ownership.centre_model import Decision, Effect, OperationState, PlacementState, Requeue, Timer
from landbridge.domain.ownership.centre_placement import take_back
from landbridge.domain.ownership.centre_shared import event, is_owned, is_terminal
from landbridge.domain.ownership.gang_model import (
    GANG_BROKEN,
    GANG_CLAIMED,
    GangBroken,
    GangComplete,
    GangShrunk,
    GangWaits,
)
from landbridge.domain.ownership.leases import GANG_INCOMPLETE
from landbridge.domain.ownership.policy import Timing
from landbridge.domain.ownership.rules import Rules


def _complete(state: OperationState, told: GangComplete, now: int, _rules: Rules, timing: Timing) -> Decision:
    """Let claims be granted from now on. Who holds an offer has an offer's time to ask for its grant."""
    if is_terminal(state) or state.placement is PlacementState.RECOVERING or state.together:
        return Decision(state)
    state = replace(state, together=True)
    if state.placement is PlacementState.OFFERED:
        state = replace(state, op_seq=state.op_seq + 1, timer=Timer.OFFER, due_at=now + timing.offer_ms)
        return Decision(state, (event(state, "observed", reason=GANG_CLAIMED, message=told.message),))
    return _judged_again(state, GANG_CLAIMED) if state.placement is PlacementState.IDLE else Decision(state)


def _broken(state: OperationState, told: GangBroken, now: int, _rules: Rules, _timing: Timing) -> Decision:
    """Give the place back, which for work that was granted means to be stopped first."""
    if is_terminal(state) or state.cancel or state.placement is PlacementState.RECOVERING:
        return Decision(state)
    if state.placement is PlacementState.OFFERED:
        return take_back(state, now, GANG_BROKEN, told.message)
    if not is_owned(state):
        return _judged_again(replace(state, together=False), GANG_BROKEN)
    if state.stopping:
        return Decision(state)
    state = replace(state, op_seq=state.op_seq + 1, stopping=GANG_BROKEN)
    return Decision(
        state, (event(state, "observed", reason=GANG_BROKEN, message=told.message), stop_to_give_way(state))
    )


def _shrunk(state: OperationState, _told: GangShrunk, _now: int, _rules: Rules, _timing: Timing) -> Decision:
    if is_terminal(state) or state.cancel or state.placement is not PlacementState.IDLE:
        return Decision(state)
    return _judged_again(state, "gang-shrunk")


def _judged_again(state: OperationState, reason: str) -> Decision:
    """Begin a new round of what waits: a decision for the old one may be on its way. A wait's end begins it as well."""
    if state.timer is Timer.RETRY:
        return Decision(state)
    state = replace(state, round=state.round + 1)
    again: Effect = Requeue(state.round, reason, state.exclude, only=state.pinned)
    return Decision(state, (again,))


def _waits(state: OperationState, told: GangWaits, _now: int, _rules: Rules, _timing: Timing) -> Decision:
    if state.placement is not PlacementState.OFFERED or not state.claimed:
        return Decision(state)
    state = replace(state, op_seq=state.op_seq + 1)
    return Decision(state, (event(state, "observed", reason=GANG_INCOMPLETE, message=told.message),))


GANG_HANDLERS: dict[type, Callable[[OperationState, Any, int, Rules, Timing], Decision]] = {
    GangComplete: _complete,
    GangBroken: _broken,
    GangShrunk: _shrunk,
    GangWaits: _waits,
}
