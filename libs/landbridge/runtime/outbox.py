"""From commit to stream: publish from memory, publish again what a crash left, tell how much waits.

Publishing never gives up while the broker is away: the events are committed, so they must go out. Only an event that
the stream will never take (too large, not permitted) is set aside as a dead letter, with an error in the log.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from landbridge.bus.envelope import Inbound, Outbound
from landbridge.bus.errors import BusError
from landbridge.runtime import logs, metrics
from landbridge.runtime.ids import new_id
from landbridge.runtime.telemetry import stamp
from landbridge.store import ContentionError, Database, TransientStoreError, Tx, eventlog
from landbridge.store.deadletters import DeadLetter, keep
from landbridge.store.eventlog import Backlog, LoggedEvent

log = logs.get(__name__)

_PAUSES_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0)
_SWEEP_SECONDS = 15.0
# Younger marks belong to a loop that is alive and publishing; sweeping them would only make duplicates.
_SWEEP_AGE_SECONDS = 30.0
_GAUGE_SECONDS = 2.0
_IDLE_SECONDS = 0.2
_CONTENTION_TRIES = 5
_CONTENTION_PAUSE_SECONDS = 0.01

Work = Callable[[Tx], Awaitable[Sequence[Outbound]]]


class Publisher(Protocol):
    """What the outbox needs of the bus; `landbridge.bus.publish.Publisher` is one."""

    async def publish(self, messages: Sequence[Outbound]) -> None:
        """Store all messages in their streams. Raises BusError."""


def to_logged(event: Outbound) -> LoggedEvent:
    """Return the event-log row of an event. What is rarely set shares one text column."""
    rest: dict[str, object] = {}
    if event.time:
        rest["time"] = event.time
    if event.source:
        rest["source"] = event.source
    if event.extra:
        rest["extra"] = event.extra
    details = json.dumps(rest) if rest else ""
    return LoggedEvent(event.id, event.subject, event.type, event.about, event.traceparent, details, event.body)


def to_outbound(row: LoggedEvent) -> Outbound:
    """Return the event that a row was written for."""
    rest = json.loads(row.details) if row.details else {}
    extra = tuple((name, value) for name, value in rest.get("extra", ()))
    return Outbound(
        row.subject,
        row.type,
        row.body,
        row.about,
        row.id,
        row.traceparent,
        rest.get("time", ""),
        rest.get("source", ""),
        extra,
    )


@dataclass(frozen=True, slots=True)
class Written:
    """Events that are in the log of an open or committed transaction, under one mark. Empty without events."""

    events: Sequence[Outbound]
    mark: str


class Outbox:
    """One per process and schema; shared by all its loops, batchers and handlers of requests."""

    def __init__(self, database: Database, publisher: Publisher) -> None:
        self._database = database
        self._publisher = publisher
        self._published: list[str] = []
        self._idle: asyncio.TimerHandle | None = None
        self._clearing: asyncio.Task[None] | None = None
        self.backlog = Backlog(0, 0, 0.0)

    async def commit(self, work: Work, *, cause: Sequence[Inbound] = ()) -> list[Outbound]:
        """Run `work` in a transaction, log the events it returns, commit, publish them; return them as published.

        `work` may run several times (serialisation failures). Raises UnavailableError when Postgres is away: the
        transaction may then have been kept, so `work` must be idempotent. For whatever is not a message of a loop.
        """
        for attempt in range(1, _CONTENTION_TRIES + 1):
            try:
                async with self._database.transaction() as tx:
                    written = await self.write(tx, stamp(await work(tx), cause))
                break
            except ContentionError:
                if attempt == _CONTENTION_TRIES:
                    raise
                await asyncio.sleep(_CONTENTION_PAUSE_SECONDS * attempt)
        await self.publish_written(written)
        return list(written.events)

    async def write(self, tx: Tx, events: Sequence[Outbound]) -> Written:
        """Log stamped events inside `tx`, with one mark, and drop the marks of what was published before."""
        if not events:
            return Written((), "")
        replaced, self._published = self._published, []
        if replaced:
            tx.after_rollback(lambda: self._published.extend(replaced))
        mark = await eventlog.append_and_mark(tx, [to_logged(event) for event in events], replaced)
        return Written(events, mark)

    async def publish_written(self, written: Written) -> None:
        """Publish what was committed; its mark is dropped with the next commit, or soon when there is none."""
        if written.events:
            await self.publish(written.events)
            self._published.append(written.mark)
            self._clear_when_idle()

    def _clear_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._start_clearing)

    def _start_clearing(self) -> None:
        if self._published and (self._clearing is None or self._clearing.done()):
            self._clearing = asyncio.create_task(self.clear_marks(), name="outbox-clear")

    async def clear_marks(self) -> None:
        """Drop the marks of published batches now. Postgres being away is no error: they stay and are tried again."""
        marks, self._published = self._published, []
        if not marks:
            return
        try:
            async with self._database.transaction() as tx:
                await eventlog.clear_pending(tx, marks)
        except TransientStoreError:
            self._published += marks

    async def close(self) -> None:
        """Drop the last marks."""
        if self._idle is not None:
            self._idle.cancel()
        if self._clearing is not None:
            await asyncio.wait({self._clearing})
        await self.clear_marks()

    async def publish(self, events: Sequence[Outbound]) -> None:
        """Publish committed events; returns when all are stored. Waits as long as the broker is away."""
        started = time.perf_counter()
        waiting: Sequence[Outbound] = events
        attempt = 0
        while waiting:
            try:
                await self._publisher.publish(waiting)
                break
            except BusError as error:
                if error.retryable:
                    attempt = await self._pause(error, attempt)
                elif len(waiting) > 1:
                    await self._one_by_one(waiting)
                    break
                else:
                    await self._set_aside(waiting[0], error)
                    break
        metrics.publish_seconds.observe(time.perf_counter() - started)

    async def _pause(self, error: BusError, attempt: int) -> int:
        metrics.publish_retries.inc()
        if attempt == 0:
            log.warning("publishing waits for the broker", error=str(error))
        await asyncio.sleep(_PAUSES_SECONDS[min(attempt, len(_PAUSES_SECONDS) - 1)])
        return attempt + 1

    async def _one_by_one(self, events: Sequence[Outbound]) -> None:
        for event in events:
            await self.publish([event])

    async def _set_aside(self, event: Outbound, error: BusError) -> None:
        log.error("an event can not be published", subject=event.subject, type=event.type, error=str(error))
        metrics.dead_letters.labels("outbox").inc()
        row = to_logged(event)
        reason = f"not published: {error}"
        letter = DeadLetter(
            new_id(), "outbox", row.id, row.subject, row.type, row.about, {"details": row.details}, row.body, reason, 0
        )
        async with self._database.transaction() as tx:
            await keep(tx, letter)

    async def republish(self, *, older_than_s: float = 0.0) -> int:
        """Publish every pending range again and drop its mark; return the number of events."""
        count = 0
        for pending in await eventlog.pending_ranges(self._database, older_than_s=older_than_s):
            async for rows in eventlog.events_between(self._database, pending.lo, pending.hi):
                await self.publish([to_outbound(row) for row in rows])
                count += len(rows)
            async with self._database.transaction() as tx:
                await eventlog.clear_pending(tx, [pending.id])
        if count:
            log.info("published again what an interruption had left", events=count)
        return count

    async def watch(self) -> None:
        """Keep the gauges current and sweep marks that a dead replica left. Runs until cancelled."""
        swept = time.monotonic()
        while True:
            try:
                self.backlog = await eventlog.backlog(self._database)
                metrics.outbox_events.set(self.backlog.events)
                metrics.outbox_age.set(self.backlog.oldest_s)
                if self.backlog.oldest_s > _SWEEP_AGE_SECONDS and time.monotonic() - swept > _SWEEP_SECONDS:
                    swept = time.monotonic()
                    await self.republish(older_than_s=_SWEEP_AGE_SECONDS)
            except TransientStoreError as error:
                log.info("the outbox cannot be read", error=str(error))
            await asyncio.sleep(_GAUGE_SECONDS)
