"""The one lifecycle of an operation: eight phases, the moves between them, and which of them are final.

Only the coordinator moves an operation. A provider's own state is kept beside the phase, never instead of it.
"""

from enum import StrEnum


class Phase(StrEnum):
    """Where an operation stands, in the words users see."""

    ACCEPTED = "accepted"
    QUEUED = "queued"
    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Condition(StrEnum):
    """What is also true of an operation, without changing its phase."""

    UNPLACEABLE = "unplaceable"
    CONTROL_LOST = "control-lost"
    CANCELLING = "cancelling"
    SUSPENDED = "suspended"
    POSSIBLE_OVERLAP = "possible-overlap"
    """Moved by emergency override; nobody has proven yet that the old attempt is over."""


TERMINAL: frozenset[Phase] = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED})

# accepted -> pending needs no `queued` in between: nothing had to wait.
# pending -> queued is an offer taken back; pending -> retrying an attempt that failed before its start was seen.
# queued, retrying -> completed is work thought lost whose completion arrives before it was placed again.
TRANSITIONS: dict[Phase, frozenset[Phase]] = {
    Phase.ACCEPTED: frozenset({Phase.QUEUED, Phase.PENDING, Phase.FAILED, Phase.CANCELLED}),
    Phase.QUEUED: frozenset({Phase.PENDING, Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.PENDING: frozenset({Phase.QUEUED, Phase.RUNNING, Phase.RETRYING, Phase.FAILED, Phase.CANCELLED}),
    Phase.RUNNING: frozenset({Phase.RETRYING, Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.RETRYING: frozenset({Phase.QUEUED, Phase.PENDING, Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.COMPLETED: frozenset(),
    Phase.FAILED: frozenset(),
    Phase.CANCELLED: frozenset(),
}


def is_terminal(phase: Phase) -> bool:
    """Whether nothing can follow this phase."""
    return phase in TERMINAL


def may_move(current: Phase, following: Phase) -> bool:
    """Whether the declared graph has this edge. Staying in a phase is not a move."""
    return following in TRANSITIONS[current]
