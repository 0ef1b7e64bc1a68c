"""The centre's side: a person moves an operation to another environment, by the ordinary rules.

Nothing is freed by the wish: the environment seals a checkpoint if it can, stops, and gives the placement back.
"""

from msgspec.structs import replace

from landbridge.domain.ownership.centre_model import (
    Decision,
    MoveRequested,
    OperationState,
    PlacementState,
    Requeue,
    SendStop,
    Timer,
)
from landbridge.domain.ownership.centre_placement import take_back
from landbridge.domain.ownership.centre_shared import event, is_owned, is_terminal
from landbridge.domain.ownership.environment_work import MOVED
from landbridge.domain.ownership.policy import OnDisconnect, Timing
from landbridge.domain.ownership.rules import Rules

_GRACE_MS = 30_000


def why_not_move(state: OperationState, to: str) -> str:
    """Say why a person cannot move the operation there; empty = the rules of placement decide."""
    if is_terminal(state):
        return f"it has ended: {state.phase.value}"
    if state.cancel:
        return "a cancel is pending"
    if state.placement is PlacementState.RECOVERING:
        return "the centre recovers and has not yet seen what the environments hold"
    if is_owned(state) and to == state.environment:
        return f"it is in {to} already"
    if is_owned(state) and state.policy.policy is OnDisconnect.MUST_FINISH:
        return "it is declared must-finish; wait for its end, or cancel it with force"
    return ""


def move_requested(state: OperationState, wish: MoveRequested, now: int, _rules: Rules, _timing: Timing) -> Decision:
    """Pin the operation to an environment and have its present one stop it; what waits is judged anew at once."""
    if why_not_move(state, wish.to):
        return Decision(state)
    where = f"to {wish.to}" if wish.to else "to wherever it may run"
    message = f"{wish.by} moves it {where}: {wish.reason}"
    repeated = state.pinned == wish.to and not state.exclude
    state = replace(state, pinned=wish.to)
    if state.placement is PlacementState.OFFERED and wish.to not in ("", state.environment):
        return take_back(state, now, "move-requested", message)
    state = replace(state, op_seq=state.op_seq + 1)
    told = event(state, "observed", reason="move-requested", message=message)
    if is_owned(state):
        return Decision(state, (told, stop_for_move(state)))
    if repeated or state.placement is PlacementState.OFFERED or state.timer is Timer.RETRY:
        return Decision(state, (told,))  # offered or judged as wished already; a wait's end begins the next round
    state = replace(state, round=state.round + 1, exclude=())
    return Decision(state, (told, Requeue(state.round, "move-requested", only=state.pinned)))


def is_move_pending(state: OperationState) -> bool:
    """Whether the environment that holds the operation has yet to give it back."""
    return bool(state.pinned) and is_owned(state) and state.pinned != state.environment


def stop_for_move(state: OperationState) -> SendStop:
    """Return the command: a checkpoint first where one is declared, then the end."""
    return SendStop(state.environment, state.epoch, MOVED, state.policy.grace_ms or _GRACE_MS)
