"""For whom others have to leave: promises are given where that is allowed and enough, and taken back."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from landbridge.domain.keeper import Keeper
from landbridge.domain.ledger import Charge, Ledger, Usage
from landbridge.domain.limits import Limits
from landbridge.domain.placement import groups_in_question
from landbridge.domain.preemption import Means, make_room
from landbridge.domain.promises import Promises
from landbridge.domain.queues import Bucket
from landbridge.domain.tickets import Ticket


class Evicted(NamedTuple):
    """One operation that must leave, and the one that it leaves for."""

    charge: Charge
    claimant: Charge


class RoomMaker:
    """Gives and takes promises. `evicted` are those to be asked to leave, until somebody takes note.

    `wake` is told what is free for everybody again.
    """

    def __init__(self, ledger: Ledger, promises: Promises, keeper: Keeper, wake: Callable[[Charge], None]) -> None:
        self._ledger = ledger
        self._promises = promises
        self._keeper = keeper
        self._wake = wake
        self.evicted: list[Evicted] = []

    def promise(
        self,
        bucket: Bucket,
        ticket: Ticket,
        limits: Limits,
        verdict_holds: Callable[[str], bool],
        now: datetime,
        *,
        overflow: bool,
    ) -> bool:
        """Promise a bucket's oldest operation room where others can be made to leave; tell whether it has a promise."""
        plan, key = bucket.plan, bucket.key
        means = Means(plan.preempts, plan.reclaim)
        if not means or plan.order is None:
            return False
        planned = self._promises.planned_without(key)
        promised = self._promises.promised.get(key)
        if promised is not None:
            if promised.operation == ticket.operation and _fits(promised, planned, limits):
                return True
            self.take_back(key)
        for place in groups_in_question(plan.order, overflow=overflow):
            kept = self._keeper.kept_from(bucket, place, planned, now)
            if kept is not None or not verdict_holds(place):
                continue
            wanted = plan.charge(ticket, place, now)
            made = make_room(wanted, means, self._ledger, limits, planned, self._promises.leaving)
            if made is not None:
                self._promises.promise(key, made.charge, made.leaving)
                self.evicted += [Evicted(charge, made.charge) for charge in made.leaving]
                return True
        return False

    def take_back(self, key: str) -> None:
        """Give what was promised to a bucket back to everybody."""
        promised = self._promises.take_back(key)
        if promised is not None:
            self._wake(promised)


def _fits(charge: Charge, usage: Usage, limits: Limits) -> bool:
    """Tell whether a promise can still be kept. Whether it is borrowed was settled when it was given."""
    if limits.refused(usage, charge.queue, charge.project, charge.amounts) is not None:
        return False
    return limits.full(usage, charge.environment, charge.amounts) is None
