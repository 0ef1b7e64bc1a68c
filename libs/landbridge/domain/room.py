"""Which places have room for an operation, as `choose` asks it: full ones are found once a pass."""

from datetime import datetime
from typing import Protocol

from landbridge.domain.candidate import environment_of
from landbridge.domain.keeper import Keeper
from landbridge.domain.ledger import Limit, Usage
from landbridge.domain.limits import Limits
from landbridge.domain.queues import Bucket


class Revalidate(Protocol):
    """Tells until when a verdict that has run out holds again, by the newest view; None if it does not."""

    def __call__(self, bucket: str, environment: str, now: datetime) -> datetime | None: ...


class Room:
    """Tells `choose` which places are full for a bucket, and remembers why: a pass gives nothing back.

    `usage` is what the bucket must fit in beside.
    """

    __slots__ = ("_bucket", "_keeper", "_limits", "_now", "_revalidate", "_usage")

    def __init__(
        self, bucket: Bucket, limits: Limits, usage: Usage, keeper: Keeper, revalidate: Revalidate, now: datetime
    ) -> None:
        self._bucket = bucket
        self._limits = limits
        self._usage = usage
        self._keeper = keeper
        self._revalidate = revalidate
        self._now = now

    def __contains__(self, place: object) -> bool:
        name = str(place)
        full = self._bucket.full
        if name in full:
            return True
        if not self.verdict_holds(name):
            full[name] = None
            return True
        limit = self._lacks(name)
        if limit is None:
            return False
        full[name] = limit
        return True

    def _lacks(self, place: str) -> Limit | None:
        plan, limits, usage = self._bucket.plan, self._limits, self._usage
        amounts = plan.amounts[place]
        limit = limits.full(usage, environment_of(place), amounts)
        if limit is None and not plan.alike:
            limit = limits.refused(usage, plan.queue, plan.project, amounts)
        return limit if limit is not None else self._keeper.kept_from(self._bucket, place, usage, self._now)

    def verdict_holds(self, place: str) -> bool:
        """Tell whether the verdict about a place's environment still holds; one that has run out is renewed."""
        plan, environment = self._bucket.plan, environment_of(place)
        until = plan.valid_until.get(environment)
        if until is None or until > self._now:
            return True
        until = self._revalidate(self._bucket.key, environment, self._now)
        if until is None:
            return False
        plan.valid_until[environment] = until
        return True
