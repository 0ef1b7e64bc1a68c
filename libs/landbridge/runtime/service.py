"""A service: one table of subscriptions, a start in a fixed order, a drain in a fixed order.

Start: HTTP answers probes → broker and Postgres reached → schema at head → own durables there → what a crash left is
published → state loaded, snapshots caught up → ready. Drain, on SIGTERM: not ready → stop pulling → finish what is in
hand → give back the rest → flush the outbox → close. Broker, Postgres or Redis may stop and return at any time.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import msgspec
import structlog
from fastapi import FastAPI

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus, BusSettings
from landbridge.bus.consume import Consumer
from landbridge.bus.envelope import Inbound
from landbridge.bus.publish import Publisher
from landbridge.bus.state import LastPerSubject
from landbridge.runtime import logs
from landbridge.runtime.auth import Authenticator
from landbridge.runtime.clock import Clock, SystemClock
from landbridge.runtime.health import Health, StallDetector
from landbridge.runtime.http import HttpServer, create_app
from landbridge.runtime.loop import Handler, Loop
from landbridge.runtime.outbox import Outbox
from landbridge.runtime.runner import settle_memory
from landbridge.runtime.settings import Settings
from landbridge.runtime.starting import maintain_partitions, reach_broker, reach_durables, reach_store
from landbridge.runtime.telemetry import Telemetry
from landbridge.schema.wire.event_v1 import CatalogueEntry
from landbridge.store import Database
from landbridge.store.migrate import schema_of
from landbridge.store.redis_views import RedisViews

log = logs.get(__name__)

_FOREIGN_STREAMS = frozenset({streams.SUBMISSIONS, streams.INTENTS})
_CONNECT_SECONDS = 5.0
_STUCK_SECONDS = 120.0
_ENTRY = msgspec.json.Decoder(CatalogueEntry)


@dataclass(frozen=True, slots=True)
class Subscription:
    """One row of a service's table: which messages of which stream go to which handler.

    `types` names the messages (the last part of `ce-type`) for the AsyncAPI document. `handler` is called once with the
    service, after `Service.prepare`. `gather_s` is for what nobody waits for, such as projections: while messages keep
    coming, batches are taken no more often than every so many seconds. `unhurried` names events of operations that may
    wait a moment to be handled together with another one.
    """

    stream: str
    durable: str
    filters: tuple[str, ...]
    types: tuple[str, ...]
    handler: Callable[[Any], Handler]
    batch: int = 1000
    gather_s: float = 0.0
    unhurried: tuple[str, ...] = ()


class Service:
    """Base of all services. Subclasses set `name` and `subscriptions` and override the hooks."""

    name: ClassVar[str]
    subscriptions: ClassVar[tuple[Subscription, ...]] = ()
    uses_postgres: ClassVar[bool] = True
    uses_redis: ClassVar[bool] = False

    bus: Bus
    database: Database
    outbox: Outbox

    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.health = Health()
        self.telemetry = Telemetry(
            self.name, endpoint=settings.otlp_endpoint, instance=settings.instance, ratio=settings.trace_ratio
        )
        self.auth = Authenticator(settings.admin_token_sha256, settings.session_key.get_secret_value())
        self.redis = RedisViews(settings.redis_url.get_secret_value() if self.uses_redis else "")
        self.app: FastAPI = create_app(
            f"Landbridge {self.name}",
            self.health,
            max_body_bytes=settings.max_body_bytes,
            telemetry=self.telemetry,
            started=lambda: self.health.started,
        )
        self.loops: list[Loop] = []
        self._running: set[asyncio.Task[None]] = set()  # the loops, while they run
        self.port = 0
        self._stop = asyncio.Event()
        self._group: asyncio.TaskGroup
        self._background: list[asyncio.Task[None]] = []
        self._caught_up: list[asyncio.Event] = []
        self._readers: list[LastPerSubject] = []
        self._stage = "starting"
        self.health.add_startup("stage", lambda: self._stage)

    # -- hooks ----------------------------------------------------------------------------------------------------

    def routes(self, app: FastAPI) -> None:
        """Add HTTP routes. Called before anything is connected."""

    async def prepare(self) -> None:
        """Load state; start followers (`follow`) and background work (`spawn`). Broker and Postgres were reached."""

    async def reload(self) -> None:
        """Load again what is held in memory: it is not known whether the last transaction was kept."""

    async def closing(self) -> None:
        """Finish what is in hand. Called when no loop runs any more and HTTP is closed; all connections are open."""

    # -- for subclasses -------------------------------------------------------------------------------------------

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run background work until the drain. If it raises, the whole service ends with an error."""
        self._background.append(self._group.create_task(work, name=name))

    def follow(self, name: str, stream: str, subject_filter: str, apply: Callable[[Inbound], None]) -> None:
        """Feed `apply` with the last message of each subject, then with every change; not ready before the snapshot.

        Each replica follows by itself. `apply` runs in the event loop and must not raise for what others wrote.
        """
        caught_up = asyncio.Event()
        self._caught_up.append(caught_up)
        self.health.add(name, lambda: caught_up.is_set() or "the snapshot is not complete")
        self.spawn(f"follow-{name}", self._follow(name, stream, subject_filter, apply, caught_up))

    async def _follow(
        self, name: str, stream: str, subject_filter: str, apply: Callable[[Inbound], None], caught_up: asyncio.Event
    ) -> None:
        reader = LastPerSubject(self.bus, stream, subject_filter)
        self._readers.append(reader)

        async def signal_caught_up() -> None:
            await reader.caught_up.wait()
            caught_up.set()

        waiter = asyncio.create_task(signal_caught_up(), name=f"caught-up-{name}")
        try:
            async for message in reader:
                try:
                    apply(message)
                except Exception:  # one unreadable message must not cut a replica off from all others
                    log.exception("a state message was not understood", follower=name, subject=message.subject)
        finally:
            waiter.cancel()

    async def views_current(self) -> None:
        """Return once all that is followed and was announced by now is applied, or after a second."""
        for reader in self._readers:
            await reader.current()

    def follow_access(self) -> None:
        """Let the holders of access entries in: tokens made by `landbridge access` work here as soon as published."""
        self.follow("access", streams.CATALOGUE, subjects.catalogue("access", subjects.ANY), self._apply_access)

    def _apply_access(self, message: Inbound) -> None:
        entry = _ENTRY.decode(message.body)
        if not self.auth.apply(entry.name, entry.document, deleted=entry.deleted):
            log.warning("an access entry cannot be used", name=entry.name)

    # -- life -----------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT; return the exit code. Raises what background work raised."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self.stop)
        structlog.contextvars.bind_contextvars(service=self.name)
        self.routes(self.app)
        settings = self.settings
        server = HttpServer(self.app, settings.http_host, settings.http_port, port_file=settings.port_file)
        self.port = server.port
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.telemetry.shutdown)
            async with asyncio.TaskGroup() as group:
                self._group = group
                http = await stack.enter_async_context(_Closable(server.running()))
                try:
                    await self._until_stopped(self._start(stack))
                    await self._stop.wait()
                finally:
                    await self._drain(http)
        log.info("stopped")
        return 0

    def stop(self) -> None:
        """Begin the drain."""
        self._stop.set()

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        """Await `work`, giving it up when the service is told to stop. Raises what `work` raised."""
        task = asyncio.create_task(work, name="start")
        stopped = asyncio.create_task(self._stop.wait(), name="stopped")
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        if task.done() and not task.cancelled():
            task.result()

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        began = time.monotonic()
        settings = BusSettings(
            url=self.settings.nats_url, creds=self.settings.nats_creds, connect_within_s=_CONNECT_SECONDS
        )
        self.bus = await reach_broker(settings, self.name, self._tell)
        stack.push_async_callback(self.bus.drain)
        self.health.add("nats", lambda: self.bus.healthy() or "not connected")
        stall = StallDetector()
        self.spawn("stall-detector", stall.run())
        if self.uses_postgres:
            await self._open_store(stack)
        if self.redis.enabled:
            stack.push_async_callback(self.redis.close)
            self.health.add("redis", self.redis.healthy, critical=False)
        mine = {(subscription.stream, subscription.durable) for subscription in self.subscriptions}
        await reach_durables(self.bus, [d for d in streams.DURABLES if (d.stream, d.name) in mine], self._tell)
        self._tell("loading state")
        await self.prepare()
        for event in self._caught_up:
            await event.wait()
        for subscription in self.subscriptions:
            self._start_loop(subscription)
        self.health.add_live("loops", self._stuck_loops)
        self._tell("")
        self.health.started = True
        settle_memory()
        log.info("started", port=self.port, seconds=round(time.monotonic() - began, 3))

    def _tell(self, stage: str) -> None:
        self._stage = stage

    async def _open_store(self, stack: contextlib.AsyncExitStack) -> None:
        self.database = await Database.open(
            self.settings.postgres_dsn.get_secret_value(),
            schema_of(self.name),
            size=self.settings.postgres_pool,
            application=f"landbridge-{self.name}",
        )
        stack.push_async_callback(self.database.close)
        self.health.add("postgres", self.database.healthy)
        self.outbox = Outbox(self.database, Publisher(self.bus))
        stack.push_async_callback(self.outbox.close)
        await reach_store(self.database, self.outbox, self.name, self.clock.wall, self._tell)
        self.spawn("outbox", self.outbox.watch())
        self.spawn("partitions", maintain_partitions(self.database, self.clock.wall))

    def _start_loop(self, subscription: Subscription) -> None:
        consumer = Consumer(
            self.bus,
            subscription.stream,
            subscription.durable,
            subscription.filters,
            batch=subscription.batch,
            gather_s=subscription.gather_s,
            unhurried=subjects.among(subscription.unhurried) if subscription.unhurried else None,
        )
        name = f"{subscription.stream.lower()}/{subscription.durable}"
        loop = Loop(
            name,
            consumer,
            subscription.handler(self),
            self.database,
            self.outbox,
            service=self.name,
            foreign=subscription.stream in _FOREIGN_STREAMS,
            telemetry=self.telemetry,
            on_uncertain=self.reload,
            before_batch=self.views_current,
        )
        self.health.add(f"consumer-{subscription.stream.lower()}", lambda: str(consumer.problem or ""))
        self.loops.append(loop)
        self._running.add(self._group.create_task(loop.run(), name=f"loop-{name}"))

    def _stuck_loops(self) -> str:
        """Name loops that made no progress although broker and Postgres are there: only a restart helps then."""
        if not self.loops or not self.bus.healthy() or self.outbox.backlog.oldest_s > _STUCK_SECONDS:
            return ""
        now = time.monotonic()
        stuck = [loop.name for loop in self.loops if now - loop.progress_at > _STUCK_SECONDS and not loop.waiting]
        return f"no progress for {_STUCK_SECONDS:g} s: {', '.join(stuck)}" if stuck else ""

    async def _drain(self, http: "_Closable") -> None:
        log.info("draining")
        self.health.draining = True
        await asyncio.sleep(self.settings.readiness_grace_seconds)
        for loop in self.loops:
            loop.stop()
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=self.settings.drain_seconds)
            for task in late:
                log.warning("not finished in time; what it holds is delivered again", task=task.get_name())
                task.cancel()
        await http.close()
        await self.closing()
        for task in self._background:
            task.cancel()


class _Closable:
    """A context manager that can be left early, once."""

    def __init__(self, inner: contextlib.AbstractAsyncContextManager[None]) -> None:
        self._inner = inner
        self._open = False

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        self._open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._open:
            self._open = False
            await self._inner.__aexit__(None, None, None)
