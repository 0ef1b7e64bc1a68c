"""How an operation stands about one round, told to who holds a charge for it. Pure."""

from enum import StrEnum

from landbridge.domain.lifecycle import TERMINAL
from landbridge.domain.ownership.centre_model import OperationState, PlacementState


class Standing(StrEnum):
    """Whether a placement of a round is there, and if not, why."""

    PLACED = "placed"
    IDLE = "idle"
    """Nothing was heard of a decision for this round, or it was not carried out yet."""
    OVER = "over"
    ENDED = "ended"
    AHEAD = "ahead"
    """The centre knows of no such round: it, or who asks, was restored."""
    ELSEWHERE = "elsewhere"
    UNKNOWN = "unknown"


def standing(state: OperationState | None, round_: int, environment: str) -> Standing:
    """Tell how an operation stands about a round in an environment; `state` None: the centre does not know it.

    Over and ended are for good: rounds never go back, and nothing follows an end.
    """
    if state is None:
        return Standing.UNKNOWN
    if state.phase in TERMINAL:
        return Standing.ENDED
    if round_ != state.round:
        return Standing.OVER if round_ < state.round else Standing.AHEAD
    if state.placement in (PlacementState.IDLE, PlacementState.DONE):
        return Standing.IDLE
    return Standing.PLACED if state.environment == environment else Standing.ELSEWHERE
