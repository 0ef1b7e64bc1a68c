"""How long an operation that is placed here waits for its start."""

from typing import Final

from landbridge.domain.backlog import Backlog, Room, room_after
from landbridge.domain.candidate import Candidate
from landbridge.domain.ledger import demand
from landbridge.domain.preferences.base import Measure, Measurement, Observed
from landbridge.domain.requirements import Requirements

ENOUGH_STARTS: Final = 3


class QueueDelay(Measure):
    """Seconds until an operation starts here: until there is room for it, and then from decision to start.

    Room is predicted from what runs there and waits ahead, its expected durations and the capacity: after all that
    waits with the same priority or a higher one. Starting takes as long as observed lately, else as the owner aims at.
    Where room depends on work of unknown duration, or nothing tells of starts, the delay is unknown.
    """

    name = "queue-delay"
    fields = ("accelerator", "cpu", "memory", "scratch", "replicas", "queue", "priority")
    observes = True

    def reads(self, requirements: Requirements, *, backlog: bool) -> tuple[str, ...]:  # noqa: ARG002
        """Where nothing runs or waits there is room for everything."""
        return self.fields if backlog else ()

    def measure(self, requirements: Requirements, candidate: Candidate, observed: Observed) -> Measurement:
        start = start_delay(candidate, observed)
        backlog = observed.backlog
        if backlog is None or start.value is None:
            return start
        room = room_after(backlog, demand(requirements, candidate), _priority(requirements, candidate))
        if room.seconds == 0.0:
            return start
        told = f"{_told(room, backlog)}; starts: {start.source}"
        return Measurement(None if room.seconds is None else room.seconds + start.value, "s", told)


def start_delay(candidate: Candidate, observed: Observed) -> Measurement:
    """Measure seconds from decision to start, where there is room."""
    if observed.starts >= ENOUGH_STARTS:
        return Measurement(observed.start_delay_s, "s", f"mean of the last {observed.starts} starts")
    aimed = candidate.contract.start_within_ms
    if aimed is not None:
        return Measurement(aimed / 1000, "s", f"objective of contract version {candidate.contract_version}")
    return Measurement(None, "s", "no starts observed and no objective stated")


def _priority(requirements: Requirements, candidate: Candidate) -> int:
    queue = candidate.catalogue.queues.get(requirements.queue)
    return queue.priority_of(requirements.priority) if queue is not None else 0


def _told(room: Room, backlog: Backlog) -> str:
    unknown = f", {backlog.unknown} of unknown duration" if backlog.unknown else ""
    ahead = f"{backlog.held} placed, {backlog.waiting} waiting{unknown}"
    if room.seconds is None:
        least = f", not before {room.least_s:g} s" if room.least_s else ""
        return f"when there is room is unknown{least}: {ahead}"
    # What lasts unknown times is taken to stay: room may come sooner, and what waits may keep it longer.
    return f"room predicted in {room.seconds:g} s: {ahead}"
