"""What waits, why it waits, and in which order.

What stays within its queue's quota goes before what must borrow; then priority, which grows with waiting where the
queue says so; then weighted fair share between queues and between projects; then age.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

from landbridge.domain.candidate import environment_of
from landbridge.domain.catalogue import Reclaim
from landbridge.domain.contract import RUNNING, format_quantity
from landbridge.domain.ledger import Amounts, Charge, Limit, ScopeKind, Usage
from landbridge.domain.limits import Limits
from landbridge.domain.placement import Order
from landbridge.domain.tickets import Ticket, Tickets

# Of environments that are full, in words.
MOST_NAMED: Final = 3

_LEAST_WEIGHT = 1e-9
_NO_AGEING = timedelta(0)


class WaitReason(StrEnum):
    """Why an eligible operation waits. Stable codes."""

    QUEUE_PAUSED = "queue-paused"
    QUEUE_DRAINING = "queue-draining"
    CONCURRENCY = "concurrency"
    QUOTA = "quota"
    EXCEEDS_QUOTA = "exceeds-quota"
    EXCEEDS_CAPACITY = "exceeds-capacity"
    AT_CAPACITY = "at-capacity"
    RESERVED = "reserved"
    MAKING_ROOM = "making-room"
    GANG_INCOMPLETE = "gang-incomplete"
    NO_ELIGIBLE_ENVIRONMENT = "no-eligible-environment"


@dataclass(frozen=True)
class Plan:
    """All that admission must know about a class. Amounts are by place: they differ where classes serve each other.

    `serves` names the accelerator class of every place. `valid_until` is by environment; a verdict that has run out is
    renewed before it is used. `order` None: none is eligible now, and `nobody` says why. `policy` names whose weights
    it was ordered by, with versions. `expected` is how long an attempt is expected to take, `longest` after which time
    it has surely ended; None: not known. `gang` is that of the one operation or more of this class, with its project;
    `members` of it are admitted together, `spans` says whether into several environments.
    """

    queue: str
    project: str
    priority: int
    weight: float
    order: Order | None
    amounts: Mapping[str, Amounts]
    valid_until: dict[str, datetime | None] = field(default_factory=dict)
    overflow_after: timedelta = timedelta(0)
    nobody: str = "no environment is eligible"
    policy: str = ""
    ageing: timedelta = _NO_AGEING
    preempts: bool = False
    reclaim: Reclaim = Reclaim.NEVER
    evictable: bool = False
    expected: timedelta | None = None
    longest: timedelta | None = None
    component: str = ""
    serves: Mapping[str, str] = field(default_factory=dict)
    gang: str = ""
    members: int = 0
    spans: bool = False

    def priority_at(self, waited: timedelta) -> int:
        """Return the priority after a time of waiting."""
        return self.priority + (waited // self.ageing if self.ageing and waited > _NO_AGEING else 0)

    def charge(self, ticket: Ticket, place: str, now: datetime, *, borrowed: bool = False) -> Charge:
        """Return what an operation of this class would hold; without a place, what it takes in all of them."""
        return Charge(
            ticket.operation,
            ticket.round,
            environment_of(place),
            self.queue,
            self.project,
            self.amounts[place] if place else self.common,
            priority=self.priority,
            borrowed=borrowed,
            evictable=self.evictable,
            at=now,
            ends=now + self.expected if self.expected is not None else None,
            component=self.component,
        )

    def takes(self, charge: Charge) -> bool:
        """Tell whether an operation of this class takes just that in one of the places of a charge's environment."""
        return any(
            taken == charge.amounts
            for place, taken in self.amounts.items()
            if environment_of(place) == charge.environment
        )

    @cached_property
    def common(self) -> Amounts:
        """What an operation takes wherever it goes: what is equal in all environments."""
        every = list(self.amounts.values())
        return {
            resource: amount
            for resource, amount in (every[0].items() if every else ())
            if all(taken.get(resource) == amount for taken in every)
        }

    @cached_property
    def alike(self) -> bool:
        """Whether it takes the same everywhere."""
        return all(len(taken) == len(self.common) for taken in self.amounts.values())


# For what waits for these, what is released may be kept; what waits for these has no use for room.
KEEPS_ROOM = frozenset({WaitReason.AT_CAPACITY, WaitReason.QUOTA, WaitReason.CONCURRENCY, WaitReason.RESERVED})
KEEPS_NOTHING = frozenset(
    {
        WaitReason.QUEUE_PAUSED,
        WaitReason.QUEUE_DRAINING,
        WaitReason.NO_ELIGIBLE_ENVIRONMENT,
        WaitReason.EXCEEDS_QUOTA,
        WaitReason.EXCEEDS_CAPACITY,
        WaitReason.GANG_INCOMPLETE,
    }
)


class Wait(NamedTuple):
    """Why a bucket waits, as a code, in words, and the limit that stands in the way if it is one."""

    reason: WaitReason
    message: str
    limit: Limit | None = None


class Bucket:
    """The waiting operations of one class, oldest first. They are one question: if the oldest must wait, all must."""

    __slots__ = ("full", "holder", "key", "plan", "tickets", "wait")

    def __init__(self, key: str, plan: Plan) -> None:
        self.key = key
        self.holder = key  # under which name room is kept for it: that of the first of its gang
        self.plan = plan
        self.tickets = Tickets()
        self.full: dict[str, Limit | None] = {}  # places found without room in this pass; None: verdict ran out
        self.wait: Wait | None = None


Turn = tuple[bool, int, tuple[float, ...], int, str]


