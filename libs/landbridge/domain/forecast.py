"""When an operation may be admitted: the passes of admission run ahead, on a copy, as what is held is expected to end.

How long work lasts is taken from what lasted lately in the same queue and environment, else from what it declares.
The passes are run three times, for short, middling and long durations, so the answer is a range. Where nothing is known
of what stands in the way, it is unknown: never a guess.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from landbridge.domain.admission import Admission, Admitted
from landbridge.domain.candidate import environment_of
from landbridge.domain.ledger import Charge, Ledger
from landbridge.domain.limits import Limits
from landbridge.domain.queues import Plan, Wait
from landbridge.domain.tickets import Ticket

# Shares of what lasted lately that are shorter; and what a declared duration is multiplied with.
QUANTILES: Final = (0.25, 0.5, 0.75)
DECLARED_FACTORS: Final = (0.5, 1.0, 2.0)
ENOUGH_SEEN: Final = 3
# A forecast beyond so many ends is none: every step adds to what is not known.
MOST_ENDS: Final = 2_000
# What is asked to leave for other work is taken to do so within this.
LEAVES_WITHIN: Final = timedelta(seconds=30)

Joining = tuple[str, Plan, Ticket]
"""An operation that would come: its class's key, the plan of that, and its ticket."""
Lasted = Mapping[tuple[str, str], Sequence[float]]  # seconds from admission to end, by environment and queue


class Ahead(NamedTuple):
    """One run ahead: when and where the operation was admitted; without, `wait` says what it waited for first."""

    at: datetime | None
    admitted: Admitted | None
    wait: Wait | None


class Forecast(NamedTuple):
    """Admission after so many seconds, low to high; None: beyond what can be told. `unknown` are charges without end.

    `first` is the pass that would be made now. `seen` counts the ends that durations were taken from, `declared` the
    charges whose duration is what they declare.
    """

    first: Ahead
    low_s: float | None = None
    middle_s: float | None = None
    high_s: float | None = None
    seen: int = 0
    declared: int = 0
    unknown: int = 0
    place: str = ""

    @property
    def environment(self) -> str:
        return environment_of(self.place)


@dataclass(frozen=True)
class Snapshot:
    """The state of admission, safe from what happens to it meanwhile, with the operations that are followed."""

    charges: tuple[Charge, ...]
    waiting: tuple[tuple[str, Plan, tuple[Ticket, ...]], ...]
    limits: Limits
    operations: tuple[str, ...]

    def world(self) -> Admission:
        """Return an admission of its own in the same state."""
        made = Admission(Ledger(self.charges), self.limits)
        for key, plan, tickets in self.waiting:
            made.set_plan(key, plan)
            made.arrive(key, tickets)
        return made


def snapshot(
    admission: Admission,
    operation: str,
    joining: Joining | None = None,
    *,
    limits: Limits | None = None,
    admitted_at: Mapping[str, datetime] = {},
) -> Snapshot:
    """Copy the state of admission, to follow one operation: see `snapshot_together`."""
    return snapshot_together(
        admission, (operation,), () if joining is None else (joining,), limits=limits, admitted_at=admitted_at
    )


def snapshot_together(
    admission: Admission,
    operations: Sequence[str],
    joining: Sequence[Joining] = (),
    *,
    limits: Limits | None = None,
    admitted_at: Mapping[str, datetime] = {},
) -> Snapshot:
    """Copy the state of admission. `joining` are operations that would come, one behind the other.

    `limits` are newer ones than the admission has taken on; an idle one takes on none. `admitted_at` tells by operation
    when charges began that do not say so. Verdicts are taken to go on holding: an
    environment renews its evidence long before most waits are over.
    """
    waiting = {
        key: (_lasting(bucket.plan), tuple(bucket.tickets))
        for key, bucket in admission.buckets.items()
        if bucket.tickets
    }
    for key, plan, ticket in joining:
        waiting[key] = (_lasting(plan), (*waiting.get(key, (plan, ()))[1], ticket))
    rows = tuple((key, plan, tickets) for key, (plan, tickets) in waiting.items())
    charges = tuple(
        charge if charge.at is not None else replace(charge, at=admitted_at.get(charge.operation))
        for charge in admission.ledger.charges()
    )
    return Snapshot(charges, rows, limits or admission.limits, tuple(operations))


def _lasting(plan: Plan) -> Plan:
    return replace(plan, valid_until={})


def forecast(taken: Snapshot, lasted: Lasted, now: datetime) -> Forecast:
    """Run ahead; return when the one operation that is followed would be admitted, and where in the middling case."""
    return forecast_together(taken, lasted, now)[taken.operations[0]]


