"""The cause changes, and with it what is told: for one operation, step by step, on running services."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from landbridge.domain import claims
from support.deciding_world import World
from support.wait import happens_within, wait_until

pytestmark = pytest.mark.usefixtures("deciders")

ABROAD: dict[str, Any] = {"location": {"regions": ["us-east-1"], "jurisdictions": ["US"]}}
ALWAYS = {"rrule": "FREQ=DAILY", "duration": "24h"}
GPU: dict[str, Any] = {"gpu-80gb": {"count": 8, "memory": "80Gi"}}


async def test_one_operation_is_told_each_cause_in_turn_with_its_own_code_and_sentence(world: World) -> None:
    """From never over not now to placed: every code differs, and none of them outlives its cause."""
    await world.document("queue", "training", paused=True)
    need: dict[str, Any] = {"constraints": {"jurisdictions": ["EU"]}, "inputs": {"x": {"connection": "events"}}}
    steps: list[tuple[str, str, str, Callable[[], Awaitable[None]]]] = [
        ("incompatible", "unplaceable", "jurisdiction", lambda: world.environment(**ABROAD)),
        ("unverified", "not-now", "connections.events", lambda: failing(world, "connections.events")),
        ("unavailable", "not-now", "disk swap", lambda: paused(world)),
        ("unavailable", "not-now", "maintenance", lambda: in_maintenance(world)),
        ("queue-paused", "", "training", lambda: world.environment(quotas={"running": 1})),
        ("exceeds-quota", "", "cpu", lambda: world.document("queue", "training", quota={"cpu": "1"})),
        ("at-capacity", "", "onprem-a", lambda: full(world)),
    ]
    await world.environment(**ABROAD)
    [operation] = await world.accept(**need)
    told = []
    for code, condition, word, cause in steps:
        await cause()
        await world.until_waiting([operation], code)
        await wait_until(lambda word=word: word in world.waits()[operation].message, f"{code} names {word}")  # type: ignore[misc]
        wait = world.waits()[operation]
        assert (wait.reason, wait.condition) == (code, condition), wait
        told.append(wait.message)
    assert len(set(told)) == len(steps)
    await world.end([next(iter(world.placed()))])
    await world.until_placed([operation])


async def test_another_limit_under_the_same_code_is_told_as_well(world: World) -> None:
    """First the queue is in the way, then the project: the code stays, the sentence does not."""
    await world.document("queue", "training", concurrency=1)
    await world.environment()
    first, second = await world.accept(2)
    await wait_until(lambda: len(world.placed()) == 1, "one is placed")
    [left] = {first, second} - set(world.placed())
    await world.until_waiting([left], "concurrency")
    assert world.waits()[left].message == "queue training runs 1 of at most 1 operations"
    await world.document("project", "retail-eu", limits={"running": 1})
    await world.document("queue", "training", concurrency=9)
    told = "project retail-eu runs 1 of at most 1 operations"
    await wait_until(lambda: world.waits()[left].message == told, "the project's limit is told", timeout_s=30)
    assert world.waits()[left].reason == "concurrency"
    assert list(world.placed()) != [left]


async def failing(world: World, claim: str) -> None:
    await world.environment(failing=[claim])


async def paused(world: World) -> None:
    await world.control(paused=True)
    await world.evidence()


async def in_maintenance(world: World) -> None:
    await world.environment(maintenance=[ALWAYS])
    await world.control(paused=False)


async def full(world: World) -> None:
    """The queue has room, the environment has none."""
    await world.document("queue", "training", paused=True)
    await world.document("queue", "other", priority=90)
    [first] = await world.accept(queue="other")
    await world.until_placed([first])
    await world.document("queue", "training")


async def test_all_environments_in_maintenance_means_not_now_and_the_operation_runs_afterwards(world: World) -> None:
    await world.document("queue", "training")
    for name in ("onprem-a", "cloud-b"):
        await world.environment(name, maintenance=[ALWAYS])
    [operation] = await world.accept()
    await world.until_waiting([operation], "unavailable")
    wait = world.waits()[operation]
    assert wait.condition == "not-now"
    assert "a window from" in wait.message
    await world.environment("cloud-b")
    await world.until_placed([operation])
    assert world.placed()[operation] == "cloud-b"


async def test_a_misspelt_connection_is_somebodys_mistake_and_named_with_what_is_near(world: World) -> None:
    await world.document("queue", "training")
    await world.environment()
    [operation] = await world.accept(inputs={"x": {"connection": "evnets"}})
    await world.until_waiting([operation], "misconfigured")
    wait = world.waits()[operation]
    assert wait.condition == "unplaceable"
    assert "connection evnets" in wait.message
    assert "did you mean events?" in wait.message


async def test_a_reason_cites_the_contract_version_that_was_judged(world: World) -> None:
    await world.document("queue", "training")
    await world.environment(**ABROAD)
    [operation] = await world.accept(constraints={"jurisdictions": ["EU"]})
    await world.until_waiting([operation], "incompatible")
    assert "onprem-a (contract version 1)" in world.waits()[operation].message
    await world.environment(version=2, maintenance=[ALWAYS])
    await world.until_waiting([operation], "unavailable")
    assert "onprem-a (contract version 2)" in world.waits()[operation].message
    await world.environment(version=3)
    await world.until_placed([operation])
    assert world.events("decided")[-1].decision.inputs["contractVersion"] == "3"


@pytest.mark.parametrize("broken", ["classes.gpu-80gb", "connections.events", "runtime", claims.IDENTITY, claims.CLOCK])
async def test_what_breaks_is_named_and_work_goes_elsewhere_while_running_work_is_left_alone(
    world: World, broken: str
) -> None:
    """A driver, the artifact store, the registry, the issuer of identities, the site's clock: one at a time."""
    need: dict[str, Any] = {
        "resources": {"accelerator": {"class": "gpu-80gb", "count": 1}},
        "inputs": {"x": {"connection": "events"}},
        "identity": "trainer",
    }
    await world.document("queue", "training")
    await world.document("policy", "cheapest", preferences={"cost": 1})
    await world.environment(classes=GPU, cost={"perHour": {"gpu-80gb": 1.0}})
    await world.environment("cloud-b", classes=GPU, cost={"perHour": {"gpu-80gb": 9.0}})
    # Whose loss has nothing to do with anybody else.
    await world.environment("dead-end", classes=GPU, cost={"perHour": {"gpu-80gb": 0.1}})
    await world.evidence("dead-end", failing=[claims.RUNTIME, "connections.events"])
    await world.link("dead-end", "lost")
    [running] = await world.accept(**need)
    await world.until_placed([running])
    assert world.placed()[running] == "onprem-a"

    await world.evidence(failing=[broken])
    await wait_until(lambda: announced_without(world, "onprem-a"), "the verdict is taken back")
    queued = await world.accept(5, **need)
    await world.until_placed(queued)
    assert {world.placed()[operation] for operation in queued} == {"cloud-b"}
    await world.evidence("cloud-b", failing=[broken])
    await wait_until(lambda: not latest_verdict(world).eligible, "nowhere is left")
    [stuck] = await world.accept(**need)
    await world.until_waiting([stuck], "unverified")
    assert f"fresh proof of {broken}" in world.waits()[stuck].message
    await world.evidence()
    await world.until_placed([stuck])
    assert world.placed()[stuck] == "onprem-a"
    assert [environment for operation, _, environment in world.decided() if operation == running] == ["onprem-a"]


