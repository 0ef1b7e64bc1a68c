"""The coordinator: one table of subscriptions, two kinds of requests, timers and the expirer."""

import asyncio
import contextlib

from fastapi import FastAPI

from landbridge.bus import streams, subjects
from landbridge.bus.requests import respond
from landbridge.runtime import logs, republish
from landbridge.runtime.service import Service, Subscription
from landbridge.store import StoreError
from landbridge_dispatch.coordinator import standing, stream_watch
from landbridge_dispatch.coordinator.api import add_routes
from landbridge_dispatch.coordinator.core import Core
from landbridge_dispatch.coordinator.expirer import Expirer
from landbridge_dispatch.coordinator.generations import InGeneration
from landbridge_dispatch.coordinator.handlers import IntentsHandler, OperationsHandler, ReportsHandler
from landbridge_dispatch.coordinator.recovery import begin_generation
from landbridge_dispatch.coordinator.requests import Requests
from landbridge_dispatch.coordinator.settings import CoordinatorSettings
from landbridge_dispatch.coordinator.timers import Timers

log = logs.get(__name__)

_GROUP = "coordinator"
_STREAM_WATCH_S = 5.0

SUBSCRIPTIONS: tuple[Subscription, ...] = (
    Subscription(
        stream=streams.OPERATIONS,
        durable="coordinator",
        filters=tuple(subjects.operation(event, "*") for event in ("accepted", "waiting", "decided", "preempted")),
        types=("OperationAccepted", "OperationsWaiting", "OperationsDecided", "OperationsPreempted"),
        handler=lambda service: InGeneration(service.core, OperationsHandler(service.core)),
        unhurried=("accepted",),  # its decision is on the way: both in one transaction
    ),
    Subscription(
        stream=streams.REPORTS,
        durable="coordinator",
        filters=tuple(subjects.report("*", kind) for kind in ("attempts", "inventory", "survey")),
        types=("AttemptReports", "Inventory", "Survey"),
        handler=lambda service: InGeneration(service.core, ReportsHandler(service.core)),
    ),
    Subscription(
        stream=streams.INTENTS,
        durable="coordinator",
        filters=(subjects.intent("cancel", "*"),),
        types=("Cancel",),
        handler=lambda service: InGeneration(service.core, IntentsHandler(service.core)),
    ),
)


class CoordinatorService(Service):
    """One process; replicas share durables, requests and tables. One of them times leases."""

    name = "coordinator"
    subscriptions = SUBSCRIPTIONS

    core: Core
    requests: Requests

    def __init__(self, settings: CoordinatorSettings) -> None:
        super().__init__(settings)
        self.own = settings

    def routes(self, app: FastAPI) -> None:
        add_routes(app, self)
        republish.add_route(app, self, lambda: stream_watch.made_whole(self.core))

    async def prepare(self) -> None:
        self.core = Core(self.database, self.outbox, self.clock, self.own.timing())
        self.requests = Requests(self.core)
        verdicts = self.core.verdicts
        for kind, apply in (
            ("contract", verdicts.apply_contract),
            ("control", verdicts.apply_control),
            ("evidence", verdicts.apply_evidence),
            ("link", verdicts.apply_link),
        ):
            self.follow(kind, streams.ENVIRONMENTS, subjects.environment(kind, subjects.ANY), apply)
        self.follow("queues", streams.CATALOGUE, subjects.catalogue("queue", subjects.ANY), self.core.queues.apply)
        self.follow_access()
        if self.own.begin_generation:
            await begin_generation(self.core, self.own.begin_generation)
        async with self.database.transaction(readonly=True) as tx:
            await self.core.read_centre(tx)
        self.spawn("follow-centre", self.core.follow_centre())
        self.spawn("serve", self._serve())
        self.spawn("stream-watch", self._watch_stream())

    async def _serve(self) -> None:
        """Answer requests and keep time, once what environments claim can be judged."""
        for event in self._caught_up:
            await event.wait()
        self._responders = [
            await respond(self.bus, subjects.lease(subjects.ANY), self.requests.lease, queue=_GROUP),
            await respond(self.bus, subjects.claim(subjects.ANY), self.requests.claim, queue=_GROUP),
            await respond(self.bus, subjects.ask(self.name, "standing"), self._answer_standing, queue=_GROUP),
        ]
        self.spawn("timers", Timers(self.core).run())
        self.spawn("expirer", Expirer(self.core, look_seconds=min(1.0, self.own.lease_ttl_seconds / 10)).run())

    async def _answer_standing(self, _: str, body: bytes) -> bytes:
        return await standing.answer(self.database, body)

    async def _watch_stream(self) -> None:
        """Look at once when the broker comes back: newer messages would hide what it has lost."""
        back = asyncio.Event()
        self.bus.on_reconnect(back.set)
        while True:
            back.clear()
            try:
                await stream_watch.look(self)
            except StoreError as error:
                log.info("stream_not_compared", error=str(error))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(back.wait(), _STREAM_WATCH_S)

    async def closing(self) -> None:
        for responder in getattr(self, "_responders", ()):
            await responder.close()
        if hasattr(self, "requests"):
            await self.requests.close()
            await self.core.close()
