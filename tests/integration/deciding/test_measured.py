"""What is seen of environments decides: how fast a component ran there, how long what is placed there will last."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from integration.deciding.test_plans import planned, until_known
from landbridge.bus.connection import Bus
from landbridge.domain import claims
from landbridge.schema.wire.report_v1 import Evidence, EvidenceResult
from landbridge.store import Database
from landbridge_eligibility.service import EligibilityService
from landbridge_ranking import observing
from landbridge_ranking.service import RankingService
from support.deciding_world import World
from support.wait import wait_until

Deciders = tuple[EligibilityService, RankingService]
TRAINER: dict[str, Any] = {"component": "trainer@3"}
FASTEST = {"performance": 1}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is seen counts in the next turn, not ten seconds later."""
    monkeypatch.setattr(observing, "SNAPSHOT_EVERY", timedelta(0))


def measurement(answer: dict[str, Any], environment: str, preference: str) -> dict[str, Any]:
    [row] = [row for row in answer["environments"] if row["environment"] == environment]
    [found] = [each for each in row["measurements"] if each["preference"] == preference]
    return dict(found)


def only(environment: str) -> dict[str, Any]:
    return {"constraints": {"environments": {"allow": [environment]}}}


async def run(world: World, environment: str, took: timedelta, count: int = 3, **spec: Any) -> None:
    """Have operations run there, one after the other."""
    for _ in range(count):
        operations = await world.accept(**TRAINER, **only(environment), **spec)
        await world.until_placed(operations)
        await world.end(operations, took=took)


async def until_measured(bus: Bus, environments: Sequence[str]) -> dict[str, Any]:
    answer: dict[str, Any] = {}

    async def known() -> bool:
        found = await planned(bus, **TRAINER, preferences=FASTEST, resources={"requests": {"memory": answer_key()}})
        answer.update(found)
        return all(measurement(found, name, "performance")["value"] is not None for name in environments)

    # Answers are kept for a while: every question is another one.
    asked = iter(range(1, 1000))

    def answer_key() -> str:
        return f"{next(asked)}Mi"

    await wait_until(known, f"performance of {environments} is known")
    return answer


def intensity(grams: float, at: datetime, expires: datetime) -> Evidence:
    """A reading of an environment's own source."""
    return Evidence(
        claim=claims.CARBON,
        result=EvidenceResult.PROVEN,
        at=at,
        expires=expires,
        probe="carbon.intensity@1",
        subject="carbon source grid",
        proven=grams,
    )


async def test_where_the_same_component_ran_faster_is_where_it_goes(
    world: World, deciders: Deciders, bus: Bus, ledger: Database, start: Any
) -> None:
    await world.document("queue", "training")
    await world.document("policy", "fastest", preferences=FASTEST)
    await world.environment("slow", cost={"perHour": {"cpu-general": 0.01}})
    await world.environment("fast", cost={"perHour": {"cpu-general": 9.0}})
    await until_known(deciders[1], "slow", "fast")
    before = await planned(bus, **TRAINER, preferences=FASTEST)
    assert measurement(before, "fast", "performance")["unknown"]
    await run(world, "slow", timedelta(seconds=100))
    await run(world, "fast", timedelta(seconds=10), count=4)  # the end of the last one counts in the next turn
    found = await until_measured(bus, ["slow", "fast"])
    assert measurement(found, "slow", "performance")["value"] == 100.0
    fast = measurement(found, "fast", "performance")
    assert (fast["value"], fast["unit"]) == (10.0, "s")
    assert fast["source"].startswith("median of the last 3 runs of trainer@3 on 2 processors, the newest of 20")
    operations = await world.accept(5, **TRAINER, preferences=FASTEST)
    await world.until_placed(operations)
    assert {world.placed()[operation] for operation in operations} == {"fast"}

    await deciders[1].end()  # type: ignore[attr-defined]
    successor = await start("ranking")
    await wait_until(lambda: successor.admits, "another one is elected")
    await until_known(successor, "slow", "fast")
    again = await until_measured(bus, ["slow", "fast"])
    assert measurement(again, "fast", "performance")["value"] == 10.0
    assert measurement(again, "slow", "performance")["value"] == 100.0


