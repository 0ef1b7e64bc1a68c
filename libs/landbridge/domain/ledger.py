"""What admitted operations hold, and the limits that it must never exceed.

A charge is held from admission to release, under three kinds of scopes at once: its environment, its queue with all the
queues that one is part of, its project. Resources are `running` (operations), `cpu` (millicores), `memory` and
`ephemeral-storage` (bytes) and accelerator classes (devices).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.catalogue import Catalogue
from landbridge.domain.contract import CPU, MEMORY, RUNNING, SCRATCH
from landbridge.domain.hardware import match_accelerator
from landbridge.domain.requirements import Requirements

Amounts = Mapping[str, int]
NOTHING: Amounts = {}


class ScopeKind(StrEnum):
    """What a limit belongs to."""

    ENVIRONMENT = "environment"
    QUEUE = "queue"
    PROJECT = "project"


class Limit(NamedTuple):
    """One limited resource of one scope: what a blocked operation waits for, and what a release may give back."""

    scope: ScopeKind
    name: str
    resource: str


@dataclass(frozen=True, slots=True)
class Charge:
    """What one placement of one operation holds."""

    operation: str
    round: int
    environment: str
    queue: str
    project: str
    amounts: Amounts


def demand(requirements: Requirements, candidate: Candidate) -> dict[str, int]:
    """Return what an operation takes in an environment. Accelerators count as the class that serves them there."""
    amounts = {RUNNING: 1}
    for resource, amount in ((CPU, requirements.cpu), (MEMORY, requirements.memory), (SCRATCH, requirements.scratch)):
        if amount:
            amounts[resource] = amount * requirements.replicas
    need = requirements.accelerator
    if need is not None:
        offer = match_accelerator(need, candidate).offer
        amounts[offer.name if offer is not None else need.name] = need.count * requirements.replicas
    return amounts


class Ledger:
    """All charges, summed up by scope. Charging and releasing are exact inverses; either done twice counts once."""

    def __init__(self, charges: Iterable[Charge] = ()) -> None:
        self._charges: dict[str, Charge] = {}
        self._used: dict[tuple[ScopeKind, str], dict[str, int]] = {}
        for charge in charges:
            self.charge(charge)

    def __len__(self) -> int:
        return len(self._charges)

    def charges(self) -> list[Charge]:
        """Return all charges in the order of their operations' ids."""
        return [self._charges[operation] for operation in sorted(self._charges)]

    def held_by(self, operation: str) -> Charge | None:
        return self._charges.get(operation)

    def charge(self, charge: Charge) -> None:
        """Add a charge; one that the operation already holds is replaced."""
        previous = self._charges.get(charge.operation)
        if previous is not None:
            self._add(previous, -1)
        self._charges[charge.operation] = charge
        self._add(charge, 1)

    def release(self, operation: str, last_round: int | None = None) -> Charge | None:
        """Give back what an operation holds; with `last_round`, only if it was admitted in that round or before."""
        charge = self._charges.get(operation)
        if charge is None or (last_round is not None and charge.round > last_round):
            return None
        del self._charges[operation]
        self._add(charge, -1)
        return charge

    def used(self, scope: ScopeKind, name: str) -> Amounts:
        return self._used.get((scope, name), NOTHING)

    def _add(self, charge: Charge, sign: int) -> None:
        for scope in (
            (ScopeKind.ENVIRONMENT, charge.environment),
            (ScopeKind.QUEUE, charge.queue),
            (ScopeKind.PROJECT, charge.project),
        ):
            used = self._used.get(scope)
            if used is None:
                used = self._used[scope] = {}
            for resource, amount in charge.amounts.items():
                used[resource] = used.get(resource, 0) + sign * amount


