"""How much may be held: the limits of queues and projects from the catalogue, those of environments by capacity.

A queue that is part of another may borrow: hold more than its quota, up to `borrow`, while the other one has room.
"""

from collections.abc import Mapping
from datetime import datetime

from landbridge.domain.catalogue import Catalogue, Queue
from landbridge.domain.contract import RUNNING
from landbridge.domain.ledger import NOTHING, Amounts, Limit, ScopeKind, Usage


class Limits:
    """The limits in force. `totals` is the capacity of all environments together."""

    def __init__(self, catalogue: Catalogue, capacity: Mapping[str, Amounts]) -> None:
        self.catalogue = catalogue
        self.capacity = capacity
        self.totals: dict[str, int] = {}
        for amounts in capacity.values():
            for resource, amount in amounts.items():
                self.totals[resource] = self.totals.get(resource, 0) + amount
        self._chains = {name: _chain(catalogue, name) for name in catalogue.queues}
        weighted = _weighted(catalogue)
        self._roots_weighted = any(not queue.parent and queue.weight is not None for queue in catalogue.queues.values())
        self._borrowing = {
            name: tuple(catalogue.queues[q] for q in chain if _may_borrow(catalogue, q))
            for name, chain in self._chains.items()
        }
        self._shared = {
            name: tuple((q, _weight(catalogue.queues[q])) for q in reversed(chain) if q in weighted)
            for name, chain in self._chains.items()
        }

    def chain(self, queue: str) -> tuple[str, ...]:
        """Return a queue and all that it is part of, innermost first."""
        return self._chains.get(queue, (queue,))

    def weighted(self, queue: str) -> tuple[tuple[str, float], ...]:
        """Return the queues, outermost first, whose share is compared with their siblings', with their weights.

        Siblings share by weight where at least one of them states a weight; else only projects share.
        """
        found = self._shared.get(queue)
        return found if found is not None else ((queue, 1.0),) if self._roots_weighted else ()

    def may_borrow(self, queue: str) -> bool:
        """Tell whether a queue, or one that it is part of, may hold more than its quota."""
        return bool(self._borrowing.get(queue))

    def borrows(self, usage: Usage, queue: str, amounts: Amounts) -> Limit | None:
        """Return the first quota, of the queue or of one that it is part of, that `amounts` more would go beyond."""
        for found in self._borrowing.get(queue, ()):
            used = usage.used(ScopeKind.QUEUE, found.name)
            for resource, most in found.quota.items():
                if resource in amounts and used.get(resource, 0) + amounts[resource] > most:
                    return Limit(ScopeKind.QUEUE, found.name, resource)
        return None

    def beyond_quota(self, usage: Usage, queue: str, below: str, resource: str) -> bool:
        """Tell whether a queue, or one that it is part of below another, holds more of a resource than its quota.

        `below` empty: any that it is part of.
        """
        for name in self.chain(queue):
            if name == below:
                return False
            found = self.catalogue.queues.get(name)
            quota = found.quota.get(resource) if found is not None and found.parent else None
            if quota is not None and usage.used(ScopeKind.QUEUE, name).get(resource, 0) > quota:
                return True
        return False

    def paused(self, queue: str) -> str:
        """Return the queue that is paused, of those that `queue` is part of; empty if none is."""
        queues = self.catalogue.queues
        return next((name for name in self.chain(queue) if name in queues and queues[name].paused), "")

    def drained(self, queue: str) -> tuple[str, datetime] | None:
        """Return which queue, of those that `queue` is part of, takes nothing new, and since when; None if none."""
        known = self.catalogue.queues
        found = ((name, known[name].draining) for name in self.chain(queue) if name in known)
        return next(((name, since) for name, since in found if since is not None), None)

    def refused(self, usage: Usage, queue: str, project: str, amounts: Amounts) -> Limit | None:
        """Return the first limit of queue or project that `amounts` more would exceed; None if all hold."""
        for name in self.chain(queue):
            found = self._queue(usage, name, amounts)
            if found is not None:
                return found
        document = self.catalogue.projects.get(project)
        if document is None or (document.running is None and not document.quota):
            return None
        used = usage.used(ScopeKind.PROJECT, project)
        if document.running is not None and used.get(RUNNING, 0) + 1 > document.running:
            return Limit(ScopeKind.PROJECT, project, RUNNING)
        for resource, most in document.quota.items():
            if resource in amounts and used.get(resource, 0) + amounts[resource] > most:
                return Limit(ScopeKind.PROJECT, project, resource)
        return None

    def full(self, usage: Usage, environment: str, amounts: Amounts) -> Limit | None:
        """Return the first resource of which an environment has not `amounts` left; None if it has room."""
        capacity = self.capacity.get(environment)
        if capacity is None:
            return Limit(ScopeKind.ENVIRONMENT, environment, RUNNING)
        used = usage.used(ScopeKind.ENVIRONMENT, environment)
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
        return queue.concurrency if limit.resource == RUNNING else _allowed(queue, limit.resource)

    def held(self, usage: Usage, limit: Limit) -> int:
        """Return how much is held under a limit; under a queue's, with all queues that are part of it."""
        return usage.used(limit.scope, limit.name).get(limit.resource, 0)

    def _queue(self, usage: Usage, name: str, amounts: Amounts) -> Limit | None:
        queue = self.catalogue.queues.get(name)
        if queue is None or (queue.concurrency is None and not queue.quota):
            return None
        used = usage.used(ScopeKind.QUEUE, name)
        if queue.concurrency is not None and used.get(RUNNING, 0) + 1 > queue.concurrency:
            return Limit(ScopeKind.QUEUE, name, RUNNING)
        for resource in queue.quota:
            # What a queue may borrow is bounded by the quota of the queue it is part of, which is checked as well.
            if resource in amounts and used.get(resource, 0) + amounts[resource] > (_allowed(queue, resource) or 0):
                return Limit(ScopeKind.QUEUE, name, resource)
        return None


def _allowed(queue: Queue, resource: str) -> int | None:
    most = queue.quota.get(resource)
    return None if most is None else most + (queue.borrow.get(resource, 0) if queue.parent else 0)


def _weight(queue: Queue) -> float:
    return 1.0 if queue.weight is None else queue.weight


def _may_borrow(catalogue: Catalogue, name: str) -> bool:
    queue = catalogue.queues.get(name)
    return queue is not None and bool(queue.parent and queue.quota and queue.borrow)


def _weighted(catalogue: Catalogue) -> set[str]:
    """Return the queues that share by weight: those with a sibling, or themselves, that states one."""
    stating = {queue.parent for queue in catalogue.queues.values() if queue.weight is not None}
    return {name for name, queue in catalogue.queues.items() if queue.parent in stating}


def _chain(catalogue: Catalogue, queue: str) -> tuple[str, ...]:
    chain: list[str] = []
    while queue and queue not in chain:  # a loop of parents ends where it closes
        chain.append(queue)
        document = catalogue.queues.get(queue)
        queue = document.parent if document is not None else ""
    return tuple(chain)
