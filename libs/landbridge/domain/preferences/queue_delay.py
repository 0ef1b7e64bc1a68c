"""How long an operation that is placed here waits for its start."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from landbridge.domain.backlog import Backlog, Ready, ready, room_within
from landbridge.domain.candidate import Candidate
from landbridge.domain.catalogue import Catalogue
from landbridge.domain.contract import RUNNING
from landbridge.domain.ledger import Amounts, demand, demand_anywhere
from landbridge.domain.preferences.base import Measure, Measurement, Observed
from landbridge.domain.requirements import Requirements

ENOUGH_STARTS: Final = 3
MOST_MEASURED: Final = 100
# What every operation takes, whatever else it takes.
_EVERY: Final[Amounts] = {RUNNING: 1}


class Line(NamedTuple):
    """An environment in front of which work waits. Without a `backlog` nothing does, or nothing tells of starts.

    `ready` is for the priorities that were asked for so far; `measured` what was measured, by seconds until there is
    room, which are mostly one of a few.
    """

    candidate: Candidate
    start: Measurement
    backlog: Backlog | None
    ready: dict[int, Ready]
    measured: dict[float, Measurement]
    told: str


class QueueDelay(Measure[Line]):
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

    def profile(self, candidate: Candidate, observed: Observed) -> Line:
        start, backlog = start_delay(candidate, observed), observed.backlog
        if backlog is None or start.value is None:
            return Line(candidate, start, None, {}, {}, "")
        return Line(candidate, start, backlog, {}, {0.0: start}, f"{_ahead(backlog)}; starts: {start.source}")

    def asking(self, requirements: Requirements) -> Callable[[Sequence[Line]], list[Measurement]]:
        anywhere = demand_anywhere(requirements)

        def ask(profiles: Sequence[Line]) -> list[Measurement]:
            found = []
            catalogue, priority = None, 0
            for line in profiles:
                candidate, start, backlog, known, measured, _ = line
                if backlog is None:
                    found.append(start)
                    continue
                if candidate.catalogue is not catalogue:  # nearly all have the same
                    catalogue = candidate.catalogue
                    priority = _priority(requirements, catalogue)
                ahead = known.get(priority)
                if ahead is None:
                    ahead = known[priority] = ready(backlog, priority, _EVERY)
                seconds, least_s = room_within(ahead, anywhere or demand(requirements, candidate))
                measurement = measured.get(seconds) if seconds is not None else None
                found.append(measurement or _measurement(line, seconds, least_s))
            return found

        return ask


def _measurement(line: Line, seconds: float | None, least_s: float) -> Measurement:
    """Tell when there is room and from what that is known."""
    if seconds is None or line.start.value is None:
        least = f", not before {least_s:g} s" if least_s else ""
        return Measurement(None, "s", f"when there is room is unknown{least}: {line.told}")
    # What lasts unknown times is taken to stay: room may come sooner, and what waits may keep it longer.
    made = Measurement(seconds + line.start.value, "s", f"room predicted in {seconds:g} s: {line.told}")
    if len(line.measured) < MOST_MEASURED:
        line.measured[seconds] = made
    return made


def start_delay(candidate: Candidate, observed: Observed) -> Measurement:
    """Measure seconds from decision to start, where there is room."""
    if observed.starts >= ENOUGH_STARTS:
        return Measurement(observed.start_delay_s, "s", f"mean of the last {observed.starts} starts")
    aimed = candidate.contract.start_within_ms
    if aimed is not None:
        return Measurement(aimed / 1000, "s", f"objective of contract version {candidate.contract_version}")
    return Measurement(None, "s", "no starts observed and no objective stated")


def _priority(requirements: Requirements, catalogue: Catalogue) -> int:
    queue = catalogue.queues.get(requirements.queue)
    return queue.priority_of(requirements.priority) if queue is not None else 0


def _ahead(backlog: Backlog) -> str:
    unknown = f", {backlog.unknown} of unknown duration" if backlog.unknown else ""
    return f"{backlog.held} placed, {backlog.waiting} waiting{unknown}"