def latest_verdict(world: World) -> Any:
    return world.events("assessed")[-1].assessment


def announced_without(world: World, environment: str) -> bool:
    return environment not in {
        verdict.environment for verdict in latest_verdict(world).environments if verdict.eligible
    }


async def test_what_waits_already_goes_elsewhere_when_the_place_that_it_would_have_gone_to_breaks(world: World) -> None:
    await world.document("queue", "training", paused=True)
    await world.document("policy", "cheapest", preferences={"cost": 1})
    await world.environment(cost={"perHour": {"cpu-general": 1.0}})
    await world.environment("cloud-b", cost={"perHour": {"cpu-general": 9.0}})
    queued = await world.accept(3)
    await world.until_waiting(queued, "queue-paused")
    await world.evidence(failing=[claims.RUNTIME])
    await wait_until(lambda: announced_without(world, "onprem-a"), "the verdict is taken back")
    await world.document("queue", "training")
    await world.until_placed(queued)
    assert set(world.placed().values()) == {"cloud-b"}


async def test_a_busy_environment_that_fits_is_told_as_busy_beside_one_that_does_not_fit(world: World) -> None:
    """Neither is the busy one told as unfit, nor the unfit one as busy; the cause changes, and so does what is told."""
    await world.document("queue", "training")
    await world.environment("fits", quotas={"running": 1})
    await world.environment("abroad", **ABROAD)
    first, second = await world.accept(2, constraints={"jurisdictions": ["EU"]})
    await wait_until(lambda: len(world.placed()) == 1, "one is placed")
    [left] = {first, second} - set(world.placed())
    await world.until_waiting([left], "at-capacity")
    told = world.waits()[left]
    assert "fits" in told.message
    assert "abroad" not in told.message
    assert told.condition == ""
    await world.environment("fits", version=2, quotas={"running": 1}, **ABROAD)
    await world.until_waiting([left], "no-eligible-environment")
    assert world.waits()[left].condition == "unplaceable"


