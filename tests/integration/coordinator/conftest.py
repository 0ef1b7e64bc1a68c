"""A running coordinator on a real broker and Postgres: in this process, or as a child that can be killed."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from landbridge.bus.connection import Bus
from landbridge.store import Database
from landbridge_dispatch.coordinator.service import CoordinatorService
from landbridge_dispatch.coordinator.settings import CoordinatorSettings
from landbridge_embedded.nats import NatsServer
from support.children import Child
from support.coordinator_stage import ScriptedEnvironment, Stage
from support.wait import wait_until

ADMIN = "admin-token-of-the-tests"
StartCoordinator = Callable[..., Awaitable[CoordinatorService]]
StartChild = Callable[..., Awaitable[Child]]
Join = Callable[..., Awaitable[ScriptedEnvironment]]


@pytest.fixture
async def dispatch_dsn(migrated_dsn: Callable[..., Awaitable[str]]) -> str:
    return await migrated_dsn("coordinator")


@pytest.fixture
async def dispatch_db(dispatch_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(dispatch_dsn, "dispatch")
    yield database
    await database.close()


@pytest.fixture
async def stage(bus: Bus) -> Stage:
    return Stage(bus)


@pytest.fixture
async def start_coordinator(bus: Bus, nats_server: NatsServer, dispatch_dsn: str) -> AsyncIterator[StartCoordinator]:
    """`await start_coordinator(offer_seconds=0.2)`: a coordinator that is ready; `stop_it` ends it early."""
    async with AsyncExitStack() as stack:

        async def start(**more: Any) -> CoordinatorService:
            settings = CoordinatorSettings(
                nats_url=nats_server.url,
                postgres_dsn=dispatch_dsn,
                admin_token_sha256=hashlib.sha256(ADMIN.encode()).hexdigest(),
                **more,
            )
            service = CoordinatorService(settings)
            task = asyncio.create_task(service.run())

            async def stop() -> None:
                service.stop()
                assert await asyncio.wait_for(task, 30) == 0

            service.stop_it = stop  # type: ignore[attr-defined]
            stack.push_async_callback(stop)
            await wait_until(lambda: service.health.started or task.done(), "coordinator has started")
            return service

        yield start


@pytest.fixture
async def coordinator(start_coordinator: StartCoordinator) -> CoordinatorService:
    return await start_coordinator()


@pytest.fixture
async def join(stage: Stage) -> Join:
    """`await join("a")`: a scripted environment that may start work."""

    async def make(name: str) -> ScriptedEnvironment:
        return await ScriptedEnvironment(stage, name).join()

    return make


@pytest.fixture
async def start_child(
    nats_server: NatsServer, bus: Bus, dispatch_dsn: str, tmp_path: Path
) -> AsyncIterator[StartChild]:
    """`await start_child(LANDBRIDGE_FAILPOINTS="...")`: a coordinator as a process of its own, which is ready."""
    children: list[Child] = []
    environ = {"LANDBRIDGE_NATS_URL": nats_server.url, "LANDBRIDGE_POSTGRES_DSN": dispatch_dsn}

    async def start(**more: str) -> Child:
        child = Child(
            "landbridge_dispatch.coordinator.__main__", environ, tmp_path, name=f"coordinator-{len(children)}"
        )
        children.append(child)
        child.start(**more)
        await child.ready()
        return child

    yield start
    for child in children:
        await child.stop()
