"""Whether a gang can be admitted at all, whatever is free now: its members, its queue, its size. Pure."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from landbridge.domain import queues
from landbridge.domain.candidate import environment_of
from landbridge.domain.ledger import NOTHING, Amounts, Limit, ScopeKind, Shifted, add
from landbridge.domain.limits import Limits
from landbridge.domain.placement import groups_in_question
from landbridge.domain.queues import Bucket, Wait
from landbridge.domain.tickets import Ticket

# So many members at most are put first because they found no room.
TRIES: Final = 8
Waits = dict[str, Wait]
"""A wait for each class of a gang."""


class Member(NamedTuple):
    """One operation of a gang, with its class."""

    bucket: Bucket
    ticket: Ticket


def fewest_places_first(members: list[Member]) -> list[Member]:
    """Return members in the order in which they choose: who has a choice can wait."""
    return sorted(members, key=lambda member: (len(member.bucket.plan.amounts), member.ticket.position))


def environments(members: list[Member]) -> list[str]:
    """Return the environments that a gang is tried in as a whole, the best first; an empty one: wherever each may."""
    plan = members[0].bucket.plan
    if plan.spans:
        return [""]
    assert plan.order is not None
    common = {environment_of(place) for place in plan.amounts}
    for member in members[1:]:
        common &= {environment_of(place) for place in member.bucket.plan.amounts}
    return list(dict.fromkeys(e for place in groups_in_question(plan.order) if (e := environment_of(place)) in common))


def all_wait(members: list[Member], wait: Wait) -> Waits:
    """Have all classes of a gang wait for the same."""
    return {member.bucket.key: wait for member in members}


class _Nothing:
    """Nothing is held anywhere."""

    def used(self, scope: ScopeKind, name: str) -> Amounts:  # noqa: ARG002
        return NOTHING


def fits_alone(members: list[Member], limits: Limits) -> bool:
    """Tell whether a gang finds places, by the same way of looking for them, if nothing is held anywhere."""
    return any(_fits_in(members, environment, limits) for environment in environments(members))


def _fits_in(members: list[Member], environment: str, limits: Limits) -> bool:
    order, put_first = fewest_places_first(members), set[str]()
    while True:
        unlucky = _first_without(order, environment, limits)
        if unlucky is None:
            return True
        name = unlucky.ticket.operation
        if unlucky is order[0] or name in put_first or len(put_first) >= TRIES:
            return False
        put_first.add(name)
        order = [unlucky, *(member for member in order if member is not unlucky)]


def _first_without(order: list[Member], environment: str, limits: Limits) -> Member | None:
    usage = Shifted(_Nothing(), limits.chain)
    for member in order:
        bucket, ticket = member
        plan = bucket.plan
        assert plan.order is not None
        for place in groups_in_question(plan.order):
            name, amounts = environment_of(place), plan.amounts[place]
            if environment not in ("", name) or limits.full(usage, name, amounts) is not None:
                continue
            if limits.refused(usage, plan.queue, plan.project, amounts) is None:
                usage.add(plan.charge(ticket, place, ticket.since))
                break
        else:
            return member
    return None


def stopped(gang: str, members: list[Member], limits: Limits) -> Waits | None:
    """Tell what stops a gang whatever is free: who is missing, a queue that is paused, more than may ever be held."""
    wanted = max(member.bucket.plan.members for member in members)
    if len(members) < wanted:
        return all_wait(members, queues.gang_incomplete(gang, len(members), wanted))
    hopeless = [member for member in members if member.bucket.plan.order is None or not member.bucket.plan.order.groups]
    if hopeless:
        told = f"no environment is eligible for operation {hopeless[0].ticket.operation}"
        waits = all_wait(members, queues.gang_incomplete(gang, len(members), wanted, told))
        waits |= {member.bucket.key: queues.nobody(member.bucket.plan.nobody) for member in hopeless}
        return waits
    for bucket, ticket in members:
        paused, drained = limits.paused(bucket.plan.queue), limits.drained(bucket.plan.queue)
        if paused:
            return all_wait(members, queues.paused(paused))
        if drained is not None and ticket.since >= drained[1] and ticket.round == 1:
            return all_wait(members, queues.draining(drained[0]))
    return next((all_wait(members, wait) for wait in _beyond(gang, members, limits)), None)


def _beyond(gang: str, members: list[Member], limits: Limits) -> Iterator[Wait]:
    """Tell of limits that the gang as a whole exceeds even if nothing else is held."""
    sums: dict[tuple[ScopeKind, str], dict[str, int]] = {}
    for member in members:
        plan = member.bucket.plan
        scopes = [(ScopeKind.QUEUE, queue) for queue in limits.chain(plan.queue)]
        for scope in (*scopes, (ScopeKind.PROJECT, plan.project)):
            add(sums.setdefault(scope, {}), plan.common, 1)
    name = gang.rpartition("/")[2]
    for (kind, whose), amounts in sums.items():
        for resource, amount in amounts.items():
            most = limits.most(Limit(kind, whose, resource))
            if most is not None and amount > most:
                yield queues.gang_beyond(name, len(members), Limit(kind, whose, resource), amount, most)
