"""The ranking service: one replica admits and decides, the others stand by with the same view."""

import asyncio
import os
from typing import Final

from fastapi import FastAPI

from landbridge.bus import streams, subjects
from landbridge.bus.consume import Consumer
from landbridge.bus.envelope import Inbound
from landbridge.runtime import logs, republish
from landbridge.runtime.clock import Clock
from landbridge.runtime.loop import Loop
from landbridge.runtime.service import Service, Subscription
from landbridge.runtime.settings import Settings
from landbridge_ranking.api import add_routes
from landbridge_ranking.asks import Asks
from landbridge_ranking.auditing import LOOK_EVERY_S, Auditing
from landbridge_ranking.book import Book
from landbridge_ranking.desk import Desk
from landbridge_ranking.election import Election
from landbridge_ranking.handlers import RankingHandler
from landbridge_ranking.nudge import Nudge

log = logs.get(__name__)

EVENTS: Final = ("assessed", "freed", "requeued", "completed", "failed", "cancelled")

_frees: Final = subjects.among(("freed", "completed", "failed", "cancelled"))

SUBSCRIPTIONS: tuple[Subscription, ...] = (
    Subscription(
        stream=streams.OPERATIONS,
        durable="ranking",
        filters=tuple(subjects.operation(event, "*") for event in EVENTS),
        types=("OperationsAssessed", "OperationFreed", "OperationRequeued", "OperationChanged"),
        handler=lambda service: service.handler,
    ),
)


class RankingService(Service):
    """One process. Replicas share the tables; only the elected one takes messages."""

    name = "ranking"
    subscriptions = SUBSCRIPTIONS

    def __init__(self, settings: Settings, *, clock: Clock | None = None, audit_every_s: float = LOOK_EVERY_S) -> None:
        super().__init__(settings, clock=clock)
        self.audit_every_s = audit_every_s
        self.book = Book()
        self.desk = Desk(self.book)
        self.handler = RankingHandler(self.desk, self.clock)
        self._nudge: Nudge | None = None
        self._election: Election | None = None

    @property
    def admits(self) -> bool:
        """Whether this replica is the admitter."""
        return self._election is not None and self._election.active

    def routes(self, app: FastAPI) -> None:
        add_routes(app, self)
        republish.add_route(app, self)

    async def prepare(self) -> None:
        self._nudge = Nudge(self.desk, self.handler, self.outbox, self.clock)
        holder = self.settings.instance or f"process {os.getpid()}"
        self._election = Election(self.database, holder, self._serve, self._stop.is_set)
        self.follow("environments", streams.ENVIRONMENTS, subjects.environment("*", "*"), self._on_environment)
        self.follow("catalogue", streams.CATALOGUE, subjects.catalogue("*", "*"), self._on_document)
        self.follow_access()
        self.spawn("election", self._elect())

    async def reload(self) -> None:
        self.desk.soil()

    # -- being elected ------------------------------------------------------------------------------------------------

    def _start_loop(self, subscription: Subscription) -> None:
        """Start nothing yet: messages are for the admitter."""

    async def _elect(self) -> None:
        """Stand for election once the view is complete."""
        for event in self._caught_up:
            await event.wait()
        assert self._election is not None
        await self._election.run()

    async def _serve(self, fence: int, deposed: asyncio.Event) -> None:
        """Admit until deposed: take messages, and take turns without any."""
        assert self._nudge is not None
        self.desk.soil()
        self.desk.fence, self.desk.deposed = fence, deposed
        loop = self._new_loop(SUBSCRIPTIONS[0])
        self.loops.append(loop)
        taking = asyncio.create_task(loop.run(), name=f"loop-{loop.name}")
        turns = asyncio.create_task(self._nudge.run(), name="turns")
        lost = asyncio.create_task(deposed.wait(), name="deposed")
        audit = asyncio.create_task(Auditing(self, self.audit_every_s).run(), name="audit")
        try:
            async with Asks(self).answering():
                done, _ = await asyncio.wait({taking, turns, lost, audit}, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {lost}:
                task.result()
        finally:
            loop.stop()
            for task in (turns, lost, audit):
                task.cancel()
            await asyncio.wait({taking, turns, lost, audit})
            self.loops.remove(loop)
            self.desk.fence = 0

    def _new_loop(self, subscription: Subscription) -> Loop:
        consumer = Consumer(
            self.bus,
            subscription.stream,
            subscription.durable,
            subscription.filters,
            batch=subscription.batch,
            unhurried=self._unhurried,
        )
        return Loop(
            f"{subscription.stream.lower()}/{subscription.durable}",
            consumer,
            subscription.handler(self),
            self.database,
            self.outbox,
            service=self.name,
            telemetry=self.telemetry,
            on_uncertain=self.reload,
            before_batch=self.views_current,
        )

    def _unhurried(self, subject: bytes) -> bool:
        """Tell that what an event frees is wanted by nobody yet: what comes next is decided after it all the same."""
        return not self.desk.waiting and _frees(subject)

    # -- the view -----------------------------------------------------------------------------------------------------

    def _on_environment(self, message: Inbound) -> None:
        event, name = subjects.token(message.subject, 3), subjects.environment_of(message.subject)
        if self.book.view.apply_environment(event, name, message.body, message.stream_sequence):
            self._changed()

    def _on_document(self, message: Inbound) -> None:
        if self.book.view.apply_document(message.body, message.stream_sequence):
            self._changed()

    def _changed(self) -> None:
        """Ask for a turn if anything waits; if nothing does, the next one with messages is early enough."""
        if self.desk.fence and self.desk.waiting:
            self.desk.wanted.set()
