"""What waits, why it waits, and in which order: priority, then weighted fair share between projects, then age."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from landbridge.domain.contract import RUNNING, format_quantity
from landbridge.domain.ledger import Amounts, Ledger, Limit, Limits, ScopeKind
from landbridge.domain.placement import Order

_LEAST_WEIGHT = 1e-9


class WaitReason(StrEnum):
    """Why an eligible operation waits. Stable codes."""

    QUEUE_PAUSED = "queue-paused"
    CONCURRENCY = "concurrency"
    QUOTA = "quota"
    EXCEEDS_QUOTA = "exceeds-quota"
    AT_CAPACITY = "at-capacity"
    RESERVED = "reserved"
    NO_ELIGIBLE_ENVIRONMENT = "no-eligible-environment"


class Ticket(NamedTuple):
    """One waiting operation. `position` orders tickets by arrival; `previous` is where its last attempt was placed."""

    operation: str
    round: int
    position: int
    since: datetime
    previous: str = ""


@dataclass(frozen=True)
class Plan:
    """All that admission must know about a class. Amounts differ by environment where classes serve each other.

    `valid_until` is by environment; a verdict that has run out is renewed before it is used. `order` None: none is
    eligible now, and `nobody` says why. `policy` names whose weights it was ordered by, with versions.
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


class Wait(NamedTuple):
    """Why a bucket waits, as a code, in words, and the limit that stands in the way if it is one."""

    reason: WaitReason
    message: str
    limit: Limit | None = None


class Bucket:
    """The waiting operations of one class, oldest first. They are one question: if the oldest must wait, all must."""

    __slots__ = ("full", "key", "plan", "tickets", "wait")

    def __init__(self, key: str, plan: Plan) -> None:
        self.key = key
        self.plan = plan
        self.tickets: deque[Ticket] = deque()
        self.full: dict[str, Limit | None] = {}  # environments found without room in this pass; None: verdict ran out
        self.wait: Wait | None = None

    @property
    def rank(self) -> tuple[int, int]:
        """What of its turn does not depend on shares: priority and age."""
        return -self.plan.priority, self.tickets[0].position


Turn = tuple[int, float, float, int, str]


def turn(bucket: Bucket, ledger: Ledger, limits: Limits) -> Turn:
    """Return the key by which buckets take turns; lower comes first."""
    plan = bucket.plan
    dominant, running = share(ledger, limits, plan.project, plan.weight)
    return -plan.priority, dominant, running, bucket.tickets[0].position, bucket.key


def share(ledger: Ledger, limits: Limits, project: str, weight: float) -> tuple[float, float]:
    """Return a project's weighted share: of the resource it holds most of, and of operations to tell equals apart."""
    weight = max(weight, _LEAST_WEIGHT)
    used, totals = ledger.used(ScopeKind.PROJECT, project), limits.totals
    dominant = 0.0
    for resource, amount in used.items():
        whole = totals.get(resource)
        if whole and amount > dominant * whole:
            dominant = amount / whole
    return round(dominant / weight, 12), used.get(RUNNING, 0) / weight


# -- why it waits ------------------------------------------------------------------------------------------------------


def paused(queue: str) -> Wait:
    return Wait(WaitReason.QUEUE_PAUSED, f"queue {queue} is paused; resume it to go on")


def refused(limit: Limit, amounts: Amounts, ledger: Ledger, limits: Limits) -> Wait:
    """Tell which limit of a queue or a project refuses, and by how much."""
    most, held, wanted = limits.most(limit) or 0, limits.held(ledger, limit), amounts[limit.resource]
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


def at_capacity(limit: Limit, amounts: Amounts, others: int, ledger: Ledger, limits: Limits) -> Wait:
    """Tell what the best environment lacks, and how many `others` are full as well."""
    most, held = limits.most(limit) or 0, limits.held(ledger, limit)
    holds = f"{format_quantity(limit.resource, held)} of {format_quantity(limit.resource, most)} {limit.resource}"
    wanted = format_quantity(limit.resource, amounts.get(limit.resource, 0))
    told = f"{limit.name} holds {holds}, {wanted} more are needed"
    return Wait(WaitReason.AT_CAPACITY, f"{told}; {others} others are full as well" if others else told, limit)


def reserved(limit: Limit) -> Wait:
    told = f"{limit.resource} of {limit.name} is kept for an operation that has waited longer"
    return Wait(WaitReason.RESERVED, told, limit)


def nobody(message: str) -> Wait:
    return Wait(WaitReason.NO_ELIGIBLE_ENVIRONMENT, message)
