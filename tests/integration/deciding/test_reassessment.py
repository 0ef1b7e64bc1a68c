"""Ends of verdicts that are given while a pass is under way: none of them is forgotten.

The order of things is forced by locks in Postgres and by a clock that stands still, not by the luck of a moment.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from landbridge.bus.connection import Bus
from landbridge.bus.publish import Publisher
from landbridge.runtime.clock import ManualClock
from landbridge.runtime.outbox import Outbox
from landbridge.store import Database
from landbridge_eligibility import store
from landbridge_eligibility.deciding import Deciding
from landbridge_eligibility.reassess import LONGEST_PAUSE_S, Reassessment
from support.deciding_world import World, now
from support.wait import wait_until

Start = Callable[..., Awaitable[Any]]
# Far below the pause of a replica that expects nothing, and far above what a pass takes on a busy machine.
IN_TIME_S = LONGEST_PAUSE_S / 3
BLOCKED = """
    select count(*) from pg_locks
    where not granted and database = (select oid from pg_database where datname = current_database())
"""


@contextlib.asynccontextmanager
async def running(reassessment: Reassessment) -> AsyncIterator[None]:
    task = asyncio.create_task(reassessment.run())
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def until_blocked(database: Database) -> None:
    """Wait until somebody waits for a lock in this database."""

    async def blocked() -> bool:
        return bool(await database.fetchval(BLOCKED))

    await wait_until(blocked, "somebody waits for the lock")


async def test_an_end_that_is_told_during_a_pass_is_kept_by_it(waiting_table: Database, bus: Bus) -> None:
    clock = ManualClock(now())
    reassessment = Reassessment(Deciding(), Outbox(waiting_table, Publisher(bus)), clock)
    async with waiting_table.transaction() as tx:
        await store.share_lock(tx)
        under_way = asyncio.create_task(reassessment.run_pass())
        await until_blocked(waiting_table)
        # Of a class that this pass has never met, by a handler whose transaction is not committed yet.
        reassessment.expect(clock.wall() + timedelta(seconds=1))
    await under_way

    async with running(reassessment):
        # The first comes at once; the one after it only because something is expected.
        await wait_until(lambda: reassessment.passes >= 3, "the end is met by a pass", timeout_s=IN_TIME_S)


@pytest.mark.parametrize("over", [False, True], ids=["end-ahead", "end-over"])
async def test_a_verdict_that_was_committed_after_a_pass_is_still_asked_again_at_its_end(
    world: World, start: Start, waiting_table: Database, over: bool
) -> None:
    """The handler is held up between its verdict and its commit while passes come and go that cannot know the class.

    `over`: until the verdict has run out already.
    """
    clock = ManualClock(now())
    eligibility = await start("eligibility", clock=clock)
    reassessment = eligibility.reassessment
    await world.document("queue", "training")
    await world.environment()
    began = now()
    await world.evidence(lasts=timedelta(minutes=5))
    await wait_until(lambda: has_evidence_since(eligibility.deciding, began), "the evidence has arrived")
    clock.set_wall(began + timedelta(minutes=5) - timedelta(seconds=1))
    async with waiting_table.transaction() as tx:
        await tx.execute("lock table requirement_class in share mode")
        [operation] = await world.accept()
        await until_blocked(waiting_table)
        if over:
            clock.advance(10)
        for number in range(2):
            before = reassessment.passes
            await world.link(f"another-{number}")
            await wait_until(lambda before=before: reassessment.passes > before, "a pass has ended")  # type: ignore[misc]
    await wait_until(lambda: any(event.operations for event in world.events("assessed")), f"{operation} is assessed")

    if not over:
        clock.advance(10)
    await wait_until(
        lambda: any(not event.assessment.eligible and not event.operations for event in world.events("assessed")),
        "it is announced that the verdict has run out",
        timeout_s=IN_TIME_S,
    )


def has_evidence_since(deciding: Deciding, moment: datetime) -> bool:
    deciding.settle()
    states = [
        state for found in deciding.view.candidates.values() for each in found for state in each.evidence.values()
    ]
    return bool(states) and all(state.decisive.at >= moment for state in states)
