"""Publishing a service's event log again: after the broker has lost a stream, Postgres still knows what was said.

Events keep their ids, so that whoever has handled them already handles them once. Of what environments and documents
are like now only the last word of each subject is said again; offers are not, since unclaimed ones are made anew.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

from fastapi import Depends, FastAPI, Query

from landbridge.bus import subjects
from landbridge.runtime import logs
from landbridge.runtime.auth import Principal, Role
from landbridge.runtime.outbox import Outbox, to_outbound
from landbridge.store import Database, eventlog

if TYPE_CHECKING:
    from landbridge.runtime.service import Service

log = logs.get(__name__)

HOURS: Final = 168  # what the stream of operations keeps
_FAMILY: Final = 2  # the word of a subject that names its kind
_LAST: Final = UUID(int=(1 << 128) - 1)


def first_id_since(moment: datetime) -> str:
    """Return the lowest UUIDv7 of a moment."""
    return str(UUID(int=int(moment.astimezone(UTC).timestamp() * 1000) << 80))


def is_state(subject: str) -> bool:
    """Whether only the last message of a subject counts."""
    return subjects.token(subject, _FAMILY) in ("environment", "catalogue")


def is_passing(subject: str) -> bool:
    """Whether saying it again helps nobody: unclaimed offers run out and are made anew."""
    return subjects.token(subject, _FAMILY) == "command" and subject.endswith(".offer")


async def republish(database: Database, outbox: Outbox, since: datetime, *, dry_run: bool = False) -> dict[str, int]:
    """Publish what was logged since a moment again, in its order; return how many by the first words of subjects."""
    counts: dict[str, int] = {}
    last: dict[str, eventlog.LoggedEvent] = {}
    async for rows in eventlog.events_between(database, first_id_since(since), str(_LAST)):
        history = [row for row in rows if not is_state(row.subject) and not is_passing(row.subject)]
        last |= {row.subject: row for row in rows if is_state(row.subject)}
        for row in history:
            _count(counts, row.subject)
        if history and not dry_run:
            await outbox.publish([to_outbound(row) for row in history])
    states = sorted(last.values(), key=lambda row: row.id)
    for row in states:
        _count(counts, row.subject)
    if states and not dry_run:
        await outbox.publish([to_outbound(row) for row in states])
    return counts


def _count(counts: dict[str, int], subject: str) -> None:
    family = subjects.token(subject, _FAMILY)
    counts[family] = counts.get(family, 0) + 1


async def _nothing() -> None:
    return


def add_route(app: FastAPI, service: "Service", then: Callable[[], Awaitable[None]] = _nothing) -> None:
    """Let an administrator have this service's log published again; `then` follows."""
    admin = Depends(service.auth.require(Role.ADMIN))

    @app.post(f"/v1/recovery/republish/{service.name}")
    async def again(
        hours: Annotated[int, Query(ge=1, le=8760)] = HOURS,
        dry_run: Annotated[bool, Query(alias="dryRun")] = False,
        principal: Principal = admin,
    ) -> dict[str, Any]:
        since = service.clock.wall() - timedelta(hours=hours)
        counts = await republish(service.database, service.outbox, since, dry_run=dry_run)
        if not dry_run:
            await then()
            log.warning("event_log_published_again", by=principal.name, hours=hours, **counts)
        return {"service": service.name, "events": counts, "dryRun": dry_run}
