"""What handlers, requests, timers and the expirer of one coordinator share."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from landbridge.bus.envelope import Outbound
from landbridge.domain.ownership.leases_centre import (
    EnvironmentLease,
    Hello,
    LeaseAlarm,
    LeaseMessage,
    LeaseReply,
    Link,
    LinkChanged,
    Regrant,
    decide_lease,
)
from landbridge.domain.ownership.policy import DEFAULT_TIMING, Timing
from landbridge.runtime import logs
from landbridge.runtime.clock import Clock
from landbridge.runtime.failpoints import failpoint
from landbridge.runtime.outbox import Outbox, Written
from landbridge.runtime.telemetry import stamp
from landbridge.store import ContentionError, Database, StoreError, Tx
from landbridge_dispatch.coordinator import environments
from landbridge_dispatch.coordinator.declared import Specifications
from landbridge_dispatch.coordinator.measures import alarms, links
from landbridge_dispatch.coordinator.queues_known import Queues
from landbridge_dispatch.coordinator.session import Session
from landbridge_dispatch.coordinator.verdicts import Verdicts

log = logs.get(__name__)
T = TypeVar("T")
_TRIES = 8
_PAUSE_S = 0.005
_CENTRE_S = 1.0
_GENERATION_LOCK = 0x6C62_6765_6E00  # a number that nobody else of this database uses
_STAND = "select generation, recovering from stand($1, $2)"


class Core:
    """One per process."""

    def __init__(self, database: Database, outbox: Outbox, clock: Clock, timing: Timing = DEFAULT_TIMING) -> None:
        self.database = database
        self.outbox = outbox
        self.clock = clock
        self.timing = timing
        self.specifications = Specifications()
        self.verdicts = Verdicts()
        self.queues = Queues()
        self.generation = 1
        self.recovering = False
        """Whether the centre was restored and has not seen all inventories. Once False it stays False."""
        self._publishing: set[asyncio.Task[None]] = set()

    def session(self, tx: Tx) -> Session:
        return Session(tx, self.specifications, self.clock.wall(), timing=self.timing)

    def now(self) -> int:
        """Return milliseconds since 1970."""
        return int(self.clock.wall().timestamp() * 1000)

    async def read_centre(self, tx: Tx) -> None:
        """Take over what the centre's own row says."""
        self._take_over(await tx.fetchrow("select generation, recovering from centre"))

    def _take_over(self, row: Any) -> None:
        if row is not None:
            self.generation, self.recovering = row[0], row[1]

    async def stand(self, tx: Tx, *, alone: bool = False) -> None:
        """Take over what is in force now, and keep it in force to the transaction's end; its first statement.

        However late a replica hears of a generation that another one has begun, it decides nothing by an earlier one:
        what was begun in the old one is over first. `alone`: for who begins a generation.
        """
        self._take_over(await tx.fetchrow(_STAND, _GENERATION_LOCK, alone))

    async def recovers(self, tx: Tx) -> bool:
        """Tell whether the centre recovers; if it does, it goes on doing so to the end of `tx`.

        For who begins an operation that the end of the recovery has to see: it waits until that is committed.
        """
        return self.recovering and bool(await tx.fetchval("select recovering from centre for share"))

    async def follow_centre(self) -> None:
        """Keep up with a generation that another replica begins. Runs until cancelled."""
        while True:
            await asyncio.sleep(_CENTRE_S)
            try:
                async with self.database.transaction(readonly=True) as tx:
                    await self.read_centre(tx)
            except StoreError as error:
                log.info("centre_not_read", error=str(error))

    async def run(
        self, work: Callable[[Tx], Awaitable[tuple[T, Sequence[Outbound]]]], failing: str, *, alone: bool = False
    ) -> T:
        """Run `work` in a transaction and return its result at the commit; its messages are published behind.

        `work` may run several times. `alone`: no other transaction decides meanwhile, in any replica.

        Raises UnavailableError when Postgres is away: it may then have been kept.
        """
        for attempt in range(1, _TRIES + 1):
            try:
                async with self.database.transaction() as tx:
                    await self.stand(tx, alone=alone)
                    result, events = await work(tx)
                    written = await self.outbox.write(tx, stamp(events, ()))
                    failpoint(f"coordinator.{failing}.before-commit")
                break
            except ContentionError:
                if attempt == _TRIES:
                    raise
                await asyncio.sleep(_PAUSE_S * attempt)
        failpoint(f"coordinator.{failing}.after-commit")
        if written.events:
            self._publish(written)
        return result

    def _publish(self, written: Written) -> None:
        task = asyncio.create_task(self.outbox.publish_written(written), name="publish-behind")
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def close(self) -> None:
        """Wait until everything committed is published."""
        if self._publishing:
            await asyncio.wait(self._publishing)

    async def tell_lease(
        self, tx: Tx, lease: EnvironmentLease, message: LeaseMessage, events: list[Outbound]
    ) -> tuple[EnvironmentLease, LeaseReply | None]:
        """Run the production decision for one environment's row, save it, and gather what follows."""
        now = self.now()
        decision = decide_lease(lease, message, now, timing=self.timing)
        after = decision.state
        if after is not lease:
            await environments.save(tx, (after,))
        for effect in decision.effects:
            match effect:
                case LinkChanged(link):
                    events.append(environments.link_event(after, now, self.timing.ttl_ms))
                    tx.after_commit(lambda link=link: _note_link(after.environment, link))  # type: ignore[misc]
                case Regrant(term):
                    await environments.regrant(tx, after.environment, term)
                case LeaseAlarm(kind, text):
                    alarms.labels(kind).inc()
                    log.error("lease_alarm", kind=kind, environment=after.environment, detail=text)
                    if kind == "centre-behind" and isinstance(message, Hello):
                        await environments.note_ahead(tx, after.environment, message.term)
        return after, decision.reply


def _note_link(environment: str, link: Link) -> None:
    links.labels(environment).set(1 if link is Link.CONNECTED else 0)
    log.info("environment_link", environment=environment, link=link.value)


def moment_of(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
