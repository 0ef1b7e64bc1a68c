"""The intake service: takes submissions from the stream and over HTTP, and keeps the catalogue."""

import asyncio

from fastapi import FastAPI

from landbridge.bus import streams, subjects
from landbridge.bus.consume import Consumer
from landbridge.bus.envelope import Inbound
from landbridge.bus.errors import BusError
from landbridge.runtime import logs, republish
from landbridge.runtime.problems import ProblemError
from landbridge.runtime.service import Service, Subscription
from landbridge.store import TransientStoreError
from landbridge_intake.accept import Acceptor
from landbridge_intake.commit import Committer
from landbridge_intake.documents_api import add_document_routes
from landbridge_intake.operations_api import add_operation_routes
from landbridge_intake.plan_api import add_plan_route
from landbridge_intake.prepare import Preparer
from landbridge_intake.queued import EVENTS, QueuedHandler
from landbridge_intake.repair import repair_catalogue
from landbridge_intake.settings import IntakeSettings
from landbridge_intake.stream import SubmissionHandler, SubmissionLoop

log = logs.get(__name__)

_REPAIR_SECONDS = 60.0

SUBSCRIPTIONS: tuple[Subscription, ...] = (
    Subscription(
        stream=streams.SUBMISSIONS,
        durable="intake",
        filters=(subjects.submit("*"),),
        types=("Operation",),
        handler=lambda service: SubmissionHandler(service.acceptor),
    ),
    Subscription(
        stream=streams.OPERATIONS,
        durable="intake",
        filters=tuple(subjects.operation(event, "*") for event in EVENTS),
        types=("OperationsDecided", "OperationChanged"),
        handler=lambda service: QueuedHandler(),  # noqa: ARG005 - it needs nothing of the service
        gather_s=0.2,  # a place that is free a moment later harms nobody; a transaction for each decision would
    ),
)


class IntakeService(Service):
    """One process; replicas share the durable and the tables."""

    name = "intake"
    subscriptions = SUBSCRIPTIONS
    uses_redis = True  # for rate limits only; without it everything is allowed

    def __init__(self, settings: IntakeSettings) -> None:
        super().__init__(settings)
        self.limits = settings
        self.acceptor = Acceptor(self.clock, Preparer(settings.memo_entries))
        self.environments: set[str] = set()
        self._committer: Committer | None = None

    @property
    def committer(self) -> Committer:
        """Runs transactions for HTTP. Raises ProblemError 503 before Postgres was reached."""
        if self._committer is None:
            raise ProblemError(503, "Try again", "the service is starting", headers={"Retry-After": "1"})
        return self._committer

    def routes(self, app: FastAPI) -> None:
        add_operation_routes(app, self)
        add_document_routes(app, self)
        add_plan_route(app, self)
        republish.add_route(app, self)

    async def prepare(self) -> None:
        self._committer = Committer(self.database, self.outbox, self.acceptor, self.limits)
        self.spawn("publish-lane", self._committer.lane.run())
        self.follow_access()
        contracts = subjects.environment("contract", subjects.ANY)
        self.follow("environments", streams.ENVIRONMENTS, contracts, self._on_contract)
        async with self._committer.reading() as tx:
            await self.acceptor.view.refresh(tx)
        self.spawn("catalogue-repair", self._repair(self._committer))

    async def _repair(self, committer: Committer) -> None:
        while True:
            try:
                await repair_catalogue(self.bus, committer, self.clock)
            except (BusError, TransientStoreError, TimeoutError) as error:
                log.warning("the catalogue stream was not compared", error=str(error))
            await asyncio.sleep(_REPAIR_SECONDS)

    def _start_loop(self, subscription: Subscription) -> None:
        """Start the loop; that of submissions with the two differences of `SubmissionLoop`."""
        if subscription.stream != streams.SUBMISSIONS:
            super()._start_loop(subscription)
            return
        consumer = Consumer(
            self.bus, subscription.stream, subscription.durable, subscription.filters, batch=subscription.batch
        )
        loop = SubmissionLoop(
            f"{subscription.stream.lower()}/{subscription.durable}",
            consumer,
            subscription.handler(self),
            self.database,
            self.outbox,
            service=self.name,
            foreign=True,
            telemetry=self.telemetry,
            on_uncertain=self.reload,
        )
        loop.clock = self.clock
        self.health.add(f"consumer-{subscription.stream.lower()}", lambda: str(consumer.problem or ""))
        self.loops.append(loop)
        self._group.create_task(loop.run(), name=f"loop-{loop.name}")

    async def reload(self) -> None:
        self.acceptor.forget()

    async def closing(self) -> None:
        if self._committer is not None:
            await self._committer.close(self.settings.drain_seconds)

    def _on_contract(self, message: Inbound) -> None:
        name = subjects.environment_of(message.subject)
        if b'"versions"' in message.body:
            self.environments.add(name)
        else:
            self.environments.discard(name)
