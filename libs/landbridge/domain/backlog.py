"""What runs and waits ahead in an environment, small enough to be kept for every one, and how long room takes by it.

Work of unknown duration is taken to stay: what depends on its end is unknown, never soon. `backlogs` makes these.
"""

from collections.abc import Mapping
from typing import NamedTuple

from landbridge.domain.ledger import Amounts


class Step(NamedTuple):
    """After so many seconds so much of a resource is free, if nothing starts meanwhile."""

    after_s: float
    free: int


class Ahead(NamedTuple):
    """What waits with a priority or a higher one: how much of a resource it takes, and seconds it lasts on average.

    `seconds` None: of some of it nothing tells.
    """

    priority: int
    amount: int
    seconds: float | None


class Line(NamedTuple):
    """One limited resource: when how much becomes free, and what waits for it, highest priority first."""

    steps: tuple[Step, ...]
    ahead: tuple[Ahead, ...] = ()


class Backlog(NamedTuple):
    """One environment: its limited resources; how many operations hold places and wait; `unknown` of them how long."""

    lines: Mapping[str, Line]
    held: int = 0
    waiting: int = 0
    unknown: int = 0


class Room(NamedTuple):
    """Seconds until there is room; None: unknown, and certainly not before `least_s`, if nobody leaves early."""

    seconds: float | None
    least_s: float = 0.0


AT_ONCE = Room(0.0)


def room_after(backlog: Backlog, amounts: Amounts, priority: int) -> Room:
    """Return how long it takes until `amounts` are free, after all that waits with that priority or a higher one."""
    seconds, least = 0.0, 0.0
    known = True
    for resource, amount in amounts.items():
        line = backlog.lines.get(resource)
        if line is None:
            continue
        found = _one(line, amount, priority)
        known &= found.seconds is not None
        seconds, least = max(seconds, found.seconds or 0.0), max(least, found.least_s)
    return Room(seconds, seconds) if known else Room(None, max(seconds, least))


def _one(line: Line, amount: int, priority: int) -> Room:
    before = next((ahead for ahead in reversed(line.ahead) if ahead.priority >= priority), None)
    wanted = amount + (before.amount if before is not None else 0)
    for step in line.steps:
        if step.free >= wanted:
            return Room(step.after_s, step.after_s)
    last = line.steps[-1]
    if last.free < amount or last.free <= 0 or before is None or before.seconds is None:
        return Room(None, last.after_s)
    # What does not fit beside each other goes through one after the other, as fast as places become free.
    seconds = last.after_s + (wanted - last.free) / last.free * before.seconds
    return Room(seconds, seconds)
