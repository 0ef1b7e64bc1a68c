"""What only people can say of a queue: pause it, drain it, let it go on. Each is kept with name and reason.

The table holds what holds; every service that decides reads it from the catalogue's stream, as it reads documents. A
preview runs the same transaction and rolls it back.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.domain.catalogue import Catalogue, QueueControl
from landbridge.domain.requirements import DEFAULT_QUEUE
from landbridge.runtime import logs
from landbridge.runtime.orders import preview
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.event_v1 import CatalogueEntry
from landbridge.store import Tx

if TYPE_CHECKING:
    from landbridge_ranking.service import RankingService

log = logs.get(__name__)
_ENTRY: Final = event_type("catalogue", "CatalogueEntry")
KIND: Final = "queue-control"
_encode = msgspec.json.Encoder().encode


class Action(StrEnum):
    """What may be done with a queue."""

    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"


async def act(
    service: "RankingService", action: Action, queue: str, by: str, reason: str, *, dry_run: bool
) -> dict[str, Any]:
    """Do it, and tell what follows; a dry run leaves no trace. Raises ProblemError 404 or 409."""
    service.book.settle()  # nothing may have had a turn since the queue was applied
    catalogue = service.book.view.catalogue
    if queue not in catalogue.queues and queue != DEFAULT_QUEUE:
        known = ", ".join(sorted({*catalogue.queues, DEFAULT_QUEUE}))
        raise ProblemError(404, "Not found", f"no queue {queue!r}; there are: {known}")
    outcome: dict[str, Any] = {}
    at = service.clock.wall()

    async def work(tx: Tx) -> Sequence[Outbound]:
        before = await read_control(tx, queue)
        after = _after(action, before, at)
        if (after.paused, after.draining) == (before.paused, before.draining):
            raise ProblemError(409, "Nothing to do", f"queue {queue} is {_state(before)} already")
        await _write(tx, queue, after)
        await tx.execute(
            "insert into audit (action, by, reason, queue) values ($1, $2, $3, $4)",
            f"queue-{action.value}",
            by,
            reason,
            queue,
        )
        outcome.clear()
        outcome.update(queue=queue, state=_state(after), text=await _told(tx, action, queue, catalogue))
        return [_event(queue, after, at)]

    if dry_run:
        await preview(service.database, work)
        return {**outcome, "dryRun": True}
    await service.outbox.commit(work)
    log.warning("queue_controlled", action=action.value, queue=queue, by=by, reason=reason)
    return {**outcome, "dryRun": False}


async def read_control(tx: Tx, queue: str) -> QueueControl:
    """Return what holds of a queue, and lock it."""
    row = await tx.fetchrow("select version, paused, draining from queue_control where queue = $1 for update", queue)
    return QueueControl(row["version"], row["paused"], row["draining"]) if row is not None else QueueControl()


async def latest(tx: Tx, limit: int, queue: str) -> list[dict[str, Any]]:
    """Return what people decided about queues, the newest first."""
    rows = await tx.fetch(
        """select at, action, by, reason, queue, operation from audit where $2 = '' or queue = $2
           order by id desc limit $1""",
        limit,
        queue,
    )
    return [{**dict(row), "at": row["at"].isoformat()} for row in rows]


async def _write(tx: Tx, queue: str, control: QueueControl) -> None:
    await tx.execute(
        """insert into queue_control (queue, version, paused, draining) values ($1, $2, $3, $4)
           on conflict (queue) do update set version = greatest(excluded.version, queue_control.version + 1),
               paused = excluded.paused, draining = excluded.draining""",
        queue,
        control.version,
        control.paused,
        control.draining,
    )


def _after(action: Action, before: QueueControl, at: datetime) -> QueueControl:
    version = before.version + 1
    if action is Action.PAUSE:
        return QueueControl(version, True, before.draining)
    if action is Action.DRAIN:
        return QueueControl(version, before.paused, before.draining or at)
    return QueueControl(version)


def _state(control: QueueControl) -> str:
    parts = [name for name, holds in (("paused", control.paused), ("drained", control.draining is not None)) if holds]
    return " and ".join(parts) or "open"


def _event(queue: str, control: QueueControl, at: datetime) -> Outbound:
    body = CatalogueEntry(kind=KIND, name=queue, version=control.version, document=_encode(control), at=at)
    return Outbound(subjects.catalogue(KIND, queue), _ENTRY, _encode(body))


async def _told(tx: Tx, action: Action, queue: str, catalogue: Catalogue) -> list[str]:
    inside = sorted(name for name in catalogue.queues if _is_part(catalogue, name, queue)) or [queue]
    waiting = await tx.fetchval("select count(*) from waiting where queue = any($1)", inside)
    held = await tx.fetchval("select count(*) from charge where held and queue = any($1)", inside)
    parts = f" with the {len(inside) - 1} that are part of it" if len(inside) > 1 else ""
    now = f"{waiting} operation(s) wait in it, {held} are placed or run."
    if action is Action.PAUSE:
        return [f"Nothing leaves queue {queue}{parts} until it is resumed. {now} What runs goes on."]
    if action is Action.DRAIN:
        return [f"Queue {queue}{parts} takes nothing new: what comes waits. {now} They go on to their end."]
    document = catalogue.queues.get(queue)
    told = [f"Queue {queue}{parts} goes on. {now}"]
    if document is not None and document.paused_by_document:
        told.append(f"Its document says `paused: true`, which holds until another one is applied: edit queue {queue}.")
    return told


def _is_part(catalogue: Catalogue, name: str, of: str) -> bool:
    seen: set[str] = set()
    while name and name not in seen:
        if name == of:
            return True
        seen.add(name)
        document = catalogue.queues.get(name)
        name = document.parent if document is not None else ""
    return False