async def test_a_placed_operation_is_not_placed_again_whatever_changes_around_it(world: World) -> None:
    """The contract, the evidence, the link, the queue, its priority and a better offer: only its owner frees it."""
    await world.document("queue", "training")
    await world.document("policy", "cheapest", preferences={"cost": 1})
    await world.environment(cost={"perHour": {"cpu-general": 5.0}})
    [operation] = await world.accept()
    await world.until_placed([operation])

    await world.environment(version=2, cost={"perHour": {"cpu-general": 7.0}})
    await world.environment("cloud-b", cost={"perHour": {"cpu-general": 0.1}})
    await world.evidence(failing=[claims.RUNTIME])
    await world.link(state="lost")
    await world.document("queue", "training", paused=True)
    await world.document("queue", "training", priority=99)
    await world.link(state="reconciling")
    await world.link()
    await world.control(paused=True)
    [marker] = await world.accept()  # decided by a view that has all of this
    await world.until_placed([marker])

    assert world.placed()[marker] == "cloud-b"
    assert not await happens_within(1.0, lambda: len(world.decided()) > 2)
    assert [item[2] for item in world.decided() if item[0] == operation] == ["onprem-a"]


async def test_interrupted_work_goes_where_its_checkpoints_are_and_waits_rather_than_begin_anew(world: World) -> None:
    shared = {"shared": {"type": "s3", "access": "read-write", "region": "eu-de-1"}}
    await world.document("queue", "training")
    await world.document("policy", "cheapest", preferences={"cost": 1})
    await world.environment("home", connections=shared, cost={"perHour": {"cpu-general": 1.0}, "egressPerGB": 0.1})
    await world.environment(
        "near",
        location={"regions": ["eu-de-2"]},
        connections={**shared, "events": {"bandwidth": "8Gbit/s"}},  # the input lies in eu-de-1
        cost={"perHour": {"cpu-general": 2.0}},
    )
    await world.environment("cheap-but-blind", cost={"perHour": {"cpu-general": 0.01}})
    spec: dict[str, Any] = {
        "checkpoints": {"connection": "shared", "every": "10m"},
        "inputs": {"x": {"connection": "events", "size": "10G"}},
        "lifecycle": {"expectedDuration": "1h"},
        "constraints": {"environments": {"allow": ["home", "near", "cheap-but-blind"]}},
    }
    [operation] = await world.accept(**spec)
    await world.until_placed([operation])
    assert world.placed()[operation] == "home"
    await world.link("near", "lost")
    away: dict[str, Any] = {"free_from": "home", "failed_over": True, "exclude": ("home",), "spec": spec}
    await world.requeue(operation, 2, **away)
    await wait_until(lambda: operation in world.waits(), "it waits")
    assert not await happens_within(1.0, lambda: len(world.decided()) > 1)
    judged = [event.assessment for event in world.events("assessed") if event.operations][-1]
    [blind] = [verdict for verdict in judged.environments if verdict.environment == "cheap-but-blind"]
    assert "checkpoint-unreachable" in {violation.reason for violation in blind.violations}

    await world.link("near")
    await world.until_placed([operation])
    await wait_until(lambda: len(world.decided()) == 2, "it is placed once more")
    assert world.placed()[operation] == "near"
    [card] = world.events("decided")[-1].decision.ranked
    measured = {each.preference: each for each in card.measurements}
    assert measured["transfer-time"].value == 10.0
    assert "10000000000 bytes of events from eu-de-1" in measured["transfer-time"].source
    assert measured["cost"].value == 2 * 2.0 + 10 * 0.1  # two processors for an hour, ten gigabytes out of eu-de-1


async def test_a_paused_class_holds_only_the_work_that_would_use_it(world: World) -> None:
    await world.document("queue", "training")
    await world.environment(classes={"gpu-80gb": {"count": 8, "memory": "80Gi"}})
    await world.control(classes=["gpu-80gb"])
    [trains] = await world.accept(resources={"accelerator": {"class": "gpu-80gb", "count": 4}})
    await world.until_waiting([trains], "unavailable")
    assert "class gpu-80gb paused by ann: new driver" in world.waits()[trains].message
    await world.until_placed(await world.accept())
    await world.control()
    await world.until_placed([trains])


async def test_a_rule_of_the_operators_holds_work_back_from_when_it_is_applied(world: World) -> None:
    await world.document("queue", "training")
    await world.environment()
    await world.until_placed(await world.accept())
    rule = {"message": "no more than one processor each", "scope": {"projects": ["retail-eu"]}}
    await world.document("rule", "small", expression="operation.cpu <= 1.0", **rule)
    [big] = await world.accept()
    await world.until_waiting([big], "incompatible")
    assert "rule small: no more than one processor each" in world.waits()[big].message
    await world.until_placed(await world.accept(project="search"))
    await world.document("rule", "small", expression="operation.cpu <= 2.0", **rule)
    await world.until_placed([big])