class Limits:
    """The limits in force: those of queues and projects from the catalogue, those of environments by their capacity."""

    def __init__(self, catalogue: Catalogue, capacity: Mapping[str, Amounts]) -> None:
        self.catalogue = catalogue
        self.capacity = capacity
        self.totals: dict[str, int] = {}
        for amounts in capacity.values():
            for resource, amount in amounts.items():
                self.totals[resource] = self.totals.get(resource, 0) + amount
        self._members = {name: _members(catalogue, name) for name in catalogue.queues}
        self._chains = {name: _chain(catalogue, name) for name in catalogue.queues}

    def chain(self, queue: str) -> tuple[str, ...]:
        """Return a queue and all that it is part of, innermost first."""
        return self._chains.get(queue, (queue,))

    def paused(self, queue: str) -> str:
        """Return the queue that is paused, of those that `queue` is part of; empty if none is."""
        queues = self.catalogue.queues
        return next((name for name in self.chain(queue) if name in queues and queues[name].paused), "")

    def refused(self, ledger: Ledger, queue: str, project: str, amounts: Amounts) -> Limit | None:
        """Return the first limit of queue or project that `amounts` more would exceed; None if all hold."""
        for name in self.chain(queue):
            found = self._queue(ledger, name, amounts)
            if found is not None:
                return found
        document = self.catalogue.projects.get(project)
        if document is None or (document.running is None and not document.quota):
            return None
        used = ledger.used(ScopeKind.PROJECT, project)
        if document.running is not None and used.get(RUNNING, 0) + 1 > document.running:
            return Limit(ScopeKind.PROJECT, project, RUNNING)
        for resource, most in document.quota.items():
            if resource in amounts and used.get(resource, 0) + amounts[resource] > most:
                return Limit(ScopeKind.PROJECT, project, resource)
        return None

    def full(self, ledger: Ledger, environment: str, amounts: Amounts) -> Limit | None:
        """Return the first resource of which an environment has not `amounts` left; None if it has room."""
        capacity = self.capacity.get(environment)
        if capacity is None:
            return Limit(ScopeKind.ENVIRONMENT, environment, RUNNING)
        used = ledger.used(ScopeKind.ENVIRONMENT, environment)
        for resource, amount in amounts.items():
            most = capacity.get(resource)
            if most is not None and used.get(resource, 0) + amount > most:
                return Limit(ScopeKind.ENVIRONMENT, environment, resource)
        return None

    def most(self, limit: Limit) -> int | None:
        """Return how much a limit allows; None if there is no such limit (any more)."""
        if limit.scope is ScopeKind.ENVIRONMENT:
            return self.capacity.get(limit.name, NOTHING).get(limit.resource)
        if limit.scope is ScopeKind.PROJECT:
            project = self.catalogue.projects.get(limit.name)
            if project is None:
                return None
            return project.running if limit.resource == RUNNING else project.quota.get(limit.resource)
        queue = self.catalogue.queues.get(limit.name)
        if queue is None:
            return None
        if limit.resource == RUNNING:
            return queue.concurrency
        most = queue.quota.get(limit.resource)
        return None if most is None else most + (queue.borrow.get(limit.resource, 0) if queue.parent else 0)

    def held(self, ledger: Ledger, limit: Limit) -> int:
        """Return how much is held under a limit; under a queue's, with all queues that are part of it."""
        if limit.scope is not ScopeKind.QUEUE:
            return ledger.used(limit.scope, limit.name).get(limit.resource, 0)
        return self._held_in(ledger, limit.name, limit.resource)

    def _held_in(self, ledger: Ledger, queue: str, resource: str) -> int:
        members = self._members.get(queue, (queue,))
        if len(members) == 1:
            return ledger.used(ScopeKind.QUEUE, queue).get(resource, 0)
        return sum(ledger.used(ScopeKind.QUEUE, member).get(resource, 0) for member in members)

    def _queue(self, ledger: Ledger, name: str, amounts: Amounts) -> Limit | None:
        queue = self.catalogue.queues.get(name)
        if queue is None:
            return None
        if queue.concurrency is not None and self._held_in(ledger, name, RUNNING) + 1 > queue.concurrency:
            return Limit(ScopeKind.QUEUE, name, RUNNING)
        for resource, most in queue.quota.items():
            if resource not in amounts:
                continue
            # What a queue may borrow is bounded by the quota of the queue it is part of, which is checked as well.
            allowed = most + (queue.borrow.get(resource, 0) if queue.parent else 0)
            if self._held_in(ledger, name, resource) + amounts[resource] > allowed:
                return Limit(ScopeKind.QUEUE, name, resource)
        return None


def _chain(catalogue: Catalogue, queue: str) -> tuple[str, ...]:
    chain: list[str] = []
    while queue and queue not in chain:  # a loop of parents ends where it closes
        chain.append(queue)
        document = catalogue.queues.get(queue)
        queue = document.parent if document is not None else ""
    return tuple(chain)


def _members(catalogue: Catalogue, queue: str) -> tuple[str, ...]:
    return tuple(name for name in sorted(catalogue.queues) if queue in _chain(catalogue, name))
