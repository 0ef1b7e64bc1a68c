"""What was met by which fault: the table of faults and protocol states, and what cannot meet."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from landbridge.domain.ownership.centre_model import OWNED, OperationState, PlacementState, Timer
from landbridge.domain.ownership.centre_move import is_move_pending

STATES = (
    "waiting", "backing-off", "offered", "claimed", "running", "unheard", "cancelling", "moving", "giving-way",
    "record-lost", "recovering", "done",
)  # fmt: skip
"""`unheard`: claimed or running in an environment that is not heard; `record-lost`: it counts as running there."""

_PLAIN = {
    PlacementState.OFFERED: "offered",
    PlacementState.CLAIMED: "claimed",
    PlacementState.RUNNING: "running",
    PlacementState.RECOVERING: "recovering",
    PlacementState.DONE: "done",
}


def protocol_state(state: OperationState) -> str:
    """Name where an operation stands in the protocol: one of STATES."""
    if state.placement is PlacementState.IDLE:
        return "backing-off" if state.timer is Timer.RETRY else "waiting"
    if state.placement in OWNED:
        if state.missing:
            return "record-lost"
        if state.cancel:
            return "cancelling"
        if is_move_pending(state):
            return "moving"
        if state.stopping:
            return "giving-way"
        if state.control_lost:
            return "unheard"
    return _PLAIN[state.placement]


Covered = Counter[tuple[str, str]]


def table(covered: Mapping[tuple[str, str], int], faults: tuple[str, ...], unreachable: Mapping[tuple[str, str], str],
          seeds: int) -> str:  # fmt: skip
    """Return the coverage as a page: faults down, states across, and why some cells stay empty."""
    lines = [
        "# Faults and protocol states",
        "",
        f"How often each fault met an operation in each state, over {seeds} seeds of each plan. A fault of an",
        "environment meets the operations placed there; one of the centre meets all; one of a message or of a person",
        "the operation that it is about.",
        "",
        "| fault | " + " | ".join(STATES) + " |",
        "|---|" + "--:|" * len(STATES),
    ]
    for fault in faults:
        counts = (str(covered.get((fault, state), 0) or "-") for state in STATES)
        lines.append(f"| {fault} | " + " | ".join(counts) + " |")
    lines += ["", "## What cannot meet", ""]
    lines += [f"- {fault} x {state}: {why}" for (fault, state), why in sorted(unreachable.items())]
    return "\n".join(lines) + "\n"


def write(page: str, to: Path) -> None:
    """Write the page for people."""
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(page, encoding="utf-8")
