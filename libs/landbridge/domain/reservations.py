"""Room that is kept for work which waits, and what may use it in the meantime.

Without it smaller work would pass larger work by for ever. What is released under a limit is kept for the one that goes
first among those that ask for it to be kept. Others may go on beside it only where that cannot delay it:

- what they take is left over once it has started, in whatever order the present work ends; or
- they have surely ended before enough of the present work is expected to have ended (they state a timeout).
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from landbridge.domain.ledger import (
    NOTHING,
    Amounts,
    Chain,
    Charge,
    Ledger,
    Limit,
    Scope,
    Shifted,
    Usage,
    add,
    scopes,
)
from landbridge.domain.limits import Limits

# Between admission and the start of the time that a timeout counts, and for stopping after it.
MARGIN = timedelta(minutes=2)


class Kept(NamedTuple):
    """What is kept for a bucket. Without an environment only room under limits of queues and project is.

    `from_borrowers`: only work that must borrow has to make way. `besides` is what goes with it: the rest of its gang.
    """

    charge: Charge
    from_borrowers: bool
    besides: tuple[Charge, ...] = ()

    @property
    def charges(self) -> tuple[Charge, ...]:
        return (self.charge, *self.besides)

    def wanted(self, scope: Scope, chain: Chain) -> Amounts:
        """Return what is wanted under a scope."""
        if not self.besides:
            return self.charge.amounts
        sums: dict[str, int] = {}
        for charge in self.charges:
            if scope in scopes(charge, chain):
                add(sums, charge.amounts, 1)
        return sums


class Reservations:
    """At most one bucket for each scope. `begin` starts a pass: within it nothing is released."""

    def __init__(self, ledger: Ledger, limits: Limits) -> None:
        self._ledger = ledger
        self._limits = limits
        self._holder: dict[Scope, str] = {}
        self._scopes: dict[str, list[Scope]] = {}
        self._kept: dict[str, Kept] = {}
        self._least: dict[tuple[Scope, str], int] = {}
        self._fresh: set[str] = set()
        self._fresh_used: dict[Scope, dict[str, int]] = {}
        self._starts: dict[str, datetime] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def begin(self) -> None:
        self._least.clear()
        self._fresh.clear()
        self._fresh_used.clear()
        self._starts.clear()

    def set_limits(self, limits: Limits) -> None:
        """Take on other limits. What is kept has to be asked for again: the tree may be another one."""
        self._limits = limits
        self._holder.clear()
        self._scopes.clear()
        self._kept.clear()

    def holder(self, scope: Scope) -> str | None:
        """Return the bucket for which something is kept in a scope."""
        return self._holder.get(scope)

    def holders(self, charge: Charge) -> list[tuple[Scope, str]]:
        """Return the scopes of a charge in which something is kept, with the buckets that it is kept for."""
        chain = self._ledger.chain
        return [(scope, self._holder[scope]) for scope in scopes(charge, chain) if scope in self._holder]

    def keep(self, key: str, kept: Kept, wanted: Iterable[Scope]) -> None:
        """Keep room for a bucket in these scopes, instead of whatever was kept for it and for others there."""
        self._forget(key)
        for scope in wanted:
            self._holder[scope] = key
            self._scopes.setdefault(key, []).append(scope)
        self._kept[key] = kept
        self._starts.pop(key, None)

    def drop(self, key: str) -> list[Limit]:
        """Keep nothing for a bucket any more; return the limits under which others may try again."""
        kept = self._kept.get(key)
        if kept is None:
            return []
        found = self._forget(key)
        return [Limit(*scope, resource) for scope in found for resource in kept.wanted(scope, self._ledger.chain)]

    def kept_for(self, key: str) -> Kept | None:
        return self._kept.get(key)

    def note(self, charge: Charge) -> None:
        """Note that something was admitted in this pass: it counts as held, but not as work that may end first."""
        if not self._kept:
            return
        self._fresh.add(charge.operation)
        for scope in scopes(charge, self._ledger.chain):
            add(self._fresh_used.setdefault(scope, {}), charge.amounts, 1)

    def note_back(self, charge: Charge) -> None:
        """Take back that something was admitted in this pass: the rest of its gang was not."""
        if charge.operation not in self._fresh:
            return
        self._fresh.discard(charge.operation)
        for scope in scopes(charge, self._ledger.chain):
            add(self._fresh_used[scope], charge.amounts, -1)

    def is_fresh(self, scope: Scope) -> bool:
        """Tell whether anything was admitted under a scope in this pass."""
        return any(self._fresh_used.get(scope, NOTHING).values())

    def in_the_way(
        self, key: str, scope: Scope, charge: Charge, usage: Usage, longest: timedelta | None, now: datetime
    ) -> Limit | None:
        """Return a limit under which a charge might delay what is kept for a bucket in a scope; None if none."""
        wanted = self._kept[key].wanted(scope, self._ledger.chain)
        for resource, amount in charge.amounts.items():
            if resource in wanted and self._delays(scope, resource, wanted[resource], amount, usage):
                if longest is not None and now + longest + MARGIN <= self._start(key, now):
                    return None
                return Limit(*scope, resource)
        return None

    def _delays(self, scope: Scope, resource: str, wanted: int, amount: int, usage: Usage) -> bool:
        """Tell whether `amount` of a resource may be what `wanted` lacks, in some order of endings.

        If `wanted` lacks something even without it, some work under the scope ends first, whatever the order: where the
        smallest of that leaves enough for both, both fit. What was let go on in this pass is one with what asks now.
        """
        most = self._limits.most(Limit(*scope, resource))
        if most is None:
            return False
        lacking = usage.used(*scope).get(resource, 0) + wanted + amount - most
        if lacking <= 0:
            return False
        fresh = self._fresh_used.get(scope, NOTHING).get(resource, 0)
        lacks_anyway = lacking - amount - fresh > 0
        return not lacks_anyway or self._least_of(scope, resource) < lacking

    def _least_of(self, scope: Scope, resource: str) -> int:
        """Return the smallest amount that any work held under a scope when the pass began."""
        known = self._least.get((scope, resource))
        if known is None:
            held = (c.amounts.get(resource, 0) for c in self._ledger.held_in(*scope) if c.operation not in self._fresh)
            known = self._least[scope, resource] = min((amount for amount in held if amount), default=0)
        return known

    def _start(self, key: str, now: datetime) -> datetime:
        """Return the earliest moment at which a bucket's oldest can start if nothing ends before it is expected to."""
        known = self._starts.get(key)
        if known is None:
            known = self._starts[key] = self._find_start(self._kept[key].charges, now)
        return known

    def _find_start(self, charges: tuple[Charge, ...], now: datetime) -> datetime:
        ledger, limits = self._ledger, self._limits
        under = {scope: None for charge in charges for scope in scopes(charge, ledger.chain)}
        present = {held.operation: held for scope in under for held in ledger.held_in(*scope)}
        usage, at = Shifted(ledger, ledger.chain), now
        for held in sorted(present.values(), key=lambda held: _expected_end(held, now)):
            end = _expected_end(held, now)
            if end > at and _all_fit(charges, usage, limits):
                break
            at = end
            usage.add(held, -1)
        return at

    def _forget(self, key: str) -> list[Scope]:
        self._kept.pop(key, None)
        found = [scope for scope in self._scopes.pop(key, ()) if self._holder.get(scope) == key]
        for scope in found:
            del self._holder[scope]
        return found


def _expected_end(charge: Charge, now: datetime) -> datetime:
    return now if charge.ends is None or charge.ends < now else charge.ends


def _all_fit(charges: tuple[Charge, ...], usage: Shifted, limits: Limits) -> bool:
    """Tell whether charges fit in one beside the other."""
    if len(charges) == 1:
        return _fits(charges[0], usage, limits)
    beside = usage.copy()
    for charge in charges:
        if not _fits(charge, beside, limits):
            return False
        beside.add(charge)
    return True


def _fits(charge: Charge, usage: Usage, limits: Limits) -> bool:
    if limits.refused(usage, charge.queue, charge.project, charge.amounts) is not None:
        return False
    return not charge.environment or limits.full(usage, charge.environment, charge.amounts) is None


def limited_scopes(charge: Charge, ledger: Ledger, limits: Limits) -> list[Scope]:
    """Return the scopes of a charge in which anything that it takes is limited."""
    return [
        scope
        for scope in scopes(charge, ledger.chain)
        if any(limits.most(Limit(*scope, resource)) is not None for resource in charge.amounts)
    ]
