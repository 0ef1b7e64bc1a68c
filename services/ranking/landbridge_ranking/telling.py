"""When operations that go on waiting are told anew what they wait for. Pure.

Another code is told soon. Another limit under the same code is told once it has stood for a while: it may change with
every turn, and there may be many to tell. `explain` tells what holds at the moment of asking.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from landbridge.domain.ledger import Limit
from landbridge.domain.queues import Wait, WaitReason

# Not more often than this, whatever changes.
TELL_AGAIN_AFTER: Final = timedelta(seconds=2)
STANDS_FOR: Final = timedelta(seconds=5)


class Told(NamedTuple):
    """What operations of a bucket were last told they wait for, and when. None: some were not told anything yet.

    `limit` stands in the way as far as they know; None: there is none, or it is not known which one was told. `other`
    stands there by now, since that moment.
    """

    reason: WaitReason | None
    at: datetime
    limit: Limit | None = None
    other: Limit | None = None
    since: datetime | None = None


def due(told: Told | None, wait: Wait, now: datetime) -> tuple[Told | None, datetime | None]:
    """Return when a bucket is to be told what it waits for, None if it knows; and what to keep of it until then."""
    if told is None or told.reason is not wait.reason:
        return told, now if told is None else told.at + TELL_AGAIN_AFTER
    if wait.limit in (None, told.limit) or told.limit is None:
        return told._replace(limit=told.limit or wait.limit, other=None, since=None), None
    since = told.since if told.since is not None and told.other == wait.limit else now
    return told._replace(other=wait.limit, since=since), max(since + STANDS_FOR, told.at + TELL_AGAIN_AFTER)
