"""Which faults met which protocol states: what must have met, and what cannot."""

from collections import Counter

from simulation.world.coverage import STATES, Covered
from simulation.world.faults import FAULTS

WEATHER = ("drop", "repeat", "delay", "reorder")
ROWS = (*FAULTS, *WEATHER)

_WITHOUT_RESTORES = (
    "comes only after a restore; a clock that breaks its promise excuses overlaps, so it is not combined with those"
)
_FOUND = (
    "what waits for a decision about a slot is recovering; a slot of another operation is unknown only if its "
    "environment was declared dead during a recovery and came back, which is counted here and not demanded"
)
_REQUESTS = (
    "only requests can be dropped, and a claim is the only one about a single operation; work that is being stopped or "
    "is not heard of is hardly ever claimed: counted and not demanded"
)

UNREACHABLE: dict[tuple[str, str], str] = {
    ("clock-wrong", "recovering"): _WITHOUT_RESTORES,
    ("clock-wrong", "record-lost"): _WITHOUT_RESTORES,
    ("drop", "cancelling"): _REQUESTS,
    ("drop", "moving"): _REQUESTS,
    ("drop", "giving-way"): _REQUESTS,
    ("drop", "unheard"): _REQUESTS,
    **{("quarantine-decided", state): _FOUND for state in STATES if state != "recovering"},
}


def met(covered: Counter[tuple[str, str]]) -> Covered:
    """Return the faults and states out of all that was covered."""
    return Counter(
        {(kind.removeprefix("fault "), state): n for (kind, state), n in covered.items() if kind.startswith("fault ")}
    )


def thin(counts: Covered, least: int) -> dict[tuple[str, str], int]:
    """Return the cells that can be reached and were not met this often."""
    return {
        (fault, state): counts[fault, state]
        for fault in ROWS
        for state in STATES
        if (fault, state) not in UNREACHABLE and counts[fault, state] < least
    }
