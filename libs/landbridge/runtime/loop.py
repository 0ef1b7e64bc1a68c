"""The message loop: take, one transaction, publish from memory, acknowledge in bulk.

Order of effects: inbox, state and event log commit together; publication follows from memory; acknowledgement comes
last. Whatever is interrupted is either redelivered (not committed) or published again at start (committed). Effects
happen once because the inbox is part of the transaction.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from landbridge.bus.envelope import Inbound, Outbound
from landbridge.runtime import logs
from landbridge.runtime.burial import letter_event, make_letter, reason_of
from landbridge.runtime.failpoints import failpoint
from landbridge.runtime.failures import PermanentFailure, TransientFailure
from landbridge.runtime.outbox import Outbox, Written
from landbridge.runtime.progress import Progress
from landbridge.runtime.telemetry import Telemetry, stamp
from landbridge.store import ContentionError, Database, StoreError, Tx, UnavailableError
from landbridge.store.deadletters import keep
from landbridge.store.inbox import first_seen, suppose_first_seen

RETRY_DELAYS_SECONDS = (1.0, 5.0, 30.0, 120.0)
_TAKE_SECONDS = 0.2
_CONTENTION_TRIES = 8
_CONTENTION_PAUSE_SECONDS = 0.005
_BREAKER_PAUSES_SECONDS = (0.25, 1.0, 2.0, 5.0)
_BREAKER_ROUNDS = 5

log = logs.get(__name__)


class Handler(Protocol):
    """Decides about messages inside the loop's transaction.

    Called with first-seen messages only, in stream order; possibly again with fewer of them when a transaction had to
    be repeated. So what it holds in memory changes in `tx.after_commit`. Returned events are logged with the
    transaction and published after it. Raises PermanentFailure or TransientFailure.
    """

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]: ...


class Source(Protocol):
    """What the loop needs of `landbridge.bus.consume.Consumer`."""

    async def take(self, timeout_s: float | None = None) -> list[Inbound]: ...
    async def ack(self, batch: Sequence[Inbound]) -> None: ...
    async def nak(self, batch: Sequence[Inbound], delay_s: float = 0.0) -> None: ...
    async def term(self, message: Inbound) -> None: ...
    async def stop(self) -> None: ...
    def lag(self) -> int: ...


class Loop:
    """Moves messages of one consumer through one handler."""

    def __init__(
        self,
        name: str,
        consumer: Source,
        handler: Handler,
        database: Database,
        outbox: Outbox,
        *,
        service: str = "",
        foreign: bool = False,
        telemetry: Telemetry | None = None,
        on_uncertain: Callable[[], Awaitable[None]] | None = None,
        before_batch: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`name` identifies the consumer in the inbox and in metrics: never reuse it for other messages.

        `foreign`: message ids are chosen by applications, so they count only together with subject and source.
        `on_uncertain` is awaited after a transaction of which it is not known whether it was kept, `before_batch`
        before messages are handled.
        """
        self.name = name
        self.progress_at = time.monotonic()
        self.waiting = False  # for Postgres
        self._consumer = consumer
        self._handler = handler
        self._database = database
        self._outbox = outbox
        self._service = service or name
        self._foreign = foreign
        self._telemetry = telemetry or Telemetry(self._service)
        self._on_uncertain = on_uncertain
        self._before_batch = before_batch
        self._stopping = False
        self._transient_rounds = 0
        self._progress = Progress(name, consumer.lag)

    # -- life -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Handle messages until `stop`. Survives the absence of Postgres and of the broker."""
        while not self._stopping:
            batch = await self._consumer.take(_TAKE_SECONDS)
            self.progress_at = time.monotonic()
            if not batch:
                self._progress.flush()
                continue
            started = self.progress_at
            if self._before_batch is not None:
                await self._before_batch()
            await self._handle(batch)
            self.progress_at = time.monotonic()
            self._progress.batch(len(batch), self.progress_at - started)
        self._progress.flush()
        await self._consumer.stop()

    def stop(self) -> None:
        """Take nothing more; `run` returns when the batch in hand is done, and gives back what it had not taken."""
        self._stopping = True

    @property
    def handled(self) -> int:
        """Messages that came to an end here."""
        return self._progress.handled

    def lag(self) -> int:
        return self._consumer.lag()

    # -- a batch --------------------------------------------------------------------------------------------------

    async def _handle(self, batch: Sequence[Inbound]) -> None:
        """Bring every message of a batch to one end: acknowledged, delayed, or dead-lettered."""
        usable = [message for message in batch if not message.problem]
        if len(usable) < len(batch):
            for message in batch:
                if message.problem:
                    await self._bury(message, PermanentFailure(message.problem))
        waiting: list[Sequence[Inbound]] = [usable] if usable else []
        transient = 0
        while waiting:
            part = waiting.pop()
            try:
                await self._attempt(part)
            except TransientFailure as failure:
                offenders, others = _split(part, failure.offenders)
                if offenders:
                    transient += len(offenders)
                    await self._delay(offenders, failure)
                waiting += others
            except Exception as error:  # noqa: BLE001 - bugs of ours included: who is at fault is found by halving
                known = error.offenders if isinstance(error, PermanentFailure) else frozenset()
                offenders, others = _split(part, known)
                for message in offenders:
                    await self._bury(message, error)
                waiting += others
        await self._breathe(transient, len(batch))

    async def _attempt(self, part: Sequence[Inbound]) -> None:
        """Handle messages together, waiting for Postgres as long as it takes. Raises what the handler raises."""
        tries = refused = 0
        ask = self._foreign or any(message.deliveries > 1 for message in part)
        while True:
            spans, inside = self._telemetry.begin(part, self.name)
            try:
                written, fresh = await self._transact(inside, ask=ask)
            except ContentionError as error:
                tries += 1
                if tries >= _CONTENTION_TRIES:
                    raise TransientFailure(1.0, f"Postgres: {error}") from error
                await asyncio.sleep(random.uniform(0, _CONTENTION_PAUSE_SECONDS * tries))  # noqa: S311
            except UnavailableError as error:
                await self._recover(error, refused)
                refused += 1
                ask = True  # it may have been kept
            except Exception as error:
                if spans:
                    spans.end(error)
                if ask:
                    raise
                ask = True  # perhaps only because some were seen before: what fails is found out about the others
            else:
                break
        failpoint("loop.after-commit")
        await self._outbox.publish_written(written)
        failpoint("loop.after-publish")
        await self._consumer.ack(part)
        failpoint("loop.after-ack")
        if spans:
            spans.end()
        self._progress.count("handled", fresh)
        self._progress.count("duplicate", len(part) - fresh)
        self._progress.published(len(written.events))

    async def _transact(self, part: Sequence[Inbound], *, ask: bool) -> tuple[Written, int]:
        """Handle what was not seen before. Without `ask` all is supposed to be new; the commit tells if it is not."""
        async with self._database.transaction() as tx:
            fresh = await self._first_seen(tx, part) if ask else self._suppose_first_seen(tx, part)
            events = await self._handler(tx, fresh) if fresh else ()
            written = await self._outbox.write(tx, stamp(events, fresh))
            failpoint("loop.before-commit")
        return written, len(fresh)

    def _suppose_first_seen(self, tx: Tx, part: Sequence[Inbound]) -> Sequence[Inbound]:
        suppose_first_seen(tx, self.name, [self._key(message) for message in part])
        return part

    async def _first_seen(self, tx: Tx, part: Sequence[Inbound]) -> Sequence[Inbound]:
        keys = [self._key(message) for message in part]
        new = await first_seen(tx, self.name, keys)
        if len(new) == len(part):
            return part
        fresh = []
        for key, message in zip(keys, part, strict=True):
            if key in new:
                new.discard(key)  # delivered twice within the batch
                fresh.append(message)
        return fresh

    def _key(self, message: Inbound) -> str:
        return f"{message.subject}\x00{message.source}\x00{message.id}" if self._foreign else message.id

    # -- trouble --------------------------------------------------------------------------------------------------

    async def _recover(self, error: UnavailableError, refused: int = 0) -> None:
        """Hold what is in hand until Postgres answers; the consumer prolongs it with the broker meanwhile.

        `refused` counts how often it had answered and refused again: a full disk, a read-only standby, a missing table.
        """
        log.warning("waiting for Postgres", consumer=self.name, error=str(error))
        self.waiting = True
        for round_ in itertools.count(refused):
            await asyncio.sleep(_BREAKER_PAUSES_SECONDS[min(round_, len(_BREAKER_PAUSES_SECONDS) - 1)])
            await self._database.wait_until_healthy()
            try:
                # The commit that failed may have been kept: its events are known to the event log only.
                await self._outbox.republish()
                if self._on_uncertain is not None:
                    await self._on_uncertain()
            except StoreError as again:
                log.warning("Postgres failed again", consumer=self.name, error=str(again))
            else:
                break
        self.waiting = False
        log.info("Postgres is back", consumer=self.name)

    async def _delay(self, messages: Sequence[Inbound], failure: TransientFailure) -> None:
        self._progress.count("retried", len(messages))
        for message in messages:
            tried = min(message.deliveries, len(RETRY_DELAYS_SECONDS)) - 1
            delay = RETRY_DELAYS_SECONDS[max(tried, 0)] if failure.retry_after_s is None else failure.retry_after_s
            await self._consumer.nak([message], delay)

    async def _breathe(self, transient: int, size: int) -> None:
        """Open the breaker: when whole batches fail for now, pause taking, so that deliveries are not burnt."""
        if transient == 0 or transient < size:
            self._transient_rounds = 0
            return
        self._transient_rounds += 1
        beyond = self._transient_rounds - _BREAKER_ROUNDS
        if beyond > 0:
            pause = _BREAKER_PAUSES_SECONDS[min(beyond, len(_BREAKER_PAUSES_SECONDS)) - 1]
            log.warning("all messages fail for now, taking pauses", consumer=self.name, pause_s=pause)
            await asyncio.sleep(pause)

    async def _bury(self, message: Inbound, error: BaseException) -> None:
        """Dead-letter one message: row and event first, then tell the broker to forget it."""
        reason = reason_of(error)
        expected = isinstance(error, PermanentFailure)
        log.error(
            "message dead-lettered",
            consumer=self.name,
            message_id=message.id,
            type=message.type,
            subject=message.subject,
            error=reason,
            exc_info=None if expected else error,
        )
        while True:
            try:
                async with self._database.transaction() as tx:
                    written = await self._bury_in(tx, message, reason)
                break
            except ContentionError:
                await asyncio.sleep(_CONTENTION_PAUSE_SECONDS)
            except UnavailableError as failure:
                await self._recover(failure)
        await self._outbox.publish_written(written)
        failpoint("loop.before-term")
        await self._consumer.term(message)
        self._progress.dead()

    async def _bury_in(self, tx: Tx, message: Inbound, reason: str) -> Written:
        if not await first_seen(tx, self.name, [self._key(message)]):
            return Written((), "")
        letter = make_letter(self.name, message, reason)
        await keep(tx, letter)
        return await self._outbox.write(tx, stamp([letter_event(self._service, letter)], [message]))


def _split(part: Sequence[Inbound], known: frozenset[str]) -> tuple[Sequence[Inbound], list[Sequence[Inbound]]]:
    """Return the messages at fault, as far as known, and the groups to try next, last first."""
    if len(part) == 1:
        return part, []
    if known:
        offenders = [message for message in part if message.id in known]
        if offenders:
            others = [message for message in part if message.id not in known]
            return offenders, [others] if others else []
    middle = len(part) // 2
    return [], [part[middle:], part[:middle]]
