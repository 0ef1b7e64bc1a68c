"""Who goes next, and whether there is room.

Operations of one requirement class wait in one bucket. A pass takes the bucket whose turn it is, admits its oldest
operation if every limit holds, and goes on until nothing more can be admitted. A bucket that cannot be admitted sleeps
on the limits in its way and is tried again when one of them gives way, or when its time has come; trying all buckets in
every pass would admit exactly the same.
"""

import heapq
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from landbridge.domain import queues
from landbridge.domain.ledger import Amounts, Charge, Ledger, Limit, Limits, ScopeKind
from landbridge.domain.placement import Choice, choose
from landbridge.domain.queues import Bucket, Plan, Ticket, Turn, Wait, turn
from landbridge.domain.room import Room
from landbridge.domain.sleepers import Sleepers

# How long the best environment's resources are given to smaller work before they are kept for an operation.
PATIENCE = timedelta(minutes=5)


Line = list[tuple[int, str]]  # a heap of buckets by the position of their oldest operation


class Admitted(NamedTuple):
    """One operation that was admitted, with what it is charged."""

    bucket: str
    ticket: Ticket
    choice: Choice
    charge: Charge


class Revalidate(Protocol):
    """Tells until when a verdict that has run out holds again, by the newest view; None if it does not."""

    def __call__(self, bucket: str, environment: str, now: datetime) -> datetime | None: ...


def _never_again(bucket: str, environment: str, now: datetime) -> datetime | None:  # noqa: ARG001
    return None


