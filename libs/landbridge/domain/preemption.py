"""Who must leave so that an operation finds room. Pure, and it cannot go round in circles.

An operation may displace work of its own queue that has a lower priority, if the queue says so. One that stays within
the quotas of its queue may also displace work that other queues of the same tree hold beyond theirs (reclaim).

Rank charges by (within quota, priority). Whoever displaces others ranks above each of them: what stays within its quota
displaces what is borrowed whatever the priority, and otherwise only a higher priority of the same queue that does not
rank lower by quota. So with every admission, with or without displacing, the held charges counted by rank, highest
first, grow in the order of words of a dictionary. There are finitely many such counts while nothing arrives or ends, so
displacing comes to an end. Ageing counts for turns only, never here: it would let two operations displace each other.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from landbridge.domain.catalogue import Reclaim
from landbridge.domain.contract import RUNNING
from landbridge.domain.ledger import Charge, Ledger, Limit, ScopeKind, Shifted
from landbridge.domain.limits import Limits

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Means(NamedTuple):
    """By what an operation may displace others: priority within its queue, and reclaim in the tree of its queue."""

    preempts: bool
    reclaim: Reclaim

    def __bool__(self) -> bool:
        return self.preempts or self.reclaim is not Reclaim.NEVER


class Room(NamedTuple):
    """What is promised, and who has to leave for it; nobody, if those that leave anyway are enough."""

    charge: Charge
    leaving: list[Charge]


def make_room(
    wanted: Charge, means: Means, ledger: Ledger, limits: Limits, planned: Shifted, staying: Iterable[str]
) -> Room | None:
    """Return how room is made for `wanted`; None if no displacing that is allowed would make enough.

    `planned` is what will be held without `wanted`; `staying` are operations that cannot be asked (again). First it is
    tried to stay within the quotas, so that what is admitted can itself not be reclaimed.
    """
    kept = frozenset(staying)
    for borrowed in (False, True):
        charge = _as(wanted, borrowed=borrowed)
        leaving = _Search(charge, means, ledger, limits, planned, kept).run()
        if leaving is not None:
            return Room(charge, leaving)
        if not limits.may_borrow(wanted.queue):
            return None
    return None


def _as(charge: Charge, *, borrowed: bool) -> Charge:
    return Charge(
        charge.operation,
        charge.round,
        charge.environment,
        charge.queue,
        charge.project,
        charge.amounts,
        priority=charge.priority,
        borrowed=borrowed,
    )


class _Search:
    """One search for those that have to leave: the least important first, and no more than needed."""

    def __init__(
        self, wanted: Charge, means: Means, ledger: Ledger, limits: Limits, planned: Shifted, kept: frozenset[str]
    ) -> None:
        self._wanted = wanted
        self._means = means
        self._ledger = ledger
        self._limits = limits
        self._kept = kept
        self._usage = planned.copy()

    def run(self) -> list[Charge] | None:
        """Return who has to leave; None if that would not be enough."""
        candidates: list[Charge] | None = None
        leaving: list[Charge] = []
        while (limit := self._lacks()) is not None:
            if candidates is None:
                candidates = self._candidates()
            found = next((charge for charge in candidates if self._helps(charge, limit)), None)
            if found is None:
                return None
            candidates.remove(found)
            self._usage.add(found, -1)
            leaving.append(found)
        return self._fewest(leaving)

    def _lacks(self) -> Limit | None:
        """Return the first limit that stands in the way, the environment's before those that reach further.

        Who leaves the environment helps with the others as well, but not the other way round.
        """
        wanted, limits = self._wanted, self._limits
        found = limits.full(self._usage, wanted.environment, wanted.amounts)
        if found is None and not wanted.borrowed:
            found = limits.borrows(self._usage, wanted.queue, wanted.amounts)
        return found or limits.refused(self._usage, wanted.queue, wanted.project, wanted.amounts)

    def _candidates(self) -> list[Charge]:
        """Return all that may be displaced, in the order in which they are: borrowed, lower priority, later first."""
        wanted = self._wanted
        found: list[Charge] = []
        if self._means.preempts:
            found += [c for c in self._ledger.held_in(ScopeKind.QUEUE, wanted.queue) if self._is_lower(c)]
        if self._means.reclaim is not Reclaim.NEVER and not wanted.borrowed:
            root = self._limits.chain(wanted.queue)[-1]
            found += [c for c in self._ledger.held_in(ScopeKind.QUEUE, root) if self._is_reclaimable(c)]
        return sorted(found, key=_importance)

    def _is_lower(self, charge: Charge) -> bool:
        wanted = self._wanted
        return (
            charge.evictable
            and charge.queue == wanted.queue
            and charge.priority < wanted.priority
            and (charge.borrowed or not wanted.borrowed)
            and charge.operation not in self._kept
        )

    def _is_reclaimable(self, charge: Charge) -> bool:
        any_priority = self._means.reclaim is Reclaim.ANY
        return (
            charge.evictable
            and charge.borrowed
            and charge.queue != self._wanted.queue
            and (any_priority or charge.priority < self._wanted.priority)
            and charge.operation not in self._kept
        )

    def _helps(self, charge: Charge, limit: Limit) -> bool:
        """Tell whether a limit gives way when a charge goes, and whether it may be asked to go for that."""
        if not charge.amounts.get(limit.resource):
            return False
        if limit.scope is ScopeKind.ENVIRONMENT:
            under = charge.environment == limit.name
        elif limit.scope is ScopeKind.PROJECT:
            under = charge.project == limit.name
        else:
            under = limit.name in self._limits.chain(charge.queue)
        return under and (charge.queue == self._wanted.queue or self._is_beyond(charge, limit))

    def _is_beyond(self, charge: Charge, limit: Limit) -> bool:
        """Tell whether a queue that a charge counts in holds more than its quota now, of what is lacking."""
        below = limit.name if limit.scope is ScopeKind.QUEUE else ""
        resources = charge.amounts if limit.resource == RUNNING else (limit.resource,)
        return any(self._limits.beyond_quota(self._usage, charge.queue, below, resource) for resource in resources)

    def _fewest(self, leaving: list[Charge]) -> list[Charge]:
        """Let those stay, the most important first, without whose leaving there is room as well."""
        needed = list(leaving)
        for charge in sorted(leaving, key=_importance, reverse=True):
            self._usage.add(charge)
            if self._lacks() is None:
                needed.remove(charge)
            else:
                self._usage.add(charge, -1)
        return needed


def _importance(charge: Charge) -> tuple[bool, int, float, str]:
    """Order charges by what is lost with them; what was admitted last has done the least."""
    at = charge.at or _LONG_AGO
    return not charge.borrowed, charge.priority, -at.timestamp(), charge.operation
