"""Work gives way: who has to leave is told once, is remembered by a successor, and nobody else gets its place."""

import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from landbridge.schema.wire import event_v1
from landbridge.store import Database
from support.children import Child
from support.deciding_world import World
from support.wait import wait_until

Start = Callable[..., Awaitable[Any]]
ChildOf = Callable[..., Awaitable[Child]]
CLASSES = {"urgent": 90, "idle": -10}
NEVER: dict[str, Any] = {"lifecycle": {"recovery": {"mode": "never"}}}


async def asked(world: World, number: int = 1) -> list[event_v1.OperationsPreempted]:
    await wait_until(lambda: len(world.events("preempted")) >= number, f"{number} are asked to leave", timeout_s=30)
    return world.events("preempted")


@pytest.mark.usefixtures("deciders")
async def test_a_higher_priority_displaces_a_lower_one_and_takes_its_place_when_it_has_left(
    world: World, ledger: Database
) -> None:
    await world.document("queue", "training", concurrency=2, preemption="lower-priority", priorityClasses=CLASSES)
    await world.environment()
    [kept] = await world.accept(priority="idle", **NEVER)
    await world.until_placed([kept])
    [idle] = await world.accept(priority="idle")
    await world.until_placed([idle])
    [urgent] = await world.accept(priority="urgent")
    await world.until_waiting([urgent], "making-room")
    [event] = await asked(world)
    assert [(item.operation, item.round) for item in event.operations] == [(idle, 1)]
    assert (event.reason, event.claimant) == ("lower-priority", urgent)
    [later] = await world.accept(priority="urgent")  # nobody is left who may be asked for this one
    await world.until_waiting([later], "making-room")
    assert await ledger.fetchval("select leaving from charge where operation = $1", idle)
    await world.requeue(idle, 2, free_from="onprem-a", reason="preempted", spec={"priority": "idle"})
    await world.until_placed([urgent])
    await world.end([kept, urgent])
    await world.until_placed([later])
    await wait_until(lambda: len(world.decided()) == 5, "the displaced one is placed again")
    assert world.decided()[-1][:2] == (idle, 2)
    assert len(world.events("preempted")) == 1


@pytest.mark.usefixtures("deciders")
async def test_an_owner_reclaims_what_was_borrowed(world: World) -> None:
    await world.document("queue", "company", quota={"cpu": "4"})
    for name in ("training", "batch"):
        await world.document("queue", name, parent="company", quota={"cpu": "2"}, borrow={"cpu": "2"}, reclaim="any")
    await world.environment()
    one: dict[str, Any] = {"resources": {"requests": {"cpu": "1"}}}
    borrowers = await world.accept(4, queue="batch", **one)
    await world.until_placed(borrowers)
    [owner] = await world.accept(queue="training", **one)
    [event] = await asked(world)
    assert event.reason == "reclaimed"
    [leaving] = [item.operation for item in event.operations]
    assert leaving in borrowers
    await world.end([leaving], "failed")
    await world.until_placed([owner])


async def test_a_successor_asks_nobody_else(world: World, start: Start, child: ChildOf) -> None:
    await world.document("queue", "training", concurrency=3, preemption="lower-priority", priorityClasses=CLASSES)
    await world.environment()
    await start("eligibility")
    first = await child("ranking")
    idle = await world.accept(3, priority="idle")
    await world.until_placed(idle)
    [urgent] = await world.accept(priority="urgent")
    [event] = await asked(world)
    first.signal(signal.SIGKILL)
    await child("ranking")
    [other] = await world.accept(queue="default")  # once this is placed, the successor has had its turns
    await world.until_placed([other])
    assert len(world.events("preempted")) == 1
    await world.end([event.operations[0].operation], "cancelled")
    await world.until_placed([urgent])
