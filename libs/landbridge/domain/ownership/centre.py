"""The centre's side of ownership: `decide(state, message, now) -> Decision`.

Pure: the same code runs in the coordinator under the row's lock, in the state machine tests and in the simulation.
`now` is the coordinator's clock in milliseconds; it decides only timers whose early or late firing is harmless.
Handling a message twice leaves the state as handling it once: events and commands repeat no effect in the environment.
"""

from collections.abc import Callable
from typing import Any

from landbridge.domain.ownership.centre_gang import GANG_HANDLERS
from landbridge.domain.ownership.centre_give_way import GIVE_WAY_HANDLERS
from landbridge.domain.ownership.centre_loss import LOSS_HANDLERS
from landbridge.domain.ownership.centre_model import (
    Accepted,
    Decision,
    Message,
    OperationState,
    PlacementState,
    Timer,
)
from landbridge.domain.ownership.centre_placement import PLACEMENT_HANDLERS
from landbridge.domain.ownership.centre_reports import REPORT_HANDLERS
from landbridge.domain.ownership.policy import DEFAULT_TIMING, Timing
from landbridge.domain.ownership.rules import PRODUCTION, Rules

_HANDLERS: dict[type, Callable[[OperationState, Any, int, Rules, Timing], Decision]] = {
    **PLACEMENT_HANDLERS,
    **REPORT_HANDLERS,
    **LOSS_HANDLERS,
    **GIVE_WAY_HANDLERS,
    **GANG_HANDLERS,
}


def accept(accepted: Accepted, now: int) -> OperationState:
    """Return the first state of an operation that intake has committed."""
    due = now + accepted.queue_timeout_ms
    return OperationState(
        operation=accepted.operation,
        project=accepted.project,
        policy=accepted.policy,
        retries=accepted.retries,
        queue_timeout_ms=accepted.queue_timeout_ms,
        generation=accepted.generation,
        placement=PlacementState.RECOVERING if accepted.recovering else PlacementState.IDLE,
        timer=Timer.NONE if accepted.recovering else Timer.QUEUE,
        due_at=0 if accepted.recovering else due,
        queue_due=due,
        start_within_ms=accepted.start_within_ms,
        gang=accepted.gang,
    )


def decide(
    state: OperationState, message: Message, now: int, rules: Rules = PRODUCTION, timing: Timing = DEFAULT_TIMING
) -> Decision:
    """Decide what one message changes for one operation, and what must be done about it.

    The operation must exist; `Accepted` creates it, see `accept`, and changes nothing afterwards.
    """
    if isinstance(message, Accepted):
        return Decision(state)
    return _HANDLERS[type(message)](state, message, now, rules, timing)
