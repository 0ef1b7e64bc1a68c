"""For whom room is kept, and who has to leave it alone: what goes before, before what comes after."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

from landbridge.domain.candidate import environment_of
from landbridge.domain.ledger import Charge, Ledger, Limit, Scope, ScopeKind, Usage
from landbridge.domain.limits import Limits
from landbridge.domain.promises import Promises
from landbridge.domain.queues import Bucket, Plan, Turn, turn
from landbridge.domain.reservations import Kept, Reservations, limited_scopes
from landbridge.domain.sleepers import Sleepers
from landbridge.domain.tickets import Ticket

# How long what is released is given to others before it is kept for an operation that needs more of it.
PATIENCE = timedelta(minutes=5)


class Keeper:
    """Keeps room for buckets in the order of their turns: by age alone, one project's work would go before its share.

    `begin` starts a pass.
    """

    def __init__(
        self,
        ledger: Ledger,
        limits: Limits,
        buckets: Mapping[str, Bucket],
        promises: Promises,
        sleepers: Sleepers,
        patience: timedelta,
    ) -> None:
        self._ledger = ledger
        self._limits = limits
        self._buckets = buckets
        self._promises = promises
        self._sleepers = sleepers
        self._patience = patience
        self._reservations = Reservations(ledger, limits)
        self._fixed: dict[str, Turn] = {}
        self._too_soon: set[str] = set()

    def set_limits(self, limits: Limits) -> None:
        self._limits = limits
        self._reservations.set_limits(limits)

    def begin(self) -> None:
        self._reservations.begin()
        self._too_soon.clear()

    def too_soon(self) -> set[str]:
        """Return who was held back for room that others took in this very pass: the next one knows it as theirs."""
        return self._too_soon

    @contextmanager
    def holding_turn(self, bucket: Bucket, now: datetime) -> Iterator[None]:
        """Let a bucket have the turn that it has now, whatever is charged for its gang meanwhile."""
        self._fixed[bucket.key] = self._turn(bucket, now)
        try:
            yield
        finally:
            del self._fixed[bucket.key]

    def note(self, charge: Charge) -> None:
        """Note that something was admitted in this pass."""
        self._reservations.note(charge)

    def note_back(self, charge: Charge) -> None:
        """Take back that something was admitted in this pass."""
        self._reservations.note_back(charge)

    def drop(self, key: str) -> None:
        """Keep nothing for a bucket any more, and wake whom that held back."""
        for limit in self._reservations.drop(key):
            self._sleepers.wake_on(limit)

    def keep(self, bucket: Bucket, ticket: Ticket, place: str, limit: Limit, now: datetime) -> None:
        """Have what is released kept for a bucket: after enough patience, or at once from work that must borrow.

        `place` empty: it is held back wherever it might go.
        """
        patient_until = ticket.since + self._patience
        impatient = patient_until <= now
        if not impatient:
            self._sleepers.remind(bucket.key, patient_until)
            if limit.scope is not ScopeKind.QUEUE or not self._is_owed(bucket.plan):
                self.drop(bucket.key)
                return
        charge = bucket.plan.charge(ticket, place, now)
        mine = self._turn(bucket, now)
        scopes = limited_scopes(charge, self._ledger, self._limits)
        wanted = [scope for scope in scopes if self._gives_way(scope, bucket.key, mine, now)]
        self._reservations.keep(bucket.key, Kept(charge, from_borrowers=not impatient), wanted)

    def keep_gang(self, bucket: Bucket, charges: list[Charge], complete_since: datetime, now: datetime) -> None:
        """Have what is released kept for all members of a gang, after enough patience; `bucket` is its first one's."""
        patient_until = complete_since + self._patience
        if patient_until > now:
            self._sleepers.remind(bucket.key, patient_until)
            self.drop(bucket.key)
            return
        mine = self._turn(bucket, now)
        scopes = {s: None for charge in charges for s in limited_scopes(charge, self._ledger, self._limits)}
        wanted = [scope for scope in scopes if self._gives_way(scope, bucket.key, mine, now)]
        self._reservations.keep(bucket.key, Kept(charges[0], from_borrowers=False, besides=tuple(charges[1:])), wanted)

    def kept_from(self, bucket: Bucket, place: str, usage: Usage, now: datetime) -> Limit | None:
        """Return a limit under which room is kept for one that goes before a bucket; None if it may go on.

        `place` empty: wherever it might go.
        """
        if not self._reservations:
            return None
        promised = self._promises.promised.get(bucket.key)
        if promised is not None and environment_of(place) in ("", promised.environment):
            return None  # room was made for it, and whoever has room kept waits for that as well
        plan = bucket.plan
        charge = plan.charge(bucket.tickets.first, place, now)
        mine = self._turn(self._buckets[bucket.holder], now)
        for scope, holder in self._reservations.holders(charge):
            kept = self._reservations.kept_for(holder)
            if kept is None or self._gives_way(scope, bucket.holder, mine, now):
                continue
            if kept.from_borrowers and not mine[0]:
                continue
            limit = self._reservations.in_the_way(holder, scope, charge, usage, plan.longest, now)
            if limit is not None:
                if self._reservations.is_fresh(scope):
                    self._too_soon.add(bucket.holder)
                return limit
        return None

    def _gives_way(self, scope: Scope, key: str, mine: Turn, now: datetime) -> bool:
        """Tell whether nothing is kept in a scope for a bucket that goes before."""
        holder = self._reservations.holder(scope)
        return holder is None or holder == key or not self._turn(self._buckets[holder], now) < mine

    def _is_owed(self, plan: Plan) -> bool:
        """Tell whether a class stays within the quotas of its queue, which is part of another one."""
        limits = self._limits
        return len(limits.chain(plan.queue)) > 1 and limits.borrows(self._ledger, plan.queue, plan.common) is None

    def _turn(self, bucket: Bucket, now: datetime) -> Turn:
        fixed = self._fixed.get(bucket.key)
        return fixed if fixed is not None else turn(bucket, self._promises.planned_for(bucket.key), self._limits, now)
