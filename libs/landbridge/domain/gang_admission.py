"""Members of a gang that wait: admitted together in one pass, or none of them.

They are tried one beside the other: what is found for one counts as held for the next, so that no limit is exceeded by
the gang as a whole. Where one finds no room, all is given back, and the next try begins with that one. It is not every
assignment that is tried, but those in which the members with the fewest places, or without luck, choose first.
"""

from collections.abc import Callable, Mapping, MutableMapping
from datetime import datetime
from typing import Final, NamedTuple

from landbridge.domain import queues
from landbridge.domain.candidate import environment_of
from landbridge.domain.gang_limits import (
    TRIES,
    Member,
    all_wait,
    environments,
    fewest_places_first,
    fits_alone,
    stopped,
)
from landbridge.domain.keeper import Keeper
from landbridge.domain.ledger import Charge, Ledger, Limit, ScopeKind, Usage
from landbridge.domain.limits import Limits
from landbridge.domain.placement import Choice, choose, groups_in_question
from landbridge.domain.promises import Promises
from landbridge.domain.queues import Bucket, Plan, Wait
from landbridge.domain.room import Revalidate, Room


class Placed(NamedTuple):
    """One member with the place that was found for it."""

    member: Member
    choice: Choice
    charge: Charge


class Failed(NamedTuple):
    """Why a gang cannot be admitted: a wait for each of its classes, all limits in the way, what is to be kept."""

    waits: Mapping[str, Wait]
    limits: set[Limit]
    keep: list[Charge]


class Why(NamedTuple):
    """The member that found no room, what stands in its way, and what had been found for the others."""

    member: Member
    wait: Wait
    placed: list[Placed]


class Gangs:
    """Which classes hold the members of which gang. A gang is tried as one, under the name of its first class."""

    def __init__(self, buckets: Mapping[str, Bucket]) -> None:
        self._buckets = buckets
        self._keys: dict[str, set[str]] = {}

    def note(self, bucket: Bucket) -> None:
        """Take note of a class that a gang's members may wait in."""
        if bucket.plan.gang:
            self._keys.setdefault(bucket.plan.gang, set()).add(bucket.key)

    def drop(self, bucket: Bucket) -> None:
        keys = self._keys.get(bucket.plan.gang)
        if keys is not None:
            keys.discard(bucket.key)
            if not keys:
                del self._keys[bucket.plan.gang]

    def keys(self, gang: str) -> list[str]:
        """Return the classes of a gang."""
        return sorted(self._keys.get(gang, ()))

    def members(self, gang: str) -> list[Member]:
        """Return the members that wait, in the order of their arrival."""
        found = [Member(self._buckets[key], t) for key in self.keys(gang) for t in self._buckets[key].tickets]
        return sorted(found, key=lambda member: member.ticket.position)

    def first(self, key: str) -> str:
        """Return the class under whose name a class is tried: its own, or that of its gang's first member."""
        gang = self._buckets[key].plan.gang
        members = self.members(gang) if gang else []
        return members[0].bucket.key if members else key


