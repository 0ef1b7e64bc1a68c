"""A running lineage service on a real broker, Postgres and, where a test asks for it, Redis."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from landbridge.bus.connection import Bus
from landbridge.runtime.settings import Settings
from landbridge.store import Database
from landbridge_embedded.nats import NatsServer
from landbridge_lineage.service import LineageService
from support.lineage_service import ADMIN, Lineage
from support.wait import wait_until

StartLineage = Callable[..., Awaitable[Lineage]]


@pytest.fixture
async def start_lineage(
    bus: Bus, nats_server: NatsServer, migrated_dsn: Callable[..., Awaitable[str]]
) -> AsyncIterator[StartLineage]:
    """`await start_lineage(redis_url=…)`: a service that is ready."""
    async with AsyncExitStack() as stack:
        dsn = await migrated_dsn("lineage")

        async def start(redis_url: str = "") -> Lineage:
            settings = Settings(
                nats_url=nats_server.url,
                postgres_dsn=dsn,
                redis_url=redis_url,
                admin_token_sha256=hashlib.sha256(ADMIN.encode()).hexdigest(),
            )
            service = LineageService(settings)
            task = asyncio.create_task(service.run())

            async def stop() -> None:
                service.stop()
                assert await asyncio.wait_for(task, 20) == 0

            stack.push_async_callback(stop)
            await wait_until(lambda: service.health.started or task.done(), "lineage has started")
            made = Lineage(service, bus)
            stack.push_async_callback(made.close)
            return made

        yield start


@pytest.fixture
async def lineage(start_lineage: StartLineage) -> Lineage:
    return await start_lineage()


@pytest.fixture
async def lineage_db(database_of: Callable[[str], Awaitable[Database]]) -> Database:
    return await database_of("lineage")