class Admission:
    """The waiting operations, the ledger, and the passes over them. Changes only by its methods; knows no clock."""

    def __init__(
        self,
        ledger: Ledger,
        limits: Limits,
        *,
        patience: timedelta = PATIENCE,
        revalidate: Revalidate = _never_again,
    ) -> None:
        self.ledger = ledger
        self.limits = limits
        self.buckets: dict[str, Bucket] = {}
        self._patience = patience
        self.revalidate = revalidate
        self._sleepers = Sleepers()
        self._bucket_of: dict[str, str] = {}
        self._reserved: dict[Limit, str] = {}

    # -- what happens -------------------------------------------------------------------------------------------------

    def set_limits(self, limits: Limits) -> None:
        """Take on new limits or capacities: everything is tried again."""
        self.limits = limits
        self._sleepers.wake_all(self.buckets)

    def set_plan(self, key: str, plan: Plan) -> None:
        """Take on what is known about a class; what waits in it is tried again."""
        bucket = self.buckets.get(key)
        if bucket is None:
            self.buckets[key] = Bucket(key, plan)
        else:
            self._unreserve(key)
            bucket.plan = plan
        self._sleepers.wake(key)

    def arrive(self, key: str, tickets: Iterable[Ticket]) -> list[Ticket]:
        """Let operations wait in a bucket whose plan is set; return those that were not known.

        A newer round replaces an older one. Rounds that wait, or were admitted, already are ignored.
        """
        bucket = self.buckets[key]
        if not bucket.tickets:
            self._sleepers.wake(key)
        new: list[Ticket] = []
        for ticket in tickets:
            known, held = self.waiting(ticket.operation), self.ledger.held_by(ticket.operation)
            if (known is not None and known.round >= ticket.round) or (held is not None and held.round >= ticket.round):
                continue
            if known is not None:
                self.forget({ticket.operation})
            self._bucket_of[ticket.operation] = key
            bucket.tickets.append(ticket)
            new.append(ticket)
        return new

    def forget(self, operations: Iterable[str]) -> set[str]:
        """Drop operations that need no place any more; return those that were waiting."""
        found = {operation for operation in operations if operation in self._bucket_of}
        for key in sorted({self._bucket_of.pop(operation) for operation in found}):
            bucket = self.buckets[key]
            first = bucket.tickets[0]
            bucket.tickets = deque(ticket for ticket in bucket.tickets if ticket.operation not in found)
            if not bucket.tickets or bucket.tickets[0] is not first:
                self._unreserve(key)
                self._sleepers.wake(key)
        return found

    def wake_hopeless(self) -> None:
        """Try those again for which no environment was eligible: what is known of environments has changed."""
        for key, bucket in self.buckets.items():
            if bucket.wait is not None and bucket.wait.reason is queues.WaitReason.NO_ELIGIBLE_ENVIRONMENT:
                self._sleepers.wake(key)

    def release(self, operation: str, last_round: int | None = None) -> Charge | None:
        """Give back what an operation holds, and wake whoever sleeps on it."""
        charge = self.ledger.release(operation, last_round)
        if charge is None:
            return None
        for resource in charge.amounts:
            self._sleepers.wake_on(Limit(ScopeKind.ENVIRONMENT, charge.environment, resource))
            self._sleepers.wake_on(Limit(ScopeKind.PROJECT, charge.project, resource))
            for queue in self.limits.chain(charge.queue):
                self._sleepers.wake_on(Limit(ScopeKind.QUEUE, queue, resource))
        return charge

    def waiting(self, operation: str) -> Ticket | None:
        """Return the ticket of a waiting operation."""
        key = self._bucket_of.get(operation)
        if key is None:
            return None
        return next(ticket for ticket in self.buckets[key].tickets if ticket.operation == operation)

    def bucket_of(self, operation: str) -> Bucket | None:
        key = self._bucket_of.get(operation)
        return self.buckets[key] if key is not None else None

    def drop_empty(self) -> list[str]:
        """Drop buckets in which nothing waits, so that memory does not grow with every class ever seen."""
        empty = [key for key, bucket in self.buckets.items() if not bucket.tickets]
        for key in empty:
            self._sleepers.forget(key)
            del self.buckets[key]
        return empty

    # -- the pass -----------------------------------------------------------------------------------------------------

    def admit(self, now: datetime, most: int = 1000) -> list[Admitted]:
        """Admit what can be admitted, at most `most`; buckets that were not tried for that reason stay awake."""
        lines = self._lines(now)
        turns = [(self._turn(line), line) for line in lines]
        heapq.heapify(turns)
        admitted: list[Admitted] = []
        while turns and len(admitted) < most:
            planned, line = heapq.heappop(turns)
            current = self._turn(line)
            if current > planned and turns and current > turns[0][0]:
                heapq.heappush(turns, (current, line))  # its project was given something meanwhile: another one's turn
                continue
            bucket = self.buckets[line[0][1]]
            found = self._try(bucket, now)
            if found is not None:
                admitted.append(found)
            if found is not None and bucket.tickets:
                heapq.heapreplace(line, (bucket.tickets[0].position, bucket.key))
            else:
                heapq.heappop(line)
            if line:
                heapq.heappush(turns, (self._turn(line), line))
        self._sleepers.wake_all(key for _, line in turns for _, key in line)
        return admitted

    @property
    def has_more(self) -> bool:
        """Tell whether another pass may admit more at once."""
        return bool(self._sleepers.awake)

    @property
    def next_timer(self) -> datetime | None:
        """Return when time alone may let an operation go: it stops holding out for a better environment."""
        return self._sleepers.next_time

    def _lines(self, now: datetime) -> list[Line]:
        """Put awake buckets in lines of one priority and project each: within a line, age alone decides."""
        lines: dict[tuple[int, str, float], Line] = {}
        for key in self._sleepers.take(now):
            bucket = self.buckets.get(key)
            if bucket is not None and bucket.tickets:
                bucket.full = {}
                plan = bucket.plan
                line = lines.setdefault((plan.priority, plan.project, plan.weight), [])
                line.append((bucket.tickets[0].position, key))
        for line in lines.values():
            heapq.heapify(line)
        return list(lines.values())

    def _turn(self, line: Line) -> Turn:
        return turn(self.buckets[line[0][1]], self.ledger, self.limits)

    # -- one turn -----------------------------------------------------------------------------------------------------

    def _try(self, bucket: Bucket, now: datetime) -> Admitted | None:
        """Admit the oldest operation of a bucket, or let the bucket sleep."""
        plan, ticket = bucket.plan, bucket.tickets[0]
        wait = self._held_back(plan)
        if wait is not None:
            self._block(bucket, wait, {wait.limit} if wait.limit is not None else set())
            return None
        if plan.order is None or not plan.order.groups:
            self._block(bucket, queues.nobody(plan.nobody), set())
            return None
        holds_out = bool(plan.overflow_after) and ticket.since + plan.overflow_after > now
        choice = choose(
            plan.order, ticket.operation, Room(self, bucket, now), previous=ticket.previous, overflow=not holds_out
        )
        if choice is None:
            self._no_room(bucket, now)
            if holds_out:
                self._sleepers.remind(bucket.key, ticket.since + plan.overflow_after)
            return None
        bucket.tickets.popleft()
        del self._bucket_of[ticket.operation]
        self._unreserve(bucket.key)
        bucket.wait = None
        charge = _charge(ticket, choice, plan)
        self.ledger.charge(charge)
        return Admitted(bucket.key, ticket, choice, charge)

    def _held_back(self, plan: Plan) -> Wait | None:
        """Tell what holds a class back wherever it might go."""
        queue = self.limits.paused(plan.queue)
        if queue:
            return queues.paused(queue)
        limit = self.limits.refused(self.ledger, plan.queue, plan.project, plan.common)
        return queues.refused(limit, plan.common, self.ledger, self.limits) if limit is not None else None

    def _no_room(self, bucket: Bucket, now: datetime) -> None:
        """Tell what the best environments lack. After enough patience, what is released there is kept for it."""
        first, limit = next(iter(bucket.full.items()))
        limits = {found for found in bucket.full.values() if found is not None}
        amounts = bucket.plan.amounts[first]
        if limit is None:
            wait = queues.nobody("every verdict has run out; a new one is on its way")
        elif limit.scope is not ScopeKind.ENVIRONMENT:
            wait = queues.refused(limit, amounts, self.ledger, self.limits)
        elif self.limits.full(self.ledger, first, amounts) is None:
            wait = queues.reserved(limit)
        else:
            wait = queues.at_capacity(limit, amounts, len(bucket.full) - 1, self.ledger, self.limits)
            patient_until = bucket.tickets[0].since + self._patience
            if patient_until > now:
                self._sleepers.remind(bucket.key, patient_until)
            else:
                self._reserve(limit, bucket)
        self._block(bucket, wait, limits)

    # -- sleeping and waking ------------------------------------------------------------------------------------------

    def _block(self, bucket: Bucket, wait: Wait, limits: set[Limit]) -> None:
        bucket.wait = wait
        if wait.reason is not queues.WaitReason.AT_CAPACITY:
            self._unreserve(bucket.key)
        self._sleepers.sleep(bucket.key, limits)

    def _reserve(self, limit: Limit, bucket: Bucket) -> None:
        """Keep what is released under a limit for one bucket: else smaller work would pass it by for ever."""
        holder = self._reserved.get(limit)
        if holder == bucket.key or (holder is not None and self.buckets[holder].rank < bucket.rank):
            return
        self._unreserve(bucket.key)
        self._reserved[limit] = bucket.key

    def _unreserve(self, key: str) -> None:
        if not self._reserved:
            return
        for limit in [limit for limit, holder in self._reserved.items() if holder == key]:
            del self._reserved[limit]
            self._sleepers.wake_on(limit)

    def kept_from(self, bucket: Bucket, environment: str, amounts: Amounts) -> Limit | None:
        """Return a resource of an environment that is kept for a bucket of higher priority or age; None if none is."""
        if not self._reserved:
            return None
        for resource in amounts:
            limit = Limit(ScopeKind.ENVIRONMENT, environment, resource)
            holder = self._reserved.get(limit)
            if holder is not None and holder != bucket.key and self.buckets[holder].rank < bucket.rank:
                return limit
        return None


def _charge(ticket: Ticket, choice: Choice, plan: Plan) -> Charge:
    amounts = plan.amounts[choice.environment]
    return Charge(ticket.operation, ticket.round, choice.environment, plan.queue, plan.project, amounts)
