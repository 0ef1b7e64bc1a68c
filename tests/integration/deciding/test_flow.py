"""From accepted to decided, and through everything that holds an operation up on the way."""

from typing import Any

import pytest

from landbridge.store import Database
from support.deciding_world import World
from support.wait import wait_until

pytestmark = pytest.mark.usefixtures("deciders")
QUEUE = {"priority": 50}


async def test_an_accepted_operation_is_assessed_and_decided(world: World) -> None:
    await world.document("queue", "training", **QUEUE)
    await world.environment()
    [operation] = await world.accept()
    await world.until_placed([operation])
    [assessed] = [event for event in world.events("assessed") if event.operations]
    [decided] = world.events("decided")
    assert assessed.assessment.eligible
    assert decided.decision.assessment_id == assessed.assessment.id
    assert decided.decision.route == "preferred"
    assert [card.environment for card in decided.decision.ranked] == ["onprem-a"]
    assert decided.decision.inputs["contractVersion"] == "1"
    assert world.decided() == [(operation, 1, "onprem-a")]


async def test_a_failed_store_takes_eligibility_away_and_its_return_lets_operations_flow(world: World) -> None:
    await world.document("queue", "training", **QUEUE)
    await world.environment()
    await world.evidence(failing=["connections.events"])
    [operation] = await world.accept(inputs={"x": {"connection": "events"}})
    await world.until_waiting([operation], "unverified")
    wait = world.waits()[operation]
    assert wait.by == "eligibility"
    assert wait.condition == "not-now"
    assert "connections.events" in wait.message
    await world.evidence()
    await world.until_placed([operation])


async def test_what_nothing_can_run_is_unplaceable_until_an_environment_appears(world: World) -> None:
    await world.document("queue", "training", **QUEUE)
    await world.environment()
    gpu = {"accelerator": {"class": "gpu-80gb", "count": 2}}
    [operation] = await world.accept(resources=gpu)
    await world.until_waiting([operation], "misconfigured")
    assert world.waits()[operation].condition == "unplaceable"
    await world.environment("cloud-b", classes={"gpu-80gb": {"count": 8, "memory": "80Gi"}})
    await world.until_placed([operation])
    assert world.placed()[operation] == "cloud-b"


async def test_a_limit_holds_and_each_release_lets_the_next_one_go(world: World, ledger: Database) -> None:
    await world.document("queue", "training", concurrency=2)
    await world.environment()
    operations = await world.accept(5)
    await wait_until(lambda: len(world.placed()) == 2 and len(world.waits()) == 3, "two run, three wait")
    assert {event.reason for event in world.waits().values()} == {"concurrency"}
    for number in range(3):
        await world.end([world.decided()[number][0]])
        await _placements(world, number + 3)
        assert await ledger.fetchval("select count(*) from charge where held") == 2
    assert set(world.placed()) == set(operations)


async def test_reasons_follow_their_causes(world: World) -> None:
    await world.document("queue", "training", paused=True)
    await world.environment(quotas={"running": 1})
    first, second = await world.accept(2)
    await world.until_waiting([first, second], "queue-paused")
    await world.document("queue", "training")
    await wait_until(lambda: len(world.placed()) == 1, "one is placed")
    [left] = {first, second} - set(world.placed())
    await world.until_waiting([left], "at-capacity")
    await world.document("queue", "training", concurrency=1)
    await world.until_waiting([left], "concurrency")


async def test_a_cancelled_operation_is_never_placed_however_late_its_verdict_comes(
    world: World, ledger: Database
) -> None:
    await world.document("queue", "training", paused=True)
    await world.environment()
    waiting, kept = await world.accept(2)
    await world.until_waiting([waiting, kept], "queue-paused")
    await world.end([waiting], "cancelled")
    await wait_until(lambda: _count(ledger, "select count(*) from waiting", 1), "the cancelled one is gone")
    await world.document("queue", "training")
    await world.until_placed([kept])
    assert list(world.placed()) == [kept]


