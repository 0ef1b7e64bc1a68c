"""Alerting: watches the facts, keeps alerts, tells receivers."""

import asyncio
from datetime import timedelta
from typing import Final

from fastapi import FastAPI

from landbridge.bus import streams, subjects
from landbridge.bus.advisories import advisories
from landbridge.bus.connection import BusSettings
from landbridge.runtime import logs
from landbridge.runtime.service import Service, Subscription
from landbridge.store import StoreError
from landbridge_alerting import facts
from landbridge_alerting.addresses import AllowList
from landbridge_alerting.api import add_routes
from landbridge_alerting.broker import LateServers
from landbridge_alerting.delivery import Delivery, Sender
from landbridge_alerting.environments import Environments
from landbridge_alerting.evaluation import Plan, evaluate
from landbridge_alerting.handlers import EVENTS, DeadLetterHandler, OperationsHandler
from landbridge_alerting.settings import AlertingSettings

log = logs.get(__name__)

SUBSCRIPTIONS: Final = (
    Subscription(
        stream=streams.OPERATIONS,
        durable="alerting",
        filters=tuple(subjects.operation(event, "*") for event in EVENTS),
        types=("OperationsAssessed", "OperationsWaiting", "OperationsDecided", "OperationChanged"),
        handler=lambda service: OperationsHandler(service.clock),
        gather_s=0.5,  # an alert is due after minutes
    ),
    Subscription(
        stream=streams.DEADLETTERS,
        durable="alerting",
        filters=(subjects.deadletter("*"),),
        types=(),  # whatever could not be handled
        handler=lambda service: DeadLetterHandler(service.clock),
    ),
)


class AlertingService(Service):
    """One process; replicas share the durables and the tables, and take turns in evaluating and sending."""

    name = "alerting"
    subscriptions = SUBSCRIPTIONS

    def __init__(self, settings: AlertingSettings) -> None:
        super().__init__(settings)
        self.alerting_settings = settings
        self.environments = Environments()
        self._sender: Sender | None = None
        self.plan = Plan(
            limits=settings.limits,
            window=timedelta(seconds=settings.window_seconds),
            resolve_after=timedelta(seconds=settings.resolve_seconds),
            repeat=timedelta(seconds=settings.repeat_seconds),
            keep_resolved=timedelta(seconds=settings.keep_resolved_seconds),
            receivers=frozenset(settings.receivers),
        )

    def routes(self, app: FastAPI) -> None:
        add_routes(app, self)

    async def prepare(self) -> None:
        settings = self.alerting_settings
        self.follow_access()
        self.follow("environments", streams.ENVIRONMENTS, subjects.environment("*", "*"), self.environments.apply)
        self._sender = Sender(AllowList.parse(settings.webhook_allow), settings.webhook_timeout_seconds)
        delivery = Delivery(self.database, self.clock, settings.receivers, self._sender, settings.external_url)
        if settings.receivers:
            self.spawn("delivery", delivery.run())
            self.health.add("receivers", lambda: ", ".join(sorted(delivery.failing)), critical=False)
        late = LateServers(self.bus, every_s=settings.broker_seconds)
        self.spawn("broker", late.run())
        self.spawn("evaluation", self._evaluate(delivery, late))
        listening = asyncio.Event()
        self.spawn("advisories", self._listen(listening))
        await listening.wait()

    async def _listen(self, listening: asyncio.Event) -> None:
        """Take in what the broker reports about itself."""
        settings = BusSettings(url=self.settings.nats_url, creds=self.settings.nats_creds)
        async with advisories(settings, self.name, self._advised):
            listening.set()
            await asyncio.Event().wait()

    async def _advised(self, about: str, text: str) -> None:
        log.warning("the broker reports", about=about, text=text)
        try:
            async with self.database.transaction() as tx:
                await facts.advise(tx, about, text, self.clock.wall())
        except StoreError as error:  # an advisory may be missed; the log has it
            log.warning("an advisory was not kept", about=about, error=str(error))

    async def closing(self) -> None:
        if self._sender is not None:
            await self._sender.close()

    async def _evaluate(self, delivery: Delivery, late: LateServers) -> None:
        for event in self._caught_up:  # without the environments' state, everything would seem resolved
            await event.wait()
        while True:
            now = self.clock.wall()
            try:
                if await self.outbox.commit(
                    lambda tx: evaluate(tx, self.environments, self.plan, now, late.names)  # noqa: B023
                ):
                    delivery.wake()
            except StoreError as error:
                log.warning("alerts were not evaluated", error=str(error))
            await asyncio.sleep(self.alerting_settings.evaluate_seconds)
