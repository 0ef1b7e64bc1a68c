"""Which environments have room for an operation, as `choose` asks it: full ones are found once a pass."""

from datetime import datetime
from typing import TYPE_CHECKING

from landbridge.domain.queues import Bucket

if TYPE_CHECKING:
    from landbridge.domain.admission import Admission


class Room:
    """Tells `choose` which environments are full for a bucket, and remembers why: a pass gives nothing back."""

    __slots__ = ("_admission", "_bucket", "_now")

    def __init__(self, admission: "Admission", bucket: Bucket, now: datetime) -> None:
        self._admission = admission
        self._bucket = bucket
        self._now = now

    def __contains__(self, environment: object) -> bool:
        name = str(environment)
        bucket, admission = self._bucket, self._admission
        if name in bucket.full:
            return True
        plan = bucket.plan
        until = plan.valid_until.get(name)
        if until is not None and until <= self._now:
            until = admission.revalidate(bucket.key, name, self._now)
            if until is None:
                bucket.full[name] = None
                return True
            plan.valid_until[name] = until
        amounts = plan.amounts[name]
        limit = admission.limits.full(admission.ledger, name, amounts)
        if limit is None and not plan.alike:
            limit = admission.limits.refused(admission.ledger, plan.queue, plan.project, amounts)
        if limit is None:
            limit = admission.kept_from(bucket, name, amounts)
        if limit is None:
            return False
        bucket.full[name] = limit
        return True
