"""The process is killed at every point of the loop: nothing is lost, and every effect happens once."""

import signal

import pytest

from support.wait import wait_until
from support.world import World

POINTS = ("loop.before-commit", "loop.after-commit", "loop.after-publish", "loop.after-ack")


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_any_point_loses_nothing_and_repeats_no_effect(world: World, point: str) -> None:
    ids = await world.submit([b"%d" % n for n in range(40)])
    child = world.child()
    child.start(LANDBRIDGE_FAILPOINTS=f"{point}=kill")
    assert await child.ended() == -signal.SIGKILL
    marked = await world.db.fetchval("select coalesce(sum(events), 0) from pending")
    ids += await world.submit([b"more"])
    child.start()
    await child.ready()

    async def settled() -> bool:
        return await world.unacknowledged() == 0 and await world.pending() == 0

    await wait_until(settled, "all is handled and published", timeout_s=30)
    assert await world.effects() == sorted(ids)
    told = {row[0] for row in await world.db.fetch("select about from event_log")}
    assert told == set(ids)
    published = await world.stored("OPERATIONS")
    # What is marked is published at the next start, with the same ids: a second time if it was published before.
    assert (marked > 0) is (point != "loop.before-commit")
    assert published == 41 + (marked if point in {"loop.after-publish", "loop.after-ack"} else 0)
    assert published == 41 or point in {"loop.after-publish", "loop.after-ack"}
