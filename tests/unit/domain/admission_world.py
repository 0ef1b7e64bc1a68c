"""Queues, projects, capacities and plans for tests of admission."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from landbridge.domain.admission import Admission, Admitted
from landbridge.domain.catalogue import Catalogue
from landbridge.domain.ledger import Amounts, Ledger, Limit, ScopeKind
from landbridge.domain.limits import Limits
from landbridge.domain.placement import Ranking, ScoreCard, order
from landbridge.domain.queues import Plan, WaitReason
from landbridge.domain.tickets import Ticket
from support.deciding import NOW, a_catalogue

QUEUES: dict[str, Any] = {
    "training": {"concurrency": 5, "quota": {"gpu": "6"}, "priority": 50},
    "batch": {"concurrency": 4, "parent": "company", "quota": {"cpu": "3"}, "borrow": {"cpu": "2"}},
    "rest": {"parent": "company", "priority": 10},
    "company": {"concurrency": 6, "quota": {"cpu": "6"}},
}
PROJECTS: dict[str, Any] = {"a": {"weight": 2, "limits": {"running": 6}}, "b": {"limits": {"quota": {"gpu": "4"}}}}
CAPACITY = {"x": {"running": 4, "cpu": 8000, "gpu": 4}, "y": {"running": 6, "cpu": 6000, "gpu": 8}}
AMOUNTS = ({"running": 1}, {"running": 1, "cpu": 1000}, {"running": 1, "gpu": 1}, {"running": 1, "cpu": 2000, "gpu": 4})


def a_plan(
    queue: str = "training",
    project: str = "a",
    amounts: Amounts = AMOUNTS[0],
    *,
    environments: Mapping[str, float] | None = None,
    priority: int = 0,
    overflow_after: timedelta = timedelta(0),
    weight: float = 1.0,
) -> Plan:
    totals = {"x": 0.7, "y": 0.4} if environments is None else environments
    cards = tuple(sorted((ScoreCard(e, t, ()) for e, t in totals.items()), key=lambda c: (-c.total, c.environment)))
    return Plan(
        queue=queue,
        project=project,
        priority=priority,
        weight=weight,
        order=order(Ranking("r", cards)),
        amounts=dict.fromkeys(totals, amounts),
        overflow_after=overflow_after,
    )


def an_admission(
    queues: Mapping[str, Any] | None = None,
    capacity: Mapping[str, Amounts] | None = None,
    projects: Mapping[str, Any] | None = None,
) -> Admission:
    catalogue = a_catalogue(queues=queues or {}, projects=projects or {})
    return Admission(Ledger(), Limits(catalogue, capacity if capacity is not None else {"x": {}, "y": {}}))


def arrive(admission: Admission, key: str, *names: str, at: datetime = NOW) -> None:
    start = sum(len(bucket.tickets) for bucket in admission.buckets.values()) + len(admission.ledger)
    admission.arrive(key, [Ticket(name, 1, start + i, at) for i, name in enumerate(names)])


def names_of(admitted: list[Admitted]) -> list[str]:
    return [found.ticket.operation for found in admitted]


def wait_of(admission: Admission, key: str) -> WaitReason:
    wait = admission.buckets[key].wait
    assert wait is not None
    return wait.reason


def broken_limits(admission: Admission, catalogue: Catalogue) -> list[Limit]:
    """Every limit that is exceeded, counted anew from the charges."""
    limits, charges = admission.limits, admission.ledger.charges()
    found = []
    for limit in _every_limit(catalogue, limits.capacity):
        most = limits.most(limit)
        held = sum(
            charge.amounts.get(limit.resource, 0)
            for charge in charges
            if (limit.scope is ScopeKind.ENVIRONMENT and charge.environment == limit.name)
            or (limit.scope is ScopeKind.PROJECT and charge.project == limit.name)
            or (limit.scope is ScopeKind.QUEUE and limit.name in limits.chain(charge.queue))
        )
        assert held == limits.held(admission.ledger, limit)
        if most is not None and held > most:
            found.append(limit)
    return found


def _every_limit(catalogue: Catalogue, capacity: Mapping[str, Amounts]) -> list[Limit]:
    resources = ("running", "cpu", "gpu")
    names = {ScopeKind.ENVIRONMENT: capacity, ScopeKind.QUEUE: catalogue.queues, ScopeKind.PROJECT: catalogue.projects}
    return [Limit(scope, name, resource) for scope, known in names.items() for name in known for resource in resources]
