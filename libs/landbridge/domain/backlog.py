"""What runs and waits ahead in an environment, small enough to be kept for every one, and how long room takes by it.

Work of unknown duration is taken to stay: what depends on its end is unknown, never soon. `backlogs` makes these.
"""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from landbridge.domain.ledger import NOTHING, Amounts


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


class Front(NamedTuple):
    """One line as it is for one priority. `most` is the most that was free at each step or before it."""

    resource: str
    most: tuple[int, ...]
    after_s: tuple[float, ...]
    last: Step
    before: int  # how much of the resource goes to what is ahead
    seconds: float | None  # that it lasts on average


class Ready(NamedTuple):
    """A backlog for many questions of one priority. `room` is by the lines of which all of them take the same."""

    fronts: tuple[Front, ...]
    room: tuple[float | None, float] = AT_ONCE


def ready(backlog: Backlog, priority: int, every: Amounts = NOTHING) -> Ready:
    """Make a backlog ready for questions of one priority, of which each asks for `every` besides all else."""
    fronts = [_front(resource, line, priority) for resource, line in backlog.lines.items()]
    same = tuple([front for front in fronts if front.resource in every])
    return Ready(tuple([front for front in fronts if front.resource not in every]), room_within(Ready(same), every))


def _front(resource: str, line: Line, priority: int) -> Front:
    after_s, free = zip(*line.steps, strict=True)
    before = next((ahead for ahead in reversed(line.ahead) if ahead.priority >= priority), None)
    amount, seconds = (before.amount, before.seconds) if before is not None else (0, None)
    return Front(resource, tuple(accumulate(free, max)), after_s, line.steps[-1], amount, seconds)


def room_after(backlog: Backlog, amounts: Amounts, priority: int) -> Room:
    """Return how long it takes until `amounts` are free, after all that waits with that priority or a higher one."""
    return Room(*room_within(ready(backlog, priority), amounts))


def room_within(lines: Ready, amounts: Amounts) -> tuple[float | None, float]:
    """Return the fields of what `room_after` returns, of lines that are ready."""
    fronts, (known_s, least) = lines
    seconds, known = known_s or 0.0, known_s is not None
    for resource, most, after_s, last, before, lasts in fronts:
        amount = amounts.get(resource)
        if amount is None:
            continue
        step = bisect_left(most, amount + before)
        found = after_s[step] if step < len(most) else _after_all(last, amount, before, lasts)
        if found is None:
            known, least = False, max(least, last.after_s)
        elif found > seconds:
            seconds = found
    return (seconds, seconds) if known else (None, max(seconds, least))


def _after_all(last: Step, amount: int, before: int, seconds: float | None) -> float | None:
    """Return when there is room after the last step; None: that is unknown."""
    if last.free < amount or last.free <= 0 or seconds is None:
        return None
    # What does not fit beside each other goes through one after the other, as fast as places become free.
    return last.after_s + (amount + before - last.free) / last.free * seconds
