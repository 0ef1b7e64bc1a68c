"""The lineage service: folds OPERATIONS into projections and answers questions about them."""

import asyncio

from fastapi import FastAPI
from prometheus_client import Gauge

from landbridge.bus import streams, subjects
from landbridge.bus.envelope import Inbound
from landbridge.runtime import logs
from landbridge.runtime.service import Service, Subscription
from landbridge.runtime.settings import Settings
from landbridge.store import StoreError
from landbridge_lineage import api_recovery, counts
from landbridge_lineage.api import add_routes
from landbridge_lineage.api_live import add_live_routes
from landbridge_lineage.facts import TYPES
from landbridge_lineage.known import Documents, Environments
from landbridge_lineage.projector import Projector

log = logs.get(__name__)

_COUNTS_SECONDS = 1.0
_GAPS = Gauge("landbridge_lineage_gaps", "Operations with an event missing before later ones that already came")

SUBSCRIPTIONS: tuple[Subscription, ...] = (
    Subscription(
        stream=streams.OPERATIONS,
        durable="lineage",
        filters=(subjects.operation("*", "*"),),
        types=TYPES,
        handler=lambda service: service.projector,
        gather_s=0.2,
    ),
)


class LineageService(Service):
    """One process; replicas share the durable and the tables."""

    name = "lineage"
    subscriptions = SUBSCRIPTIONS
    uses_redis = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.projector = Projector()
        self.environments = Environments()
        self.documents = Documents()

    def routes(self, app: FastAPI) -> None:
        add_routes(app, self)
        add_live_routes(app, self)
        api_recovery.add_routes(app, self)

    async def prepare(self) -> None:
        _GAPS.set_function(lambda: self.projector.gaps)
        self.follow("environments", streams.ENVIRONMENTS, subjects.environment("*", "*"), self.environments.apply)
        self.follow("catalogue", streams.CATALOGUE, subjects.catalogue("*", "*"), self._on_document)
        if self.redis.enabled:
            self.spawn("counts", self._publish_counts())

    async def reload(self) -> None:
        self.projector.forget()

    def _on_document(self, message: Inbound) -> None:
        entry = self.documents.apply(message)
        if entry.kind == "access" and not self.auth.apply(entry.name, entry.document, deleted=entry.deleted):
            log.warning("an access entry cannot be used", name=entry.name)

    async def _publish_counts(self) -> None:
        """Keep the counts in Redis fresh: many look at them, one reads the tables."""
        while True:
            try:
                await counts.publish(self.database, self.redis)
            except StoreError as error:
                log.info("counts were not refreshed", error=str(error))
            await asyncio.sleep(_COUNTS_SECONDS)