def forecast_together(taken: Snapshot, lasted: Lasted, now: datetime) -> dict[str, Forecast]:
    """Run ahead three times; return for each operation that is followed when it would be admitted, and where."""
    first = _run(taken, lasted, now, 1, ends=0)
    found = {
        operation: Forecast(ahead, 0.0, 0.0, 0.0, place=ahead.admitted.choice.place)
        for operation, ahead in first.items()
        if ahead.admitted is not None
    }
    if len(found) == len(first):
        return found
    runs = [_run(taken, lasted, now, case) for case in range(len(QUANTILES))]
    # Those that go at once hold places that the others wait for.
    before = (ahead.admitted.charge for ahead in first.values() if ahead.admitted is not None)
    sources = _sources((*taken.charges, *before), lasted)
    for operation, ahead in first.items():
        if ahead.admitted is None:
            found[operation] = _ranged(ahead, [run[operation] for run in runs], now, sources)
    return found


def _ranged(first: Ahead, runs: Sequence[Ahead], now: datetime, sources: Mapping[str, int]) -> Forecast:
    low, middling, high = [(run.at - now).total_seconds() if run.at is not None else None for run in runs]
    middle = runs[1].admitted
    place = middle.choice.place if middle is not None else ""
    return Forecast(first, low, middling, high, place=place, **sources)


def _sources(charges: Sequence[Charge], lasted: Lasted) -> dict[str, int]:
    """Count what the durations of what is held are taken from."""
    places = {(charge.environment, charge.queue) for charge in charges}
    seen = {place for place in places if len(lasted.get(place, ())) >= ENOUGH_SEEN}
    others = [charge for charge in charges if (charge.environment, charge.queue) not in seen]
    return {
        "seen": sum(len(lasted[place]) for place in seen),
        "declared": sum(charge.ends is not None for charge in others),
        "unknown": sum(charge.ends is None for charge in others),
    }


def _run(taken: Snapshot, lasted: Lasted, now: datetime, case: int, ends: int = MOST_ENDS) -> dict[str, Ahead]:
    """Run passes from now on, releasing what is held at its expected end, until all that is followed is admitted."""
    world, at = taken.world(), now
    found = {operation: Ahead(None, None, None) for operation in taken.operations}
    missing = set(found)
    ahead = [(end, c.operation) for c in taken.charges if (end := _end_of(c, lasted, now, case)) is not None]
    heapq.heapify(ahead)
    while True:
        for admitted in _passes(world, at):
            operation = admitted.ticket.operation
            if operation in missing:
                missing.remove(operation)
                found[operation] = Ahead(at, admitted, found[operation].wait)
            end = _end_of(admitted.charge, lasted, at, case)
            if end is not None:
                heapq.heappush(ahead, (end, operation))
        if not missing:
            return found
        for operation in missing:
            bucket = world.bucket_of(operation)
            wait = found[operation].wait or (bucket.wait if bucket is not None else None)
            found[operation] = Ahead(None, None, wait)
        for leaving in world.evicted:
            heapq.heappush(ahead, (at + LEAVES_WITHIN, leaving.charge.operation))
        world.evicted.clear()
        timer = world.next_timer
        if ends <= 0 or not (ahead or (timer is not None and timer > at)):
            return found
        at = _next(ahead, timer, at)
        while ahead and ahead[0][0] <= at:
            world.release(heapq.heappop(ahead)[1])
            ends -= 1


def _passes(world: Admission, at: datetime) -> list[Admitted]:
    admitted = world.admit(at)
    while world.has_more:
        more = world.admit(at)
        if not more:
            break
        admitted += more
    return admitted


def _next(ahead: Sequence[tuple[datetime, str]], timer: datetime | None, at: datetime) -> datetime:
    moments = [moment for moment in (ahead[0][0] if ahead else None, timer) if moment is not None and moment > at]
    return min(moments, default=at)


def expected_end(charge: Charge, lasted: Lasted, now: datetime) -> datetime | None:
    """Return when what is charged ends in the middling case; None if nothing tells."""
    return _end_of(charge, lasted, now, QUANTILES.index(0.5))


def _end_of(charge: Charge, lasted: Lasted, now: datetime, case: int) -> datetime | None:
    """Return when what is charged is expected to end; None if nothing tells."""
    began = charge.at or now
    age = max((now - began).total_seconds(), 0.0)
    seen = lasted.get((charge.environment, charge.queue), ())
    if len(seen) >= ENOUGH_SEEN:
        longer = sorted(value for value in seen if value > age)
        # What has outlasted all that was seen may last as long again.
        rest = quantile(longer, QUANTILES[case]) - age if longer else max(age, 1.0)
        return now + timedelta(seconds=rest)
    if charge.ends is None:
        return None
    declared = (charge.ends - began) * DECLARED_FACTORS[case]
    return max(began + declared, now + timedelta(seconds=1))


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which that share of ordered values lies, interpolated."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
