"""Eligibility and ranking on a real broker and Postgres: in this process, or as children that can be killed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from landbridge.bus.connection import Bus
from landbridge.runtime.service import Service
from landbridge.runtime.settings import Settings
from landbridge.store import Database
from landbridge_eligibility.service import EligibilityService
from landbridge_embedded.nats import NatsServer
from landbridge_ranking.service import RankingService
from support.children import Child
from support.deciding_world import World
from support.wait import wait_until

Start = Callable[..., Awaitable[Any]]
SERVICES: dict[str, type[Service]] = {"eligibility": EligibilityService, "ranking": RankingService}


@pytest.fixture
async def dsn(migrated_dsn: Callable[..., Awaitable[str]]) -> str:
    return await migrated_dsn("eligibility", "ranking")


@pytest.fixture
async def ledger(dsn: str) -> AsyncIterator[Database]:
    """Ranking's tables."""
    database = await Database.open(dsn, "ranking")
    yield database
    await database.close()


@pytest.fixture
async def waiting_table(dsn: str) -> AsyncIterator[Database]:
    """Eligibility's tables."""
    database = await Database.open(dsn, "eligibility")
    yield database
    await database.close()


@pytest.fixture
async def world(bus: Bus) -> AsyncIterator[World]:
    made = World(bus)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def start(nats_server: NatsServer, bus: Bus, dsn: str) -> AsyncIterator[Start]:
    """`await start("ranking", clock=...)`: a service of this process that is ready; `await service.end()` ends it."""
    async with AsyncExitStack() as stack:

        async def make(name: str, **more: Any) -> Service:
            service = SERVICES[name](Settings(nats_url=nats_server.url, postgres_dsn=dsn), **more)
            task = asyncio.create_task(service.run())

            async def end() -> None:
                service.stop()
                assert await asyncio.wait_for(task, 30) == 0

            service.end = end  # type: ignore[attr-defined]
            stack.push_async_callback(end)
            await wait_until(lambda: service.health.started or task.done(), f"{name} has started")
            return service

        yield make


@pytest.fixture
async def deciders(start: Start) -> tuple[EligibilityService, RankingService]:
    """One of each, and the ranking one is elected."""
    eligibility, ranking = await start("eligibility"), await start("ranking")
    await wait_until(lambda: ranking.admits, "ranking is elected")
    return eligibility, ranking


@pytest.fixture
async def child(nats_server: NatsServer, bus: Bus, dsn: str, tmp_path: Path) -> AsyncIterator[Start]:
    """`await child("ranking", LANDBRIDGE_FAILPOINTS="...")`: a service in a process of its own."""
    children: list[Child] = []

    async def make(name: str, *, wait: bool = True, **environ: str) -> Child:
        base = {"LANDBRIDGE_NATS_URL": nats_server.url, "LANDBRIDGE_POSTGRES_DSN": dsn}
        made = Child(f"landbridge_{name}.__main__", base, tmp_path, name=f"{name}-{len(children)}")
        children.append(made)
        made.start(**environ)
        if wait:
            await made.ready()
        return made

    yield make
    for made in children:
        await made.stop()
