"""kill -9 at every step: nothing acknowledged is lost, nothing happens twice."""

import asyncio
import contextlib

import pytest

from landbridge.store import Database
from support.children import Child
from support.coordinator_stage import ScriptedEnvironment, Stage, an_epoch
from support.wait import wait_until

from .conftest import StartChild

_STEPS = ("before-commit", "after-commit", "after-publish")
_POINTS = [
    *(f"loop.{step}=kill@2" for step in _STEPS),
    *(pytest.param(f"loop.{step}=kill@{visit}", marks=pytest.mark.slow) for step in _STEPS for visit in (1, 3, 4)),
    "loop.after-ack=kill@2",
    "coordinator.claim.before-commit=kill@1",
    "coordinator.claim.after-commit=kill@1",
    "coordinator.lease.before-commit=kill@1",
    "coordinator.lease.after-commit=kill@2",
    "coordinator.timer.after-commit=kill@4",
]
_OPERATIONS = 8

pytestmark = pytest.mark.timeout(300)


async def _restart_when_it_dies(child: Child, start_child: StartChild) -> None:
    await wait_until(lambda: child.exit_code is not None, "the failpoint kills it", timeout_s=60)
    await start_child()


async def _whole_life(stage: Stage) -> tuple[ScriptedEnvironment, list[str]]:
    a = await ScriptedEnvironment(stage, "a").join()
    operations = [await stage.accept() for _ in range(_OPERATIONS)]
    await stage.decide(operations, "a")
    refs = [await a.offered(operation) for operation in operations]
    granted: set[str] = set()
    while len(granted) < _OPERATIONS:
        granted |= {item.operation for item in (await a.claim(*refs)).granted}
    await a.tell(*(a.report(ref, "started") for ref in refs))
    for ref in refs:
        await a.tell(a.report(ref, "finished", "completed"))
    return a, operations


@pytest.mark.parametrize("point", _POINTS)
async def test_a_killed_coordinator_resumes_without_loss_or_repetition(
    point: str, start_child: StartChild, stage: Stage, dispatch_db: Database
) -> None:
    child = await start_child(LANDBRIDGE_FAILPOINTS=point)
    restarting = asyncio.create_task(_restart_when_it_dies(child, start_child))
    try:
        _, operations = await _whole_life(stage)
        for operation in operations:
            told = await stage.until(operation, "pending", "running", "completed")
            assert [event.op_seq for event in told] == [2, 3, 4]
            assert {event.epoch for event in told} == {an_epoch(1)}
        await asyncio.wait_for(restarting, 90)
    finally:
        restarting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await restarting
    rows = await dispatch_db.fetchrow("select count(*), count(*) filter (where phase = 'completed') from operation")
    assert rows is not None
    assert tuple(rows) == (_OPERATIONS, _OPERATIONS)


async def test_two_replicas_share_the_work_and_one_of_them_times_leases(
    start_child: StartChild, stage: Stage, dispatch_db: Database
) -> None:
    children = [await start_child(), await start_child()]
    _, operations = await _whole_life(stage)
    for operation in operations:
        told = await stage.until(operation, "pending", "running", "completed")
        assert [event.op_seq for event in told] == [2, 3, 4]

    fence = await dispatch_db.fetchval("select fence from centre")
    assert fence == 1
    assert all(child.exit_code is None for child in children)
