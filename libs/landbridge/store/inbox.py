"""The inbox: which messages a consumer already handled, kept in the transaction of their effect."""

from collections.abc import Sequence
from functools import lru_cache
from uuid import NAMESPACE_URL, UUID, uuid5

from landbridge.store.tx import Tx

_CLAIM = """
insert into inbox (id, consumer) select id, $2 from unnest($1::uuid[]) as id on conflict do nothing returning id
"""
# Without "on conflict": whoever supposed that nobody had claimed them is told.
_SUPPOSE = "insert into inbox (id, consumer) select id, $2 from unnest($1::uuid[]) as id"


@lru_cache(maxsize=4096)
def inbox_key(message_id: str) -> str:
    """Return the uuid that stands for a message id: itself where it is one, else one derived from its text."""
    try:
        return str(UUID(message_id))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, message_id))


def _is_plain(message_id: str) -> bool:
    return len(message_id) == 36 and message_id[14] == "7" and message_id[8] == "-" and message_id.islower()


async def first_seen(tx: Tx, consumer: str, ids: Sequence[str]) -> set[str]:
    """Claim message ids for `consumer`; return those that no committed transaction had claimed before.

    An id given twice is returned once. Waits for a concurrent transaction that claims the same id. Ids need not be
    UUIDs (an application chooses its own).
    """
    if not ids:
        return set()
    keys = {(i if _is_plain(i) else inbox_key(i)): i for i in ids}
    # Sorted, so that replicas that were given the same messages lock them in the same order.
    rows = await tx.fetch(_CLAIM, sorted(keys), consumer)
    if len(rows) == len(keys):
        return set(keys.values())
    return {keys[str(row[0])] for row in rows}


def suppose_first_seen(tx: Tx, consumer: str, ids: Sequence[str]) -> None:
    """Claim message ids with the commit, without asking first: it fails with a StoreError if any was claimed before.

    For messages that are delivered for the first time. It saves the round trip of asking, and of beginning and
    committing where nothing else is asked either. Each id must be given once.
    """
    tx.last("inbox", _SUPPOSE, sorted(i if _is_plain(i) else inbox_key(i) for i in ids), consumer)