async def run_again(world: World) -> None:
    """Have an operation placed twice; it completes in its second round."""
    [operation] = await world.accept(**TRAINER)
    await world.until_placed([operation])
    await world.requeue(operation, 2, free_from="x", spec=TRAINER)
    await wait_until(lambda: (operation, 2, "x") in world.decided(), "it is placed again")
    await world.end([operation], took=timedelta(seconds=10))


async def test_work_that_failed_or_went_on_from_before_is_no_measurement(
    world: World, deciders: Deciders, bus: Bus, ledger: Database
) -> None:
    await world.document("queue", "training")
    await world.environment("x")
    for _ in range(3):
        operations = await world.accept(**TRAINER)
        await world.until_placed(operations)
        await world.end(operations, "failed", took=timedelta(seconds=10))
        await run_again(world)
    await wait_until(lambda: not deciders[1].desk.admission.ledger.charges(), "all have ended")
    assert deciders[1].desk.observations.snapshot(deciders[1].clock.wall())["x"].runs == {}


async def test_a_line_is_predicted_by_what_it_is_expected_to_last(world: World, deciders: Deciders, bus: Bus) -> None:
    await world.document("queue", "training")
    await world.environment("short")
    await world.environment("long")
    await until_known(deciders[1], "short", "long")
    whole: dict[str, Any] = {"resources": {"requests": {"cpu": "64"}}}
    for environment, lasts in (("short", "10m"), ("long", "10h")):
        await world.until_placed(
            await world.accept(**whole, **only(environment), lifecycle={"expectedDuration": lasts})
        )
    waiting = await world.accept(**whole, preferences={"queue-delay": 1})
    await world.until_waiting(waiting, "at-capacity")

    async def predicted() -> dict[str, Any]:
        return await planned(bus, **whole, preferences={"queue-delay": 1}, lifecycle={"expectedDuration": "3m"})

    found = await predicted()
    short, long = (measurement(found, name, "queue-delay") for name in ("short", "long"))
    assert short["value"] == pytest.approx(600 + 60, rel=0.05), "room in ten minutes, a start within one"
    assert long["value"] == pytest.approx(36_000 + 60, rel=0.05)
    assert "room predicted in" in short["source"]
    assert "1 placed" in short["source"]
    assert found["environments"][0]["environment"] == "short"
    # The forecast adds nothing twice: its turn, then what starting takes.
    forecast = found["forecast"]
    assert forecast["startDelay"]["seconds"] == 60.0
    assert forecast["start"]["seconds"] == pytest.approx(forecast["admission"]["seconds"] + 60.0)


async def test_the_greenest_by_its_own_source_until_that_is_silent_for_too_long(
    world: World, deciders: Deciders, bus: Bus
) -> None:
    await world.document("queue", "training")
    await world.document("policy", "greenest", preferences={"carbon": 1})
    await world.environment("coal", carbon={"gramsPerKWh": 900})
    await world.environment("solar", carbon={"measured": True, "gramsPerKWh": 20})
    await until_known(deciders[1], "coal", "solar")

    async def place(at: datetime, lasts: timedelta, *, fresh: bool) -> tuple[str, str]:
        told = intensity(30.0, at, at + lasts)
        await world.evidence("solar", measured=[told])

        def known() -> bool:
            deciders[1].book.settle()
            piece = deciders[1].book.view.candidates["solar"][0].evidence.get(claims.CARBON)
            found = bool(deciders[1].book.carbon(datetime.now(UTC)))
            return piece is not None and abs(piece.expires - told.expires) < timedelta(seconds=1) and found is fresh

        await wait_until(known, "ranking has read the evidence")
        [operation] = await world.accept()
        await world.until_placed([operation])
        [event] = [event for event in world.events("decided") if event.operations[0].operation == operation]
        card = next(card for card in event.decision.ranked if card.environment == "solar")
        return world.placed()[operation], next(m.source for m in card.measurements if m.preference == "carbon")

    now = datetime.now(UTC)
    where, source = await place(now, timedelta(minutes=20), fresh=True)
    assert where == "solar"
    assert source.startswith("carbon source grid, read 20")
    where, source = await place(now - timedelta(minutes=30), timedelta(minutes=20), fresh=False)
    assert where == "coal", "what it stated for good is not of now"
    assert source == "no fresh reading, and contract version 1 states no other"
