"""The eligibility service: where operations may run, asked when they come and again whenever an answer may change."""

from typing import Final

from fastapi import FastAPI

from landbridge.bus import streams, subjects
from landbridge.bus.envelope import Inbound
from landbridge.runtime import republish
from landbridge.runtime.clock import Clock
from landbridge.runtime.service import Service, Subscription
from landbridge.runtime.settings import Settings
from landbridge_eligibility.deciding import Deciding
from landbridge_eligibility.handlers import EligibilityHandler
from landbridge_eligibility.reassess import Reassessment

EVENTS: Final = ("accepted", "requeued", "failed", "cancelled")

SUBSCRIPTIONS: tuple[Subscription, ...] = (
    Subscription(
        stream=streams.OPERATIONS,
        durable="eligibility",
        filters=tuple(subjects.operation(event, "*") for event in EVENTS),
        types=("OperationAccepted", "OperationRequeued", "OperationChanged"),
        handler=lambda service: EligibilityHandler(service.deciding, service.clock, service.reassessment.expect),
    ),
)


class EligibilityService(Service):
    """One process; replicas share the durable and the tables, each has its own view."""

    name = "eligibility"
    subscriptions = SUBSCRIPTIONS

    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        super().__init__(settings, clock=clock)
        self.deciding = Deciding()
        self.reassessment: Reassessment

    def routes(self, app: FastAPI) -> None:
        """Only what every service has: verdicts are read from lineage."""
        republish.add_route(app, self)

    async def prepare(self) -> None:
        self.reassessment = Reassessment(self.deciding, self.outbox, self.clock)
        self.follow("environments", streams.ENVIRONMENTS, subjects.environment("*", "*"), self._on_environment)
        self.follow("catalogue", streams.CATALOGUE, subjects.catalogue("*", "*"), self._on_document)
        self.spawn("reassess", self._reassess())

    async def _reassess(self) -> None:
        """Ask again from the first complete view on: an incomplete one would only cause announcements to and fro."""
        for event in self._caught_up:
            await event.wait()
        await self.reassessment.run()

    def _on_environment(self, message: Inbound) -> None:
        event, name = subjects.token(message.subject, 3), subjects.environment_of(message.subject)
        if self.deciding.view.apply_environment(event, name, message.body, message.stream_sequence):
            self._changed()

    def _on_document(self, message: Inbound) -> None:
        if self.deciding.view.apply_document(message.body, message.stream_sequence):
            self._changed()

    def _changed(self) -> None:
        self.reassessment.tell()