def turn(bucket: Bucket, usage: Usage, limits: Limits, now: datetime) -> Turn:
    """Return the key by which buckets take turns; lower comes first."""
    plan, oldest = bucket.plan, bucket.tickets.first
    borrows = limits.borrows(usage, plan.queue, plan.common) is not None
    shares: tuple[float, ...] = ()
    for queue, weight in limits.weighted(plan.queue):
        shares += share(usage, limits, (ScopeKind.QUEUE, queue), weight)
    shares += share(usage, limits, (ScopeKind.PROJECT, plan.project), plan.weight)
    return borrows, -plan.priority_at(now - oldest.since), shares, oldest.position, bucket.key


def share(usage: Usage, limits: Limits, scope: tuple[ScopeKind, str], weight: float) -> tuple[float, float]:
    """Return a weighted share: of the resource that a scope holds most of, and of operations to tell equals apart."""
    used, totals = usage.used(*scope), limits.totals
    if not used:
        return 0.0, 0.0
    weight = max(weight, _LEAST_WEIGHT)
    dominant = 0.0
    for resource, amount in used.items():
        whole = totals.get(resource)
        if whole and amount > dominant * whole:
            dominant = amount / whole
    return round(dominant / weight, 12), used.get(RUNNING, 0) / weight


# -- why it waits ------------------------------------------------------------------------------------------------------


def paused(queue: str) -> Wait:
    told = f"queue {queue} is paused; landbridge queue resume {queue}, or take paused out of its document"
    return Wait(WaitReason.QUEUE_PAUSED, told)


def draining(queue: str) -> Wait:
    told = f"queue {queue} is drained and takes nothing new; landbridge queue resume {queue}, or move to another queue"
    return Wait(WaitReason.QUEUE_DRAINING, told)


def making_room(limit: Limit | None) -> Wait:
    where = f" in {limit.name}" if limit is not None else ""
    told = f"room is made{where} for the oldest of its kind: others were asked to leave and have not ended yet"
    return Wait(WaitReason.MAKING_ROOM, told, limit)


def refused(limit: Limit, amounts: Amounts, usage: Usage, limits: Limits) -> Wait:
    """Tell which limit of a queue or a project refuses, and by how much."""
    most, held, wanted = limits.most(limit) or 0, limits.held(usage, limit), amounts[limit.resource]
    whose = f"{limit.scope} {limit.name}"
    if limit.resource == RUNNING:
        return Wait(WaitReason.CONCURRENCY, f"{whose} runs {held} of at most {most} operations", limit)
    asked, quota = format_quantity(limit.resource, wanted), format_quantity(limit.resource, most)
    if wanted > most:
        told = f"it asks for {asked} {limit.resource}, {whose} may hold {quota}: raise the quota or ask for less"
        return Wait(WaitReason.EXCEEDS_QUOTA, told, limit)
    holds = format_quantity(limit.resource, held)
    told = f"{whose} holds {holds} of {quota} {limit.resource}, {asked} more are needed"
    return Wait(WaitReason.QUOTA, told, limit)


def at_capacity(limit: Limit, amounts: Amounts, others: Sequence[str], usage: Usage, limits: Limits) -> Wait:
    """Tell what the best environment lacks, and which `others` are full as well."""
    most, held = limits.most(limit) or 0, limits.held(usage, limit)
    holds = f"{format_quantity(limit.resource, held)} of {format_quantity(limit.resource, most)} {limit.resource}"
    wanted = format_quantity(limit.resource, amounts.get(limit.resource, 0))
    told = f"{limit.name} holds {holds}, {wanted} more are needed"
    named = [*others[:MOST_NAMED], *([f"{len(others) - MOST_NAMED} more"] if len(others) > MOST_NAMED else [])]
    full = f"{', '.join(named[:-1])} and {named[-1]} are" if len(named) > 1 else f"{named[0]} is" if named else ""
    return Wait(WaitReason.AT_CAPACITY, f"{told}; {full} full as well" if full else told, limit)


def reserved(limit: Limit) -> Wait:
    told = f"{limit.resource} of {limit.name} is kept for an operation that goes before it"
    return Wait(WaitReason.RESERVED, told, limit)


def gang_incomplete(gang: str, here: int, members: int, why: str = "") -> Wait:
    """Tell that a gang waits for members, or for what keeps one of them from being admitted."""
    name = gang.rpartition("/")[2]
    lacking = members - here
    told = why or f"{lacking} more {'is' if lacking == 1 else 'are'} not accepted yet, not eligible, or not back yet"
    return Wait(WaitReason.GANG_INCOMPLETE, f"gang {name} has {here} of {members} members waiting here; {told}")


def gang_beyond(gang: str, members: int, limit: Limit, wanted: int, most: int) -> Wait:
    """Tell which limit a gang exceeds as a whole, whatever else is held."""
    asked, quota = format_quantity(limit.resource, wanted), format_quantity(limit.resource, most)
    told = f"the {members} members of gang {gang} ask for {asked} {limit.resource} together, {limit.scope} {limit.name}"
    return Wait(WaitReason.EXCEEDS_QUOTA, f"{told} may hold {quota}: raise it or ask for less", limit)


def gang_too_large(gang: str, members: int) -> Wait:
    """Tell that no assignment of a gang's members was found even if nothing else is held anywhere."""
    told = f"the {members} members of gang {gang} do not fit into their environments together, even if those are empty"
    return Wait(WaitReason.EXCEEDS_CAPACITY, f"{told}: ask for less, or let them be in more environments")


def nobody(message: str) -> Wait:
    return Wait(WaitReason.NO_ELIGIBLE_ENVIRONMENT, message)
