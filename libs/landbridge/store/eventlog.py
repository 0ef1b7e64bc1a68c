"""The event log, which is also the outbox: events are written with the state they tell of, published after the commit.

One `pending` row stands for all events of a batch (`lo` to `hi`, both inclusive, of UUIDv7 ids). It is deleted by the
next batch's transaction, once its events were published, so that marking costs no commit of its own. After a crash the
pending ranges are published again; consumers de-duplicate on the ids. Ranges of replicas that share a schema may
overlap: that means harmless duplicates.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from landbridge.store.database import Database
from landbridge.store.tx import Tx

_CHUNK = 1000

_APPEND = """
insert into event_log (id, subject, type, about, traceparent, details, body)
select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[])
"""
_MARK = "insert into pending (id, lo, hi, events) values ($1::uuid, $1::uuid, $2::uuid, $3)"
_UNMARK = "delete from pending where id = any($1::uuid[])"
_RANGE = """
select id, subject, type, about, traceparent, details, body from event_log
where id > $1 and id <= $2 order by id limit $3
"""


class Event(Protocol):
    """What the log keeps of a message; `details` holds what is rarely set, as its writer encodes it."""

    @property
    def id(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def traceparent(self) -> str: ...
    @property
    def details(self) -> str: ...
    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One row of the event log, as it was published or still has to be."""

    id: str
    subject: str
    type: str
    about: str
    traceparent: str
    details: str
    body: bytes


@dataclass(frozen=True, slots=True)
class PendingRange:
    """A batch whose publication was not confirmed. `age_s` is in seconds on Postgres' clock."""

    id: str
    lo: str
    hi: str
    events: int
    age_s: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much was committed and not yet confirmed as published."""

    batches: int
    events: int
    oldest_s: float


def _columns(messages: Sequence[Event]) -> tuple[list[Any], ...]:
    return (
        [m.id for m in messages],
        [m.subject for m in messages],
        [m.type for m in messages],
        [m.about for m in messages],
        [m.traceparent for m in messages],
        [m.details for m in messages],
        [m.body for m in messages],
    )


async def append(tx: Tx, messages: Sequence[Event]) -> None:
    """Write events to the log. Each needs its id already."""
    if messages:
        await tx.execute(_APPEND, *_columns(messages))


async def append_and_mark(tx: Tx, messages: Sequence[Event], replacing: Sequence[str]) -> str:
    """Write a batch's events, mark them pending and drop the marks of published ones: with the commit.

    `messages` is not empty. Returns the id of the pending row, which is to be passed as one of `replacing` once the
    events were published.
    """
    ids = [m.id for m in messages]
    lo, hi = min(ids), max(ids)
    await tx.later("event_log", _APPEND, *_columns(messages))
    if replacing:
        await tx.later("published", _UNMARK, list(replacing))  # other rows than the one that is inserted now
    await tx.later("pending", _MARK, lo, hi, len(ids))
    return lo


async def set_pending(tx: Tx, lo: str, hi: str, replacing: Sequence[str] = (), *, events: int = 0) -> str:
    """Mark the ids from `lo` to `hi` as not yet published and drop the marks `replacing`. Returns the mark's id."""
    await clear_pending(tx, replacing)
    await tx.execute(_MARK, lo, hi, events)
    return lo


async def clear_pending(tx: Tx, marks: Sequence[str]) -> None:
    """Drop the marks of batches that were published."""
    if marks:
        await tx.execute(_UNMARK, list(marks))


async def pending_ranges(db: Database, *, older_than_s: float = 0.0) -> list[PendingRange]:
    """Return unconfirmed batches, oldest first. Their age is counted from the start of their transaction."""
    rows = await db.fetch(
        """select id, lo, hi, events, extract(epoch from clock_timestamp() - at)::float8 as age from pending
           where at <= clock_timestamp() - make_interval(secs => $1) order by at, id""",
        older_than_s,
    )
    return [PendingRange(str(r["id"]), str(r["lo"]), str(r["hi"]), r["events"], r["age"]) for r in rows]


async def events_between(db: Database, lo: str, hi: str, *, chunk: int = _CHUNK) -> AsyncIterator[list[LoggedEvent]]:
    """Yield the logged events from `lo` to `hi` inclusive, in id order, in lists of at most `chunk`."""
    after, last = UUID(int=max(UUID(lo).int - 1, 0)), UUID(hi)
    while True:
        rows = await db.fetch(_RANGE, after, last, chunk)
        if rows:
            yield [LoggedEvent(str(r[0]), r[1], r[2], r[3], r[4], r[5], r[6]) for r in rows]
        if len(rows) < chunk:
            return
        after = rows[-1][0]


async def backlog(db: Database) -> Backlog:
    """Return how much waits for publication."""
    row = await db.fetchrow(
        """select count(*) as batches, coalesce(sum(events), 0)::bigint as events,
                  coalesce(extract(epoch from clock_timestamp() - min(at)), 0)::float8 as oldest from pending"""
    )
    return Backlog(row["batches"], row["events"], row["oldest"]) if row else Backlog(0, 0, 0.0)