class GangAdmitter:
    """Tries to admit gangs. What is found is charged at once; what comes to nothing is given back at once."""

    def __init__(
        self,
        ledger: Ledger,
        keeper: Keeper,
        promises: Promises,
        gangs: Gangs,
        bucket_of: MutableMapping[str, str],
        revalidate: Revalidate,
        why: Callable[[Bucket, Limit | None, Usage], Wait],
    ) -> None:
        self._ledger = ledger
        self._keeper = keeper
        self._promises = promises
        self._gangs = gangs
        self._bucket_of = bucket_of
        self._revalidate = revalidate
        self._why = why

    def admit(self, gang: str, limits: Limits, now: datetime) -> list[Placed] | Failed:
        """Place and charge all members of a gang, or tell why not."""
        members = self._gangs.members(gang)
        for member in members:
            member.bucket.holder = members[0].bucket.key
        waits = stopped(gang, members, limits)
        if waits is not None:
            return Failed(waits, set(), [])
        found: set[Limit] = set()
        first: Why | None = None
        with self._keeper.holding_turn(members[0].bucket, now):
            for environment in environments(members):
                tried = self._try(members, environment, limits, found, now)
                if isinstance(tried, list):
                    return tried
                first = first or tried
        return self._failed(gang, members, first, found, limits, now)

    # -- trying -------------------------------------------------------------------------------------------------------

    def _try(
        self, members: list[Member], environment: str, limits: Limits, found: set[Limit], now: datetime
    ) -> list[Placed] | Why:
        """Place all members; those that found no room go first in the next try. Limits in the way go into `found`."""
        order = fewest_places_first(members)
        first: Why | None = None
        put_first: set[str] = set()
        while True:
            placed = self._attempt(order, environment, limits, now)
            for member in members:
                found.update(limit for limit in member.bucket.full.values() if limit is not None)
            if isinstance(placed, list):
                return placed
            if placed.wait.limit is not None:
                found.add(placed.wait.limit)
            first = first or placed
            unlucky = placed.member
            if unlucky is order[0] or unlucky.ticket.operation in put_first or len(put_first) >= TRIES:
                return first
            put_first.add(unlucky.ticket.operation)
            order = [unlucky, *(member for member in order if member is not unlucky)]

    def _attempt(self, order: list[Member], environment: str, limits: Limits, now: datetime) -> list[Placed] | Why:
        for member in order:
            member.bucket.full = {}
        placed: list[Placed] = []
        for member in order:
            found = self._place(member, environment, limits, now)
            if isinstance(found, Wait):
                self._give_back(placed)
                return Why(member, found, placed)
            placed.append(found)
        return placed

    def _place(self, member: Member, environment: str, limits: Limits, now: datetime) -> Placed | Wait:
        bucket, ticket = member
        plan, usage = bucket.plan, self._promises.usage_for(bucket.key)
        limit = limits.refused(usage, plan.queue, plan.project, plan.common)
        limit = limit if limit is not None else self._keeper.kept_from(bucket, "", usage, now)
        choice = None
        assert plan.order is not None
        if limit is None:
            room = _Within(Room(bucket, limits, usage, self._keeper, self._revalidate, now), environment)
            choice = choose(plan.order, ticket.operation, room, previous=ticket.previous)
        if choice is None:
            return self._why(bucket, limit, usage) if limit is not None or bucket.full else _NO_ROOM
        borrowed = limits.borrows(usage, plan.queue, plan.amounts[choice.place]) is not None
        charge = plan.charge(ticket, choice.place, now, borrowed=borrowed)
        bucket.tickets.remove(ticket.operation)
        del self._bucket_of[ticket.operation]
        self._ledger.charge(charge)
        self._keeper.note(charge)
        return Placed(member, choice, charge)

    def _give_back(self, placed: list[Placed]) -> None:
        for (bucket, ticket), _, charge in reversed(placed):
            self._keeper.note_back(charge)
            self._ledger.release(ticket.operation)
            bucket.tickets.add(ticket)
            self._bucket_of[ticket.operation] = bucket.key

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _failed(
        self, gang: str, members: list[Member], why: Why | None, found: set[Limit], limits: Limits, now: datetime
    ) -> Failed:
        name, count = gang.rpartition("/")[2], len(members)
        if why is None:
            told = (
                "no environment is eligible for all of them, and gang.spanEnvironments is not true: they start in one"
            )
            return Failed(all_wait(members, queues.gang_incomplete(gang, count, count, told)), set(), [])
        if not fits_alone(members, limits):
            return Failed(all_wait(members, queues.gang_too_large(name, count)), found, [])
        operation = why.member.ticket.operation
        told = f"gang {name} starts together, and beside its others operation {operation} has no place: "
        wait = Wait(why.wait.reason, told + why.wait.message, why.wait.limit)
        keep = self._to_keep(members, why, now) if wait.reason in queues.KEEPS_ROOM else []
        return Failed(all_wait(members, wait), found, keep)

    @staticmethod
    def _to_keep(members: list[Member], why: Why, now: datetime) -> list[Charge]:
        """Return what the whole gang would hold: where a place was found, there, else where it would go first."""
        where = {found.member.ticket.operation: found.choice.place for found in why.placed}
        limit = why.wait.limit
        here = limit.name if limit is not None and limit.scope is ScopeKind.ENVIRONMENT else ""
        charges = []
        for bucket, ticket in members:
            plan = bucket.plan
            place = where.get(ticket.operation) or _place_in(plan, here)
            charges.append(plan.charge(ticket, place, now))
        return charges


class _Within:
    """Tells `choose` that places of other environments are full; an empty name leaves all open."""

    def __init__(self, room: Room, environment: str) -> None:
        self._room = room
        self._environment = environment

    def __contains__(self, place: object) -> bool:
        elsewhere = bool(self._environment) and environment_of(str(place)) != self._environment
        return elsewhere or place in self._room


_NO_ROOM: Final = Wait(queues.WaitReason.AT_CAPACITY, "its environments may not be chosen now")


def _place_in(plan: Plan, environment: str) -> str:
    """Return the first place of an environment, else the first of all."""
    assert plan.order is not None
    places = groups_in_question(plan.order)
    return next((place for place in places if environment_of(place) == environment), next(iter(places), ""))
