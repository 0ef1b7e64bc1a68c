"""Sum up what runs and waits in each environment, for predicting when there is room.

How long work lasts is taken, as in forecasts, from what lasted lately in the same queue and environment, else from what
it declares. Work that waits may go to any environment that is eligible for it: each is taken to get an equal part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Final

from landbridge.domain.admission import Admission
from landbridge.domain.backlog import Ahead, Backlog, Line, Step
from landbridge.domain.candidate import environment_of
from landbridge.domain.forecast import ENOUGH_SEEN, Lasted, expected_end, quantile
from landbridge.domain.ledger import Amounts, Charge, ScopeKind
from landbridge.domain.queues import Bucket, WaitReason
from landbridge.domain.units import two_digits

# So many steps tell nearly as much as thousands; each takes the last end of those that it stands for.
MOST_STEPS: Final = 24
# Of more charges in all, and of more classes that wait for environments, every second, third, … is looked at and stands
# for its neighbours: this is worked out between two turns.
MOST_CHARGES: Final = 5_000
MOST_WAITS: Final = 10_000
# What waits for these takes room in an environment as soon as there is some.
_NOTHING_BUSY: float | None = 0.0
_TAKES_ROOM: Final = frozenset({WaitReason.AT_CAPACITY, WaitReason.RESERVED, WaitReason.MAKING_ROOM})


def backlogs(
    admission: Admission, capacity: Mapping[str, Amounts], lasted: Lasted, now: datetime
) -> dict[str, Backlog]:
    """Return the backlog of every environment of `capacity` in which something is held or for which something waits."""
    sums = _waiting(admission.buckets.values(), lasted)
    stride = len(admission.ledger) // MOST_CHARGES + 1
    found = {}
    for name, most in capacity.items():
        charges = list(admission.ledger.held_in(ScopeKind.ENVIRONMENT, name))
        waits = sums.get(name)
        if charges or waits is not None:
            used = admission.ledger.used(ScopeKind.ENVIRONMENT, name)
            held = _Held(charges, stride, lasted, now)
            lines = {
                resource: held.line(resource, amount, used.get(resource, 0), waits) for resource, amount in most.items()
            }
            waiting, unknown = (waits.count, waits.unknown) if waits is not None else (0.0, 0.0)
            found[name] = Backlog(lines, len(charges), round(waiting), round(held.unknown + unknown))
    return found


@dataclass(slots=True)
class _Sum:
    """What waits for one environment: operations; by resource and priority how much, and how much times seconds."""

    count: float = 0.0
    unknown: float = 0.0
    parts: dict[str, dict[int, tuple[float, float | None]]] = field(default_factory=dict)

    def add(self, plan_amounts: Amounts, priority: int, count: float, seconds: float | None) -> None:
        self.count += count
        self.unknown += count if seconds is None else 0.0
        for resource, amount in plan_amounts.items():
            by_priority = self.parts.setdefault(resource, {})
            taken, busy = by_priority.get(priority, (0.0, 0.0))
            more = None if busy is None or seconds is None else busy + amount * count * seconds
            by_priority[priority] = (taken + amount * count, more)

    def ahead(self, resource: str) -> tuple[Ahead, ...]:
        """Return what waits for a resource with each priority or a higher one."""
        found: list[Ahead] = []
        taken, busy = 0.0, _NOTHING_BUSY
        for priority, (amount, seconds) in sorted(self.parts.get(resource, {}).items(), reverse=True):
            taken += amount
            busy = None if busy is None or seconds is None else busy + seconds
            found.append(Ahead(priority, round(taken), None if busy is None else two_digits(busy / taken)))
        return tuple(found)


def _waiting(buckets: Iterable[Bucket], lasted: Lasted) -> dict[str, _Sum]:
    """Sum up what waits, by environment."""
    waiting = [bucket for bucket in buckets if _takes_room(bucket)]
    stride = sum(len(bucket.plan.amounts) for bucket in waiting) // MOST_WAITS + 1
    looked_at = waiting[::stride]
    scale = sum(len(b.tickets) for b in waiting) / sum(len(b.tickets) for b in looked_at) if looked_at else 1.0
    medians = {place: quantile(sorted(seen), 0.5) for place, seen in lasted.items() if len(seen) >= ENOUGH_SEEN}
    sums: dict[str, _Sum] = {}
    for bucket in looked_at:
        plan, count = bucket.plan, len(bucket.tickets) * scale / len(bucket.plan.amounts)
        declared = plan.expected.total_seconds() if plan.expected is not None else None
        for place, amounts in plan.amounts.items():
            environment = environment_of(place)
            seconds = medians.get((environment, plan.queue), declared)
            sums.setdefault(environment, _Sum()).add(amounts, plan.priority, count, seconds)
    return sums


def _takes_room(bucket: Bucket) -> bool:
    waits = bucket.tickets and bucket.plan.amounts
    return bool(waits) and (bucket.wait is None or bucket.wait.reason in _TAKES_ROOM)


class _Held:
    """What is held in one environment, or every so many of it, with the seconds until each is expected to end."""

    def __init__(self, charges: list[Charge], stride: int, lasted: Lasted, now: datetime) -> None:
        looked_at = charges[::stride]
        self._scale = len(charges) / len(looked_at) if looked_at else 1.0
        expected = [(expected_end(charge, lasted, now), charge.amounts) for charge in looked_at]
        ends = [((end - now).total_seconds(), amounts) for end, amounts in expected if end is not None]
        self._ends = sorted(ends, key=itemgetter(0))
        self.unknown = (len(looked_at) - len(ends)) * self._scale

    def line(self, resource: str, most: int, used: int, waits: _Sum | None) -> Line:
        """Return when how much of a resource becomes free, and what waits for it."""
        released = [(after, amounts[resource]) for after, amounts in self._ends if resource in amounts]
        size = -(-len(released) // MOST_STEPS) or 1
        steps, more = [Step(0.0, most - used)], 0.0
        for at in range(0, len(released), size):
            group = released[at : at + size]
            more += sum(amount for _, amount in group) * self._scale
            steps.append(Step(two_digits(group[-1][0]), min(round(most - used + more), most)))
        return Line(tuple(steps), waits.ahead(resource) if waits is not None else ())
