"""Who goes next, and whether there is room.

Operations of one requirement class wait in one bucket. A pass takes the bucket whose turn it is, admits its oldest
operation if every limit holds, and goes on until nothing more can be admitted. A bucket that cannot be admitted sleeps
on the limits in its way and is tried again when one of them gives way, or when its time has come; trying all buckets in
every pass would admit exactly the same.
"""

import heapq
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from landbridge.domain import queues
from landbridge.domain.candidate import environment_of
from landbridge.domain.gang_admission import Failed, GangAdmitter, Gangs
from landbridge.domain.keeper import PATIENCE, Keeper
from landbridge.domain.ledger import Charge, Ledger, Limit, ScopeKind, Usage
from landbridge.domain.limits import Limits
from landbridge.domain.placement import Choice, choose, groups_in_question
from landbridge.domain.promises import Promises
from landbridge.domain.queues import Bucket, Plan, Turn, Wait, turn
from landbridge.domain.room import Revalidate, Room
from landbridge.domain.room_making import Evicted, RoomMaker
from landbridge.domain.sleepers import Sleepers
from landbridge.domain.tickets import Ticket

Line = list[tuple[int, str]]  # a heap of buckets by the position of their oldest operation


class Admitted(NamedTuple):
    """One operation that was admitted, with what it is charged."""

    bucket: str
    ticket: Ticket
    choice: Choice
    charge: Charge


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
        ledger.follow(limits.chain)
        self.promises = Promises(ledger)
        self.buckets: dict[str, Bucket] = {}
        self.revalidate = revalidate
        self._sleepers = Sleepers()
        self._bucket_of: dict[str, str] = {}
        self._keeper = Keeper(ledger, limits, self.buckets, self.promises, self._sleepers, patience)
        self._maker = RoomMaker(ledger, self.promises, self._keeper, self._wake_under)
        self._gangs = Gangs(self.buckets)
        self._together = GangAdmitter(
            ledger, self._keeper, self.promises, self._gangs, self._bucket_of, revalidate, self._why
        )

    # -- what happens -------------------------------------------------------------------------------------------------

    def set_limits(self, limits: Limits) -> None:
        """Take on new limits or capacities: everything is tried again."""
        self.limits = limits
        self.ledger.follow(limits.chain)
        self.promises.follow()
        self._keeper.set_limits(limits)
        self._sleepers.wake_all(self.buckets)

    def set_plan(self, key: str, plan: Plan) -> None:
        """Take on what is known about a class; what waits in it is tried again."""
        bucket = self.buckets.get(key)
        if bucket is None:
            self.buckets[key] = Bucket(key, plan)
            self._gangs.note(self.buckets[key])
        else:
            self._keeper.drop(key)
            bucket.plan = plan
            promised = self.promises.promised.get(key)
            if promised is not None and not plan.takes(promised):
                self._maker.take_back(key)
        self._sleepers.wake(key)

    def arrive(self, key: str, tickets: Iterable[Ticket]) -> list[Ticket]:
        """Let operations wait in a bucket whose plan is set; return those that were not known.

        A newer round replaces an older one. Rounds that wait, or were admitted, already are ignored.
        """
        bucket = self.buckets[key]
        drained = bucket.wait is not None and bucket.wait.reason is queues.WaitReason.QUEUE_DRAINING
        if not bucket.tickets or drained:  # what had been let in before may leave a drained queue
            self._sleepers.wake(key)
        new: list[Ticket] = []
        for ticket in tickets:
            known, held = self.waiting(ticket.operation), self.ledger.held_by(ticket.operation)
            if (known is not None and known.round >= ticket.round) or (held is not None and held.round >= ticket.round):
                continue
            if known is not None:
                self.forget({ticket.operation})
            self._bucket_of[ticket.operation] = key
            placed, overtakes = bucket.tickets.insert(ticket)
            new.append(placed)
            if overtakes:  # what was kept or asked for is the former first one's
                self._first_changed(key)
        if new:
            self._gang_changed(bucket)
        return new

    def forget(self, operations: Iterable[str]) -> set[str]:
        """Drop operations that need no place any more; return those that were waiting."""
        found = {operation for operation in operations if operation in self._bucket_of}
        for operation in sorted(found):
            key = self._bucket_of.pop(operation)
            tickets = self.buckets[key].tickets
            was_first = tickets.first.operation == operation
            tickets.remove(operation)
            if was_first:
                self._first_changed(key)
            self._gang_changed(self.buckets[key])
        return found

    def _first_changed(self, key: str) -> None:
        self._keeper.drop(key)
        self._maker.take_back(key)
        self._sleepers.wake(key)

    def _gang_changed(self, bucket: Bucket) -> None:
        """Try a gang again, of which a member has come or gone: room was kept for it as it was."""
        for key in self._gangs.keys(bucket.plan.gang) if bucket.plan.gang else ():
            self._keeper.drop(key)
            self._sleepers.wake(key)

    def force(self, charge: Charge) -> None:
        """Take an operation out of its line and charge it, whatever the limits: a person has placed it."""
        self.forget({charge.operation})
        self.ledger.charge(charge)
        self._keeper.note(charge)

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
        self._wake_under(charge)
        if self.promises.left(operation):
            self._sleepers.wake_all(self.promises.promised)
        return charge

    def _wake_under(self, charge: Charge) -> None:
        """Wake whoever sleeps on what a charge takes."""
        for resource in charge.amounts:
            self._sleepers.wake_on(Limit(ScopeKind.ENVIRONMENT, charge.environment, resource))
            self._sleepers.wake_on(Limit(ScopeKind.PROJECT, charge.project, resource))
            for queue in self.limits.chain(charge.queue):
                self._sleepers.wake_on(Limit(ScopeKind.QUEUE, queue, resource))

    @property
    def evicted(self) -> list[Evicted]:
        """Who has to be asked to leave, until somebody takes note and clears it."""
        return self._maker.evicted

    @evicted.setter
    def evicted(self, evicted: list[Evicted]) -> None:
        self._maker.evicted = evicted

    def asked_to_leave(self, operation: str) -> None:
        """Take note that an operation was asked to leave before: a successor learns it from the table."""
        self.promises.ask_to_leave(operation)

    def waiting(self, operation: str) -> Ticket | None:
        """Return the ticket of a waiting operation."""
        key = self._bucket_of.get(operation)
        return self.buckets[key].tickets.get(operation) if key is not None else None

    def bucket_of(self, operation: str) -> Bucket | None:
        key = self._bucket_of.get(operation)
        return self.buckets[key] if key is not None else None

    def drop_empty(self) -> list[str]:
        """Drop buckets in which nothing waits, so that memory does not grow with every class ever seen."""
        empty = [key for key, bucket in self.buckets.items() if not bucket.tickets]
        for key in empty:
            self._sleepers.forget(key)
            self._gangs.drop(self.buckets[key])
            del self.buckets[key]
        return empty

    # -- the pass -----------------------------------------------------------------------------------------------------

    def admit(self, now: datetime, most: int = 1000) -> list[Admitted]:
        """Admit what can be admitted, at most `most`; buckets that were not tried for that reason stay awake."""
        self._keeper.begin()
        lines = self._lines(now)
        turns = [(self._turn(line, now), line) for line in lines]
        heapq.heapify(turns)
        admitted: list[Admitted] = []
        while turns and len(admitted) < most:
            planned, line = heapq.heappop(turns)
            current = self._turn(line, now)
            if current > planned and turns and current > turns[0][0]:
                heapq.heappush(turns, (current, line))  # its project was given something meanwhile: another one's turn
                continue
            bucket = self.buckets[line[0][1]]
            alone = self._try(bucket, now) if not bucket.plan.gang else None
            found = self._try_gang(bucket, now) if bucket.plan.gang else [alone] if alone is not None else []
            admitted += found
            if found and bucket.tickets:
                heapq.heapreplace(line, (bucket.tickets.first.position, bucket.key))
            else:
                heapq.heappop(line)
            if line:
                heapq.heappush(turns, (self._turn(line, now), line))
        self._sleepers.wake_all({key for _, line in turns for _, key in line} | self._keeper.too_soon())
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
        """Put awake buckets in lines within which age alone decides: all else that turns depend on is equal there."""
        lines: dict[tuple[object, ...], Line] = {}
        for key in {self._gangs.first(key) for key in self._sleepers.take(now) if key in self.buckets}:
            bucket = self.buckets.get(key)
            if bucket is not None and bucket.tickets:
                bucket.full = {}
                line = lines.setdefault(self._line_of(bucket.plan), [])
                line.append((bucket.tickets.first.position, key))
        for line in lines.values():
            heapq.heapify(line)
        return list(lines.values())

    def _line_of(self, plan: Plan) -> tuple[object, ...]:
        common = (plan.priority, plan.ageing, plan.project, plan.weight)
        if self.limits.may_borrow(plan.queue):
            return (*common, plan.queue, tuple(sorted(plan.common.items())))
        return (*common, plan.queue) if self.limits.weighted(plan.queue) else common

    def _turn(self, line: Line, now: datetime) -> Turn:
        key = line[0][1]
        return turn(self.buckets[key], self.promises.planned_for(key), self.limits, now)

    # -- one turn -----------------------------------------------------------------------------------------------------

    def _try_gang(self, bucket: Bucket, now: datetime) -> list[Admitted]:
        """Admit all members of a gang, or let all its classes sleep on what is in the way of any of them."""
        found = self._together.admit(bucket.plan.gang, self.limits, now)
        if not isinstance(found, Failed):
            self._keeper.drop(bucket.key)
            for placed in found:
                placed.member.bucket.wait = None
            return [Admitted(p.member.bucket.key, p.member.ticket, p.choice, p.charge) for p in found]
        if found.keep:
            complete_since = max(member.ticket.since for member in self._gangs.members(bucket.plan.gang))
            self._keeper.keep_gang(bucket, found.keep, complete_since, now)
        else:
            self._keeper.drop(bucket.key)
        for key, wait in found.waits.items():
            self._block(self.buckets[key], wait, found.limits if key == bucket.key else set())
        return []

    def _try(self, bucket: Bucket, now: datetime) -> Admitted | None:
        """Admit the oldest operation of a bucket, or let the bucket sleep."""
        plan, ticket = bucket.plan, self._next(bucket)
        wait = self._stopped(plan, ticket)
        if wait is not None or ticket is None:
            self._block(bucket, wait or queues.nobody(plan.nobody), set())
            return None
        usage = self.promises.usage_for(bucket.key)
        holds_out = bool(plan.overflow_after) and ticket.since + plan.overflow_after > now
        limit = self._refused(bucket, usage, now)
        assert plan.order is not None
        choice = None
        if limit is None:
            room = self._room(bucket, usage, now)
            choice = choose(plan.order, ticket.operation, room, previous=ticket.previous, overflow=not holds_out)
        if choice is None:
            self._let_wait(bucket, ticket, limit, usage, now, holds_out=holds_out)
            return None
        return self._admit(bucket, ticket, choice, usage, now)

    def _next(self, bucket: Bucket) -> Ticket | None:
        """Return the operation of a bucket whose turn it is; None while all were new when their queue was drained."""
        drained = self.limits.drained(bucket.plan.queue)
        return bucket.tickets.first if drained is None else bucket.tickets.first_allowed(drained[1])

    def _stopped(self, plan: Plan, ticket: Ticket | None) -> Wait | None:
        """Tell what stops a class whatever is free.

        While nothing is eligible that is the reason, whatever the queue does: eligibility has told it, with what is
        missing where. The queue's own reason is told as soon as it is the one that counts.
        """
        if plan.order is None or not plan.order.groups:
            return queues.nobody(plan.nobody)
        queue = self.limits.paused(plan.queue)
        if queue:
            return queues.paused(queue)
        drained = self.limits.drained(plan.queue)
        if ticket is None and drained is not None:
            return queues.draining(drained[0])
        return None

    def _admit(self, bucket: Bucket, ticket: Ticket, choice: Choice, usage: Usage, now: datetime) -> Admitted:
        plan, promised = bucket.plan, self.promises.promised.get(bucket.key)
        amounts = plan.amounts[choice.place]
        borrowed = self.limits.borrows(usage, plan.queue, amounts) is not None
        if promised is not None and promised.operation == ticket.operation and promised.amounts == amounts:
            borrowed = promised.borrowed
        charge = plan.charge(ticket, choice.place, now, borrowed=borrowed)
        bucket.tickets.remove(ticket.operation)
        del self._bucket_of[ticket.operation]
        self._maker.take_back(bucket.key)
        self._keeper.drop(bucket.key)
        bucket.wait = None
        self.ledger.charge(charge)
        self._keeper.note(charge)
        return Admitted(bucket.key, ticket, choice, charge)

    def _room(self, bucket: Bucket, usage: Usage, now: datetime) -> Room:
        return Room(bucket, self.limits, usage, self._keeper, self.revalidate, now)

    def _refused(self, bucket: Bucket, usage: Usage, now: datetime) -> Limit | None:
        """Tell what holds a class back wherever it might go."""
        plan = bucket.plan
        limit = self.limits.refused(usage, plan.queue, plan.project, plan.common)
        return limit if limit is not None else self._keeper.kept_from(bucket, "", usage, now)

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _let_wait(
        self, bucket: Bucket, ticket: Ticket, limit: Limit | None, usage: Usage, now: datetime, *, holds_out: bool
    ) -> None:
        """Tell what an operation waits for. It may have others make room, or have room kept for it."""
        plan = bucket.plan
        if holds_out:
            self._sleepers.remind(bucket.key, ticket.since + plan.overflow_after)
        limits = {limit} if limit is not None else {found for found in bucket.full.values() if found is not None}
        wait = self._why(bucket, limit, usage)
        hopeless = wait.reason is queues.WaitReason.EXCEEDS_QUOTA
        holds = self._room(bucket, usage, now).verdict_holds
        if not hopeless and self._maker.promise(bucket, ticket, self.limits, holds, now, overflow=not holds_out):
            wait = queues.making_room(wait.limit)
        elif wait.limit is not None and wait.reason in queues.KEEPS_ROOM:
            place = next(iter(bucket.full), "") or _best(plan)
            self._keeper.keep(bucket, ticket, place, wait.limit, now)
        else:
            self._keeper.drop(bucket.key)
        self._block(bucket, wait, limits)

    def _why(self, bucket: Bucket, limit: Limit | None, usage: Usage) -> Wait:
        """Tell what stands in the way, in the best environment or wherever it might go."""
        plan = bucket.plan
        if limit is None:
            first, limit = next(iter(bucket.full.items()))
            if limit is None:
                return queues.nobody("every verdict has run out; a new one is on its way")
            amounts, (_, *others) = plan.amounts[first], dict.fromkeys(map(environment_of, bucket.full))
        else:
            amounts, others, first = plan.common, [], ""
        here = environment_of(first)
        if first and limit.scope is ScopeKind.ENVIRONMENT and self.limits.full(usage, here, amounts) is not None:
            return queues.at_capacity(limit, amounts, others, usage, self.limits)
        if self.limits.refused(usage, plan.queue, plan.project, amounts) is not None:
            return queues.refused(limit, amounts, usage, self.limits)
        return queues.reserved(limit)

    # -- sleeping and waking ------------------------------------------------------------------------------------------

    def _block(self, bucket: Bucket, wait: Wait, limits: set[Limit]) -> None:
        bucket.wait = wait
        if wait.reason in queues.KEEPS_NOTHING:
            self._keeper.drop(bucket.key)
            self._maker.take_back(bucket.key)
        self._sleepers.sleep(bucket.key, limits)


def _best(plan: Plan) -> str:
    return next(iter(groups_in_question(plan.order)), "") if plan.order is not None else ""
