"""Answers from the tables about what waits and what is held."""

from typing import Any
from uuid import UUID

import msgspec

from landbridge.domain.catalogue import Catalogue
from landbridge.domain.contract import RUNNING, format_quantity
from landbridge.domain.decision_record import Placed
from landbridge.store import Tx

_amounts = msgspec.json.Decoder(dict[str, int])
MOST_PLACED = 1000


async def queues(tx: Tx, catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return every queue with what waits in it, what its operations hold, and its limits."""
    waiting = {row[0]: row[1] for row in await tx.fetch("select queue, count(*) from waiting group by queue")}
    held: dict[str, dict[str, int]] = {}
    for row in await tx.fetch("select queue, amounts, count(*) from charge where held group by queue, amounts"):
        sums = held.setdefault(row[0], {})
        for resource, amount in _amounts.decode(row[1]).items():
            sums[resource] = sums.get(resource, 0) + amount * row[2]
    names = sorted({*catalogue.queues, *waiting, *held})
    return [_queue(name, catalogue, waiting.get(name, 0), held.get(name, {})) for name in names]


def _queue(name: str, catalogue: Catalogue, waiting: int, held: dict[str, int]) -> dict[str, Any]:
    document = catalogue.queues.get(name)
    quota = document.quota if document is not None else {}
    return {
        "name": name,
        "priority": document.priority if document is not None else 0,
        "paused": document.paused if document is not None else False,
        "draining": document is not None and document.draining is not None,
        "waiting": waiting,
        "running": held.get(RUNNING, 0),
        "concurrency": document.concurrency if document is not None else None,
        "held": {r: format_quantity(r, amount) for r, amount in sorted(held.items()) if r != RUNNING},
        "quota": {resource: format_quantity(resource, amount) for resource, amount in sorted(quota.items())},
    }


_WAITING = """
    select w.operation::text, 'waiting' as state, w.round, w.queue, w.project, w.priority, w.reason, w.since,
        1 + (select count(*) from waiting o where o.queue = w.queue
            and (o.priority > w.priority or (o.priority = w.priority and o.position < w.position))) as place,
        (select count(*) from waiting o where o.queue = w.queue) as length
    from waiting w where w.operation = $1
"""
_HELD = """
    select operation::text, case when held then 'held' else 'released' end as state, round, queue, project, environment,
        decision, amounts, at
    from charge where operation = $1
"""


async def standing(tx: Tx, operation: str) -> dict[str, Any] | None:
    """Return where an operation stands: its place in the queue, or what it holds. None if it is not known here.

    Places count by priority, then arrival. Fair sharing between projects may let others go first.
    """
    try:
        UUID(operation)
    except ValueError:
        return None
    row = await tx.fetchrow(_WAITING, operation)
    if row is not None:
        return dict(row)
    row = await tx.fetchrow(_HELD, operation)
    return {**dict(row), "amounts": _amounts.decode(row["amounts"])} if row is not None else None


async def placed_by(tx: Tx, decision: str, operation: str | None = None) -> list[tuple[str, Placed]]:
    """Return operations, or the one that is named, whose last placement rests on a decision, with their projects."""
    rows = await tx.fetch(
        """select project, operation, round, previous, held_out from charge
           where decision = $1 and ($3::uuid is null or operation = $3) order by operation limit $2""",
        decision,
        MOST_PLACED,
        operation,
    )
    return [(row[0], Placed(str(row[1]), row[2], row[3], row[4])) for row in rows]
