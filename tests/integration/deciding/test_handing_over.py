"""Eligibility tells what waits for an environment, ranking what waits for its turn: nothing falls between the two."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from support.deciding_world import World
from support.wait import wait_until

Start = Callable[..., Awaitable[Any]]
ABROAD: dict[str, Any] = {"location": {"regions": ["us-east-1"], "jurisdictions": ["US"]}}


@pytest.mark.parametrize("late", [True, False], ids=["in-one-batch", "one-by-one"])
async def test_what_was_eligible_for_a_moment_is_told_why_it_waits_again(
    world: World, start: Start, late: bool
) -> None:
    """`late`: ranking reads all of it at once, so that it never sees the moment by itself."""
    await start("eligibility")
    ranking = None if late else await start("ranking")
    await world.document("queue", "training", paused=True)
    await world.environment(**ABROAD)
    [operation] = await world.accept(constraints={"jurisdictions": ["EU"]})
    await world.until_waiting([operation], "incompatible")

    await world.environment()
    await wait_until(lambda: flows(world, operation), "eligibility lets it go")
    await world.control(paused=True)
    await wait_until(lambda: not world.events("assessed")[-1].assessment.eligible, "nothing is eligible any more")
    if ranking is None:
        await start("ranking")

    await world.until_waiting([operation], "no-eligible-environment")
    await world.control(paused=False)
    await world.until_waiting([operation], "queue-paused")
    await world.document("queue", "training")
    await world.until_placed([operation])


def flows(world: World, operation: str) -> bool:
    return any(
        event.assessment.eligible and any(item.operation == operation for item in event.operations)
        for event in world.events("assessed")
    )
