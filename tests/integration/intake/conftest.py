"""A running intake service on a real broker and Postgres: in this process, or as a child that can be killed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from landbridge.bus.connection import Bus
from landbridge.store import Database
from landbridge_embedded.nats import NatsServer
from landbridge_intake.service import IntakeService
from landbridge_intake.settings import IntakeSettings
from support.children import Child
from support.intake_service import ADMIN_SHA256, Intake
from support.wait import wait_until

StartIntake = Callable[..., Awaitable[Intake]]
StartChild = Callable[..., Awaitable[Child]]


@pytest.fixture
async def intake_dsn(migrated_dsn: Callable[..., Awaitable[str]]) -> str:
    return await migrated_dsn("intake")


@pytest.fixture
async def intake_db(intake_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(intake_dsn, "intake")
    yield database
    await database.close()


@pytest.fixture
async def start_intake(bus: Bus, nats_server: NatsServer, intake_dsn: str) -> AsyncIterator[StartIntake]:
    """`await start_intake(outbox_events_limit=5)`: a service that is ready; `stop_intake` of it ends it early."""
    async with AsyncExitStack() as stack:

        async def start(**more: Any) -> Intake:
            settings = IntakeSettings(
                nats_url=nats_server.url, postgres_dsn=intake_dsn, admin_token_sha256=ADMIN_SHA256, **more
            )
            service = IntakeService(settings)
            task = asyncio.create_task(service.run())

            async def stop() -> None:
                service.stop()
                assert await asyncio.wait_for(task, 30) == 0

            stack.push_async_callback(stop)
            await wait_until(lambda: service.health.started or task.done(), "intake has started")
            made = Intake(service.port, bus)
            made.service, made.stop = service, stop
            stack.push_async_callback(made.close)
            return made

        yield start


@pytest.fixture
async def intake(start_intake: StartIntake) -> Intake:
    """A service with a project and a queue."""
    made = await start_intake()
    await made.settle()
    return made


@pytest.fixture
async def start_child(nats_server: NatsServer, bus: Bus, intake_dsn: str, tmp_path: Path) -> AsyncIterator[StartChild]:
    """`await start_child(LANDBRIDGE_FAILPOINTS="...")`: intake as a process of its own, which is ready."""
    children: list[Child] = []
    environ = {
        "LANDBRIDGE_NATS_URL": nats_server.url,
        "LANDBRIDGE_POSTGRES_DSN": intake_dsn,
        "LANDBRIDGE_ADMIN_TOKEN_SHA256": ADMIN_SHA256,
    }

    async def start(**more: str) -> Child:
        child = Child("landbridge_intake.__main__", environ, tmp_path, name=f"intake-{len(children)}")
        children.append(child)
        child.start(**more)
        await child.ready()
        return child

    yield start
    for child in children:
        await child.stop()
