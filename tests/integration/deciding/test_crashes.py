"""Killed, paused, restarted, replaced: limits hold, nothing is lost, nothing is placed twice, the ledger stays."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from landbridge.store import Database
from support.children import Child
from support.deciding_world import World
from support.wait import wait_until

Start = Callable[..., Awaitable[Any]]
ChildOf = Callable[..., Awaitable[Child]]
LEDGER = """
    select 'charge' as kind, operation::text, round, environment, queue, project, amounts from charge where held
    union all
    select 'waiting', operation::text, round, class, queue, project, position::text from waiting order by 1, 2
"""


async def snapshot(ledger: Database) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await ledger.fetch(LEDGER)]


async def settled(world: World, ledger: Database, held: int, waiting: int) -> None:
    async def reached() -> bool:
        row = await ledger.fetchrow("select (select count(*) from charge where held), (select count(*) from waiting)")
        return row is not None and tuple(row) == (held, waiting)

    await wait_until(reached, f"{held} hold and {waiting} wait", timeout_s=40)


async def placements(world: World, number: int) -> None:
    await wait_until(lambda: len(world.placed()) >= number, f"{number} operations are placed", timeout_s=40)


@pytest.mark.parametrize("point", ["loop.before-commit", "loop.after-commit", "loop.after-publish"])
@pytest.mark.parametrize("victim", ["eligibility", "ranking"])
async def test_killed_around_its_commit_a_service_loses_and_doubles_nothing(
    world: World, start: Start, child: ChildOf, ledger: Database, victim: str, point: str
) -> None:
    await world.document("queue", "training", concurrency=3)
    await world.environment()
    await start("ranking" if victim == "eligibility" else "eligibility")
    first = await child(victim, LANDBRIDGE_FAILPOINTS=f"{point}=kill@2")
    operations = await world.accept(1)  # one message, so surely one batch: two may come apart
    await world.until_placed(operations)
    operations += await world.accept(4)
    assert await first.ended() == -signal.SIGKILL
    await child(victim)
    await settled(world, ledger, 3, 2)
    await wait_until(lambda: len(world.placed()) == 3, "three are placed", timeout_s=30)
    done = list(world.placed())
    await world.end(done)
    await wait_until(lambda: len(world.placed()) == 5, "all are placed", timeout_s=30)
    rounds = {(operation, round_) for operation, round_, _ in world.decided()}
    environments = {(operation, round_, environment) for operation, round_, environment in world.decided()}
    assert len(rounds) == len(environments) == 5
    assert set(world.placed()) == set(operations)


async def test_two_replicas_under_a_burst_never_exceed_the_limit_also_when_the_admitter_is_killed(
    world: World, start: Start, child: ChildOf, ledger: Database
) -> None:
    """Limit 4, 500 submissions, two replicas, one killed midway; then a wave caused by completions."""
    await world.document("queue", "training", concurrency=4)
    await world.environment()
    await start("eligibility")
    replicas = [await child("ranking"), await child("ranking")]
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, await ledger.fetchval("select count(*) from charge where held"))
            await asyncio.sleep(0.005)

    watching = asyncio.create_task(watch())
    operations = await world.accept(250)
    await wait_until(lambda: len(world.placed()) == 4, "four are placed")
    operations += await world.accept(250)
    ended: set[str] = set()
    killed = False
    while len(world.placed()) < 500:
        running = [operation for operation in world.placed() if operation not in ended]
        assert len(running) <= 4
        if len(ended) > 150 and not killed:
            killed = True
            # All are known by now: what one has in hand that dies has an order of its own, tested below.
            await settled(world, ledger, len(running), 500 - len(world.placed()))
            replicas[0].signal(signal.SIGKILL)
        await world.end(running)
        ended.update(running)
        await placements(world, min(len(ended) + 1, 500))
    watching.cancel()
    assert killed
    assert most == 4
    assert set(world.placed()) == set(operations)
    assert len(world.decided()) == 500
    assert [operation for operation, _, _ in world.decided()] == operations  # by age, priorities being equal


async def test_what_a_killed_admitter_had_in_hand_goes_before_what_is_younger_and_still_waits(
    world: World, start: Start, child: ChildOf, ledger: Database
) -> None:
    """It is delivered again after seconds, in which younger ones were let into the line."""
    await world.document("queue", "training", concurrency=1)
    await world.environment()
    await start("eligibility")
    first = await child("ranking", LANDBRIDGE_FAILPOINTS="loop.before-commit=kill@3")
    [running] = await world.accept()
    await world.until_placed([running])
    [older] = await world.accept()
    await settled(world, ledger, 1, 1)
    [in_hand] = await world.accept()
    assert await first.ended() == -signal.SIGKILL
    await child("ranking")
    younger = await world.accept(3)
    await settled(world, ledger, 1, 4)
    await settled(world, ledger, 1, 5)

    for number, operation in enumerate((running, older, in_hand, *younger), 1):
        await placements(world, number)
        await world.end([operation])
    assert [operation for operation, _, _ in world.decided()] == [running, older, in_hand, *younger]


async def test_after_a_restart_the_ledger_is_the_same_and_nothing_that_ended_is_placed(
    world: World, start: Start, child: ChildOf, ledger: Database
) -> None:
    """30 finished, 5 running, 20 waiting; everything killed; the same again."""
    await world.document("queue", "training", concurrency=5)
    await world.environment()
    services = [await child("eligibility"), await child("ranking")]
    operations = await world.accept(55)
    ended: list[str] = []
    while len(ended) < 30:
        await placements(world, len(ended) + 5)
        batch = [operation for operation, _, _ in world.decided() if operation not in ended][:5]
        await world.end(batch)
        ended += batch
    await settled(world, ledger, 5, 20)
    await placements(world, 35)
    before = await snapshot(ledger)
    decided = list(world.decided())
    for service in services:
        service.signal(signal.SIGKILL)
    for name in ("ranking", "eligibility"):
        await child(name)
    [marker] = await world.accept(queue="default")  # once this is placed, everything before was handled
    await world.until_placed([marker], timeout_s=30)
    after = [row for row in await snapshot(ledger) if row[1] != marker]
    assert after == before
    assert [item for item in world.decided() if item[0] != marker] == decided
    assert set(operations) >= {row[1] for row in after}


async def test_a_paused_admitter_is_replaced_and_cannot_admit_when_it_wakes(
    world: World, start: Start, child: ChildOf, ledger: Database
) -> None:
    await world.document("queue", "training", concurrency=2)
    await world.environment()
    await start("eligibility")
    first = await child("ranking")
    operations = await world.accept(3)
    await wait_until(lambda: len(world.placed()) == 2, "two are placed")
    await child("ranking")
    first.signal(signal.SIGSTOP)
    await world.end([operations[0]])
    await wait_until(lambda: len(world.placed()) == 3, "the successor admits", timeout_s=40)
    first.signal(signal.SIGCONT)
    [late] = await world.accept()
    await world.until_waiting([late], "concurrency")
    assert await ledger.fetchval("select fence from admitter") >= 2
    assert await ledger.fetchval("select count(*) from charge where held") == 2
    await world.end([operations[1]])
    await world.until_placed([late])


async def test_what_waits_survives_the_restart_of_eligibility_and_flows_on_the_next_change(
    world: World, start: Start, child: ChildOf
) -> None:
    await world.document("queue", "training")
    await world.environment()
    await world.control(paused=True)
    await start("ranking")
    first = await child("eligibility")
    operations = await world.accept(3)
    await world.until_waiting(operations, "unavailable")
    first.signal(signal.SIGKILL)
    await world.control(paused=False)  # while nobody looks
    await child("eligibility")
    await world.until_placed(operations, timeout_s=30)


async def test_two_replicas_of_eligibility_tell_everything_once(world: World, start: Start, child: ChildOf) -> None:
    await world.document("queue", "training")
    await world.environment()
    await world.control(paused=True)
    await start("ranking")
    for _ in range(2):
        await child("eligibility")
    operations = [*(await world.accept(15)), *(await world.accept(15, constraints={"jurisdictions": ["EU"]}))]
    await world.until_waiting(operations, "unavailable")
    await world.control(paused=False)
    await world.until_placed(operations)
    flowed = [
        item.operation for event in world.events("assessed") if event.assessment.eligible for item in event.operations
    ]
    assert sorted(flowed) == sorted(operations)