async def _placements(world: World, number: int) -> None:
    await wait_until(lambda: len(world.decided()) == number, f"{number} placements are decided")


async def _count(database: Database, sql: str, expected: int) -> bool:
    return bool(await database.fetchval(sql) == expected)


async def test_a_retry_is_decided_anew_and_frees_what_it_held(world: World, ledger: Database) -> None:
    await world.document("queue", "training", concurrency=1)
    await world.environment()
    await world.environment("cloud-b")
    [operation] = await world.accept()
    await world.until_placed([operation])
    first = world.placed()[operation]
    await world.requeue(operation, 2, free_from=first, exclude=(first,), reason="exit-code")
    await _placements(world, 2)
    assert world.decided()[1][1] == 2
    assert world.decided()[1][2] != first
    rows = await ledger.fetch("select round, environment, held from charge")
    assert [tuple(row) for row in rows] == [(2, world.decided()[1][2], True)]


async def test_interrupted_work_moves_only_where_its_recovery_allows(world: World) -> None:
    await world.document("queue", "training", **QUEUE)
    for name in ("onprem-a", "cloud-b", "cloud-c"):
        await world.environment(name)
    spec = {"lifecycle": {"recovery": {"mode": "resume", "environments": ["cloud-c", "onprem-a"]}}}
    [operation] = await world.accept(constraints={"environments": {"allow": ["onprem-a", "cloud-b", "cloud-c"]}})
    await world.until_placed([operation])
    await world.requeue(operation, 2, free_from="onprem-a", failed_over=True, exclude=("onprem-a",), spec=spec)
    await _placements(world, 2)
    assert world.decided()[1][2] == "cloud-c"
    assert world.events("decided")[-1].decision.route == "failover"


async def test_when_the_better_environment_is_full_the_rest_overflows(world: World) -> None:
    await world.document("queue", "training", **QUEUE)
    await world.document("policy", "cheapest", preferences={"cost": 1})
    await world.environment("cheap", quotas={"running": 2}, cost={"perHour": {"cpu-general": 0.01}})
    await world.environment("dear", cost={"perHour": {"cpu-general": 1.0}})
    operations = await world.accept(5)
    await world.until_placed(operations)
    assert sorted(world.placed().values()) == ["cheap", "cheap", "dear", "dear", "dear"]
    routes = {event.operations[0].environment: event.decision.route for event in world.events("decided")}
    assert routes == {"cheap": "preferred", "dear": "overflow"}


async def test_residency_holds_on_every_path(world: World) -> None:
    """New, retried, failed over, moved to another queue: never outside, however much cheaper or free it is."""
    await world.document("queue", "training", **QUEUE)
    await world.document("queue", "batch", **QUEUE)
    await world.environment("eu-cold", cost={"perHour": {"cpu-general": 9.0}})
    await world.environment(
        "us-warm",
        location={"regions": ["us-east-1"], "jurisdictions": ["US"]},
        cost={"perHour": {"cpu-general": 0.0}},
    )
    residency: dict[str, Any] = {"constraints": {"jurisdictions": ["EU"]}}
    [operation] = await world.accept(**residency)
    await world.until_placed([operation])
    paths: list[tuple[bool, dict[str, Any]]] = [(False, {}), (True, {}), (False, {"queue": "batch"})]
    for round_, (failed_over, changes) in enumerate(paths, 2):
        spec = {**residency, **changes}
        await world.requeue(operation, round_, free_from="eu-cold", spec=spec, failed_over=failed_over)
        await _placements(world, round_)
    assert {environment for _, _, environment in world.decided()} == {"eu-cold"}
    await world.requeue(operation, 5, free_from="eu-cold", exclude=("eu-cold",), spec=residency)
    await world.until_waiting([operation], "incompatible")
    assert len(world.decided()) == 4
