"""The steps of a service's start that wait for others: broker, Postgres and its schema, the declared durables.

Each waits as long as it takes and tells what for, in the log and through `tell`, which /startupz shows.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.bus.declare import missing
from landbridge.bus.errors import BusError
from landbridge.bus.streams import DurableSpec
from landbridge.runtime import logs
from landbridge.runtime.outbox import Outbox
from landbridge.store import Database, SchemaOutOfDateError, StoreError, TransientStoreError
from landbridge.store.migrate import check_head
from landbridge.store.partitions import maintain

log = logs.get(__name__)

Tell = Callable[[str], None]

_RETRY_SECONDS = 1.0
_MAINTENANCE_SECONDS = 3600.0


async def reach_broker(settings: BusSettings, name: str, tell: Tell) -> Bus:
    """Return a connection."""
    tell("connecting to NATS")
    while True:
        try:
            return await connect(settings, name=name)
        except BusError as error:
            tell(f"connecting to NATS: {error}")
            log.warning("waiting for NATS", error=str(error))
            await asyncio.sleep(_RETRY_SECONDS)


async def reach_store(
    database: Database, outbox: Outbox, service: str, now: Callable[[], datetime], tell: Tell
) -> None:
    """Return when the schema is this release's, partitions exist, and what a crash left is published."""
    tell("connecting to Postgres")
    while True:
        try:
            await check_head(database, service)
            await maintain(database, now())
            await outbox.republish()
        except (TransientStoreError, SchemaOutOfDateError) as error:
            tell(str(error))
            log.warning("waiting for Postgres", error=str(error))
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


async def reach_durables(bus: Bus, wanted: Sequence[DurableSpec], tell: Tell) -> None:
    """Return when the centre has declared the service's own durables."""
    while True:
        try:
            lacking: Sequence[str] = await missing(bus, wanted)
        except BusError as error:
            lacking = [str(error)]
        if not lacking:
            return
        tell(f"the centre has not declared: {', '.join(lacking)}")
        log.warning("waiting for streams", missing=lacking)
        await asyncio.sleep(_RETRY_SECONDS)


async def maintain_partitions(database: Database, now: Callable[[], datetime]) -> None:
    """Keep the day partitions up, every hour, until cancelled."""
    while True:
        await asyncio.sleep(_MAINTENANCE_SECONDS)
        try:
            for done in await maintain(database, now()):
                log.info("partitions", done=done)
        except StoreError as error:
            log.warning("partitions were not maintained", error=str(error))
