"""Gangs of operations on running services: placed in one go in several environments, or all wait and say for whom."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from landbridge.store import Database
from support.children import Child
from support.deciding_world import World
from support.wait import happens_within, wait_until

Start = Callable[..., Awaitable[Any]]
ChildOf = Callable[..., Awaitable[Child]]


def a_gang(members: int, **more: Any) -> dict[str, Any]:
    return {"name": "train", "members": members, "spanEnvironments": True, **more}


def only_in(name: str) -> dict[str, Any]:
    return {"environments": {"allow": [name]}}


@pytest.mark.usefixtures("deciders")
async def test_members_wait_for_each_other_and_go_where_each_may(world: World) -> None:
    await world.document("queue", "training")
    for name in ("onprem-a", "cloud-b"):
        await world.environment(name)
    [first] = await world.accept(gang=a_gang(2), constraints=only_in("onprem-a"))
    await world.until_waiting([first], "gang-incomplete")
    assert world.waits()[first].message.startswith("gang train has 1 of 2 members waiting here")
    [second] = await world.accept(gang=a_gang(2), constraints=only_in("cloud-b"))
    await world.until_placed([first, second])
    assert world.placed() == {first: "onprem-a", second: "cloud-b"}


@pytest.mark.usefixtures("deciders")
async def test_a_gang_with_one_member_without_room_holds_nothing_until_there_is_room_for_all(
    world: World, ledger: Database
) -> None:
    await world.document("queue", "training", concurrency=2)
    await world.environment("onprem-a", quotas={"running": 1})
    await world.environment("cloud-b", quotas={"running": 2})
    [single] = await world.accept(constraints=only_in("onprem-a"))
    await world.until_placed([single])
    [one] = await world.accept(gang=a_gang(2), constraints=only_in("onprem-a"))
    [other] = await world.accept(gang=a_gang(2), constraints=only_in("cloud-b"))
    await world.until_waiting([one, other], "at-capacity")
    assert await ledger.fetchval("select count(*) from charge where held") == 1
    await world.end([single])
    await world.until_placed([one, other])


@pytest.mark.usefixtures("deciders")
async def test_a_gang_that_does_not_say_that_it_spans_environments_starts_in_one(world: World) -> None:
    await world.document("queue", "training")
    await world.environment("onprem-a", quotas={"running": 1})
    await world.environment("cloud-b", quotas={"running": 2})
    operations = await world.accept(2, gang={"name": "near", "members": 2})
    await world.until_placed(operations)
    assert set(world.placed().values()) == {"cloud-b"}


@pytest.mark.parametrize("point", ["loop.before-commit", "loop.after-commit", "loop.after-publish"])
@pytest.mark.timeout(300)
async def test_an_admitter_killed_around_the_commit_of_a_gang_places_all_of_it_once(
    world: World, start: Start, child: ChildOf, ledger: Database, point: str
) -> None:
    await world.document("queue", "training", concurrency=3)
    await world.environment()
    await start("eligibility")
    first = await child("ranking", LANDBRIDGE_FAILPOINTS=f"{point}=kill@2")
    operations = await world.accept(1, gang=a_gang(3))
    await wait_until(lambda: ledger.fetchval("select count(*) from waiting"), "the first one waits")
    operations += await world.accept(2, gang=a_gang(3))
    assert await first.ended() == -signal.SIGKILL
    assert await ledger.fetchval("select count(*) from charge where held") in (0, 3)
    await child("ranking")
    await world.until_placed(operations)
    assert sorted((o, r) for o, r, _ in set(world.decided())) == sorted((o, 1) for o in operations)
    assert await ledger.fetchval("select count(*) from charge where held") == 3


@pytest.mark.timeout(300)
async def test_a_successor_knows_which_members_wait(world: World, start: Start, ledger: Database) -> None:
    await world.document("queue", "training")
    await world.environment()
    await start("eligibility")
    ranking = await start("ranking")
    [first] = await world.accept(gang=a_gang(2))
    await world.until_waiting([first], "gang-incomplete")
    await ranking.end()
    await start("ranking")
    assert not await happens_within(0.5, lambda: bool(world.placed()))
    [second] = await world.accept(gang=a_gang(2), env={"SHARD": "2"})
    await asyncio.wait_for(world.until_placed([first, second]), 40)
