"""Postgres goes away for a while, and comes back as of an earlier time; the projection is dropped and made again."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from landbridge.store import Database
from landbridge.store.migrate import migrate
from support.wait import wait_until

from . import directed
from .directed import Clients
from .run import caught_up
from .world import SERVICES, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.xdist_group("faults")]

SITES = ("site-a", "sim-a")
_AWAY_S = 5.0
_PROJECTION = "select id::text, phase, op_seq, environment from operation order by id"


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


async def back_up(world: World, clients: Clients, target: Path) -> None:
    """Copy the stopped database; clients that submit meanwhile are served once it is back."""
    async with directed.away(world, "postgres"):
        submitting = asyncio.create_task(clients.submit(held=2, short=2))
        await asyncio.gather(
            asyncio.to_thread(shutil.copytree, world.data.root / "postgres", target, symlinks=True),
            asyncio.sleep(_AWAY_S),
        )
        assert not submitting.done()
    await submitting
    await directed.until_ready(world, world.parts)


async def restore(world: World, backup: Path) -> None:
    """Stop the centre, put the backup in place, start the centre, as operators do."""
    await directed.stop_centre(world, servers=())
    async with directed.away(world, "postgres"):
        place = world.data.root / "postgres"
        await asyncio.to_thread(shutil.rmtree, place / "data")
        await asyncio.to_thread(shutil.copytree, backup / "data", place / "data", symlinks=True)
    await directed.start_servers(world, ["postgres"])
    await directed.start_services(world)
    await directed.until_ready(world, SERVICES)


async def _projection(database: Database) -> list[tuple[Any, ...]]:
    operations = await database.fetch("select id::text, state from operation order by id")
    counts = await database.fetch("select to_jsonb(tally) from tally where operations <> 0 order by 1")
    return [tuple(row) for row in (*operations, *counts)]


def _differing(before: list[tuple[Any, ...]], now: list[tuple[Any, ...]]) -> list[Any]:
    differing: list[Any] = [(one, other) for one, other in zip(before, now, strict=False) if one != other]
    return differing[:2] or [len(before), len(now)]


async def test_a_dropped_projection_is_the_same_again_from_the_stream(world: World, clients: Clients) -> None:
    await clients.submit(held=3, short=3)
    database, bus = await world.database("lineage"), await world.bus("streams")
    try:
        await caught_up(database, bus)
        before = await _projection(database)
        async with directed.away(world, "lineage"):
            await database.execute("drop schema lineage cascade")
            await migrate(world.dsn, "lineage")
        await directed.until_ready(world, SERVICES)
        said = await directed.landbridge(world, "recover", "--yes", "--reason", "the projection was dropped")
        assert "its projection is lost" in said
        await caught_up(database, bus)

        async def same() -> bool:
            return await _projection(database) == before

        try:
            await wait_until(same, "the projection is what it was", timeout_s=15, every_s=0.5)
        except AssertionError as error:
            raise AssertionError(f"{error}: {_differing(before, await _projection(database))}") from None
    finally:
        await bus.drain()
        await database.close()
    await clients.end()


async def test_a_restored_database_adopts_what_runs_and_runs_nothing_twice(
    world: World, clients: Clients, tmp_path: Path
) -> None:
    await clients.submit(held=4, short=4)
    known = clients.all
    await back_up(world, clients, tmp_path / "backup")
    await clients.submit(held=3, short=3)
    lost = [operation for operation in clients.held if operation not in known]
    await restore(world, tmp_path / "backup")

    async def noticed() -> bool:
        return "centre-restored" in await directed.found_wrong(world)

    await wait_until(noticed, "the restore is noticed", timeout_s=60, every_s=0.5)
    await directed.landbridge(world, "recover", "--yes", "--reason", "restored from the backup")

    async def over() -> bool:
        return not {"centre-restored", "recovering"} & set(await directed.found_wrong(world))

    await wait_until(over, "the recovery is over", timeout_s=60, every_s=0.5)
    # What the backup knows is adopted. What was placed after it runs on, unknown, until somebody decides.
    await directed.until_phase(world, [name for name in clients.held if name in known], "running")
    listed = await directed.landbridge(world, "quarantine", "list")
    assert [name for name in clients.all if name in listed] == lost
    await clients.submit_again(lost)
    for operation in lost:
        await directed.landbridge(world, "quarantine", "adopt", operation, "--yes", "--reason", "it is ours")
    await directed.until_phase(world, lost, "running")
    clients.gate.open()
    await directed.until_phase(world, clients.held, "completed")
    twice = {name: runs for name, runs in directed.runs_of(world, clients.all).items() if len(runs) != 1}
    assert not twice, twice
