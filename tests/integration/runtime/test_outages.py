"""Postgres or NATS stop and return: no restart of ours, nothing lost, health tells the truth meanwhile."""

import signal
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from landbridge_embedded.nats import NatsServer
from landbridge_embedded.postgres import PostgresServer
from support.wait import wait_until
from support.world import World, make_world

RECOVERY_SECONDS = 15.0


@pytest.fixture
async def fragile(own_postgres: PostgresServer, nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[World]:
    await own_postgres.start()
    async with make_world(nats_server, own_postgres.dsn, tmp_path) as made:
        yield made


async def settled(world: World) -> bool:
    return await world.unacknowledged() == 0 and await world.pending() == 0


async def test_postgres_stops_under_load_and_returns(fragile: World, own_postgres: PostgresServer) -> None:
    child = fragile.child()
    child.start()
    await child.ready()
    ids = await fragile.submit([b"good"] * 200)
    await own_postgres.stop()
    ids += await fragile.submit([b"good"] * 200)
    await wait_until(lambda: _status_is(child.status("/readyz"), 503), "readiness tells that Postgres is away")
    assert (await child.get("/readyz/postgres"))[0] == 503
    assert "[-]postgres failed" in (await child.get("/readyz?verbose"))[1]
    assert await child.status("/readyz?exclude=postgres") == 200
    assert await child.status("/livez") == 200
    await own_postgres.start()
    back = time.monotonic()
    await wait_until(lambda: settled(fragile), "all is handled", timeout_s=30)
    assert time.monotonic() - back < RECOVERY_SECONDS
    assert await fragile.effects() == sorted(ids)
    await wait_until(lambda: _status_is(child.status("/readyz"), 200), "ready again")
    assert child.exit_code is None


async def test_postgres_killed_in_the_middle_of_commits_loses_and_repeats_nothing(
    fragile: World, own_postgres: PostgresServer
) -> None:
    child = fragile.child()
    child.start()
    await child.ready()
    ids: list[str] = []
    for _ in range(3):
        for _ in range(10):
            ids += await fragile.submit([b"good"] * 20)
        await own_postgres.stop()
        await own_postgres.start()
    await wait_until(lambda: settled(fragile), "all is handled", timeout_s=40)
    assert await fragile.effects() == sorted(ids)
    told = [row[0] for row in await fragile.db.fetch("select about from event_log order by about")]
    assert told == sorted(ids)
    assert await fragile.stored("OPERATIONS") >= len(ids)


async def test_nats_stops_under_load_and_returns(world: World) -> None:
    child = world.child()
    child.start()
    await child.ready()
    ids = await world.submit([b"good"] * 200)
    await world.nats.stop()
    await wait_until(lambda: _status_is(child.status("/readyz/nats"), 503), "readiness tells that NATS is away")
    assert await child.status("/livez") == 200
    await world.nats.start()
    back = time.monotonic()
    ids += await world.submit([b"good"] * 200)
    await wait_until(lambda: settled(world), "all is handled", timeout_s=30)
    assert time.monotonic() - back < RECOVERY_SECONDS
    assert await world.effects() == sorted(ids)
    await wait_until(lambda: _status_is(child.status("/readyz"), 200), "ready again")


async def test_a_service_waits_for_servers_that_start_later(own_postgres: PostgresServer, tmp_path: Path) -> None:
    nats = NatsServer(tmp_path / "late")
    await nats.start()
    await own_postgres.start()
    async with make_world(nats, own_postgres.dsn, tmp_path) as world:
        await own_postgres.stop()
        await nats.stop()
        child = world.child()
        child.start()
        await wait_until(lambda: _status_is(child.status("/livez"), 200), "alive without servers")
        assert await child.status("/startupz") == 503
        assert await child.status("/readyz") == 503
        await nats.start()
        await wait_until(lambda: _tells(child.get("/startupz"), "Postgres"), "it says what it waits for")
        await own_postgres.start()
        await child.ready()
        assert await child.status("/startupz") == 200
    await nats.stop()


async def test_sigterm_finishes_what_is_in_hand_and_gives_back_the_rest(world: World) -> None:
    child = world.child()
    child.start()
    await child.ready()
    ids = await world.submit([b"good"] * 1000)
    ids += await world.submit([b"good"] * 1000)
    child.signal(signal.SIGTERM)
    assert await child.ended() == 0
    assert await world.pending() == 0
    done = await world.effects()
    other = world.child("other")
    started = time.monotonic()
    other.start()
    await wait_until(lambda: settled(world), "the next process handles the rest", timeout_s=30)
    assert await world.effects() == sorted(ids)
    assert time.monotonic() - started < 8, f"what was not done ({2000 - len(done)}) was not given back at once"


async def test_a_stopped_process_that_wakes_up_later_repeats_nothing(world: World) -> None:
    sleeper, other = world.child("sleeper"), world.child("other")
    sleeper.start()
    await sleeper.ready()
    ids = await world.submit([b"good"] * 300)
    sleeper.signal(signal.SIGSTOP)
    other.start()
    ids += await world.submit([b"good"] * 300)
    # The sleeper may hold locks inside an open transaction: then the other can do only what these leave free.
    await wait_until(world.effects, "the other works", timeout_s=40)
    sleeper.signal(signal.SIGCONT)
    await wait_until(lambda: settled(world), "all is acknowledged", timeout_s=30)
    assert await world.effects() == sorted(ids)


async def _status_is(found: Awaitable[int], status: int) -> bool:
    return await found == status


async def _tells(found: Awaitable[tuple[int, str]], text: str) -> bool:
    return text in (await found)[1]
