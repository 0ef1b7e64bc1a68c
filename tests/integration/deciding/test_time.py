"""Time alone changes answers: evidence runs out, and is renewed, while operations wait."""

from datetime import timedelta

import pytest

from support.deciding_world import World
from support.wait import wait_until

pytestmark = pytest.mark.usefixtures("deciders")


async def test_evidence_that_runs_out_takes_eligibility_away_without_any_event(world: World) -> None:
    await world.document("queue", "training")
    await world.environment()
    await world.evidence(lasts=timedelta(seconds=3))
    [first] = await world.accept()
    await world.until_placed([first])

    def announced() -> bool:
        return any(not event.assessment.eligible and not event.operations for event in world.events("assessed"))

    await wait_until(announced, "the changed verdict of the class is announced")
    [second] = await world.accept()
    await world.until_waiting([second], "unverified")
    assert "counted until" in world.waits()[second].message
    await world.evidence()
    await world.until_placed([second])


async def test_an_operation_that_waited_longer_than_its_verdict_held_is_judged_by_newer_evidence(world: World) -> None:
    await world.document("queue", "training", paused=True)
    await world.environment()
    await world.evidence(lasts=timedelta(seconds=3))
    [operation] = await world.accept()
    await world.until_waiting([operation], "queue-paused")
    await world.evidence(lasts=timedelta(hours=1))
    assessed = [event.assessment for event in world.events("assessed") if event.operations]
    assert assessed[0].valid_until is not None

    async def over() -> bool:
        from support.deciding_world import now

        return bool(now() > assessed[0].valid_until + timedelta(seconds=0.5))

    await wait_until(over, "the verdict that came with it has run out")
    await world.document("queue", "training")
    await world.until_placed([operation])
    [decided] = world.events("decided")
    assert decided.operations[0].valid_until > assessed[0].valid_until + timedelta(minutes=30)


async def test_without_newer_evidence_it_goes_on_waiting_and_says_so(world: World) -> None:
    await world.document("queue", "training", paused=True)
    await world.environment()
    await world.evidence(lasts=timedelta(seconds=3))
    [operation] = await world.accept()
    await world.until_waiting([operation], "queue-paused")

    def announced() -> bool:
        return any(not event.assessment.eligible for event in world.events("assessed"))

    await wait_until(announced, "the verdict has run out")
    await world.document("queue", "training")
    await world.until_waiting([operation], "no-eligible-environment")
    assert not world.placed()
    await world.evidence()
    await world.until_placed([operation])


async def test_an_operation_holds_out_for_the_better_environment_as_long_as_the_policy_says(world: World) -> None:
    await world.document("queue", "training")
    await world.document("policy", "patient", preferences={"cost": 1}, overflow={"after": "2s"})
    await world.environment("cheap", quotas={"running": 1}, cost={"perHour": {"cpu-general": 0.01}})
    await world.environment("dear", cost={"perHour": {"cpu-general": 1.0}})
    first, second = await world.accept(2)
    await wait_until(lambda: len(world.placed()) == 1, "one is placed")
    [left] = {first, second} - set(world.placed())
    await world.until_waiting([left], "at-capacity")
    await world.until_placed([left])
    assert world.placed()[left] == "dear"
