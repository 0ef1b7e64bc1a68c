"""The broker comes back with an older copy of its data, then with none: the centre's own logs make it whole again."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.wait import wait_until

from . import directed
from .directed import Clients
from .world import World

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("faults")]

SITES = ("site-a", "sim-a")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "run" / "data", ttl_s=4.0, sites=SITES)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def clients(world: World, tmp_path: Path) -> Iterator[Clients]:
    made = Clients(world, tmp_path, SITES[0])
    yield made
    made.close()


async def copy_store(world: World, target: Path) -> None:
    async with directed.away(world, "nats"):
        await asyncio.to_thread(shutil.copytree, world.data.root / "nats", target)
    await directed.until_ready(world, world.parts)


async def replace_store(world: World, store: Path | None) -> None:
    """Stop the broker and put another copy of its data in place; None: nothing."""
    async with directed.away(world, "nats"):
        data = world.data.root / "nats"
        await asyncio.to_thread(shutil.rmtree, data)
        if store is not None:
            await asyncio.to_thread(shutil.copytree, store, data)


async def recovered(world: World) -> None:
    """The loss is noticed, however small it is; the command makes it good, and then nothing is found wrong."""

    async def noticed() -> bool:
        return "stream-lost" in await directed.found_wrong(world)

    await wait_until(noticed, "the coordinator says that messages are gone", timeout_s=60, every_s=0.3)
    said = await directed.landbridge(world, "recover", "--yes", "--reason", "the broker's data were lost")
    assert "published again" in said
    await directed.until_ready(world, world.parts)
    assert await directed.found_wrong(world) == []


async def test_a_broker_with_older_data_or_none_is_made_whole_from_the_logs(
    world: World, clients: Clients, tmp_path: Path
) -> None:
    """What was accepted is not lost, what runs is not started again, what a site said and nobody read is said again."""
    await clients.submit(held=6, short=6)
    await copy_store(world, tmp_path / "older")
    await clients.submit(held=0, short=1)
    await replace_store(world, tmp_path / "older")
    await recovered(world)
    await clients.submit(held=3, short=3)

    async with directed.away(world, "coordinator"):
        clients.gate.open()
        await wait_until(lambda: _all_stopped(world, clients.held), "all has ended at the site", timeout_s=20)
        await replace_store(world, None)
    await recovered(world)
    await clients.submit(held=0, short=3)
    await clients.end()


def _all_stopped(world: World, operations: list[str]) -> bool:
    runs = directed.runs_of(world, operations)
    return all(found and found[-1].stop is not None for found in runs.values())
