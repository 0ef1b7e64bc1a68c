"""NATS, Postgres and Redis go away and come back: what health endpoints say meanwhile, and how soon all is well."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from landbridge_embedded.process import http_body, http_ok
from support.wait import wait_until

from .world import SERVICES, World

pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("faults")]

NOTICED_S = 30.0
RECOVERED_S = 15.0
WITHOUT_POSTGRES = frozenset({"dashboard"})


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "data", ttl_s=10.0, sites=("sim-a",))
    await made.open()
    yield made
    await made.close()


async def failing(world: World, check: str) -> set[str]:
    """Return the services whose /readyz names `check` as failed."""
    ports = {name: world.port(name) for name in SERVICES}
    told = {name: await http_body(port, "/readyz?verbose") for name, port in ports.items()}
    return {name for name, text in told.items() if f"[-]{check}" in text}


async def answering(world: World, path: str) -> set[str]:
    return {name for name in SERVICES if await http_ok(world.port(name), path)}


async def recovered(world: World, server: str) -> float:
    """Let a server come back; return the seconds from its return until every service is ready."""
    world.release(server)

    def is_back() -> bool:
        return bool(world.state["services"][server]["state"] == "running")

    await wait_until(is_back, f"{server} is back", timeout_s=60, every_s=0.05)
    back = time.monotonic()
    await wait_until(lambda: _all(world, "/readyz"), f"everything is ready after {server}", timeout_s=60, every_s=0.1)
    return time.monotonic() - back


async def all_say(world: World, path: str, *, without: str) -> None:
    await wait_until(lambda: _all(world, path), f"all answer {path} well without {without}", every_s=0.2)


async def _all(world: World, path: str) -> bool:
    return await answering(world, path) == set(SERVICES)


async def test_health_tells_the_truth_while_a_server_is_away_and_services_recover_by_themselves(world: World) -> None:
    """One instance for all three: nobody is restarted, neither while a server is away nor after it."""
    before = {name: world.pid(name) for name in SERVICES}
    expected = {"nats": set(SERVICES), "postgres": set(SERVICES) - WITHOUT_POSTGRES}
    for server, affected in expected.items():
        world.hold(server)

        async def told(server: str = server, affected: set[str] = affected) -> bool:
            return await failing(world, server) == affected

        await wait_until(told, f"{sorted(affected)} are not ready without {server}", timeout_s=NOTICED_S, every_s=0.2)
        for path in ("/livez", "/startupz"):  # a restart would not help
            await all_say(world, path, without=server)
        assert await recovered(world, server) <= RECOVERED_S

    world.hold("redis")
    await wait_until(
        lambda: world.state["services"]["redis"]["state"] == "held", "Redis is gone", timeout_s=20, every_s=0.1
    )
    # Redis holds only what can be rebuilt: without it everything is degraded, and ready.
    await all_say(world, "/readyz", without="redis")
    assert "[!]redis degraded" in await http_body(world.port("lineage"), "/readyz?verbose")
    assert await recovered(world, "redis") <= RECOVERED_S
    assert {name: world.pid(name) for name in SERVICES} == before
