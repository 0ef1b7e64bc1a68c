"""Plans: what ranking answers beforehand is what is then decided; asking changes nothing."""

from typing import Any

import msgspec
import pytest

from landbridge.bus import subjects
from landbridge.bus.connection import Bus
from landbridge.domain.classify import classify
from landbridge.schema.wire.request_v1 import AskReply, PlanRequest, ReplayRequest
from landbridge.store import Database
from landbridge_eligibility.service import EligibilityService
from landbridge_ranking.service import RankingService
from support.deciding import effective
from support.deciding_world import World
from support.wait import wait_until

Deciders = tuple[EligibilityService, RankingService]
_encode = msgspec.json.Encoder().encode


async def asked(bus: Bus, kind: str, question: msgspec.Struct) -> AskReply:
    answer = await bus.request(subjects.ask("ranking", kind), _encode(question), 10)
    return msgspec.json.decode(answer, type=AskReply)


async def planned(bus: Bus, operation: str = "", **spec: Any) -> dict[str, Any]:
    reply = await asked(bus, "plan", PlanRequest(requirements=classify(effective(**spec)).body, operation=operation))
    assert reply.found, reply.message
    answer: dict[str, Any] = msgspec.json.decode(reply.json)
    return answer


async def until_known(ranking: RankingService, *names: str, queue: str = "training") -> None:
    """Wait until ranking has read everything about environments (the link comes last), and the queue."""

    def known() -> bool:
        ranking.book.settle()
        view = ranking.book.view
        read = all(name in view.candidates and view.candidates[name][0].link.features for name in names)
        return read and ranking.desk.settled and (not queue or queue in view.catalogue.queues)

    await wait_until(known, f"ranking knows {names}")


async def test_a_plan_tells_where_it_then_goes_and_changes_nothing(
    world: World, deciders: Deciders, bus: Bus, ledger: Database
) -> None:
    await world.document("queue", "training")
    await world.environment("onprem-a")
    await world.environment("cloud-b", objectives={"startWithin": "5m"}, cost={"perHour": {"cpu-general": 0.5}})
    await world.environment("edge-c", workloads=["service"])
    await until_known(deciders[1], "onprem-a", "cloud-b", "edge-c")
    seen = len(world.seen)
    found = await planned(bus)
    assert found["eligible"] is True
    assert (found["likely"]["environment"], found["likely"]["route"]) == ("onprem-a", "preferred")
    assert [(row["environment"], row["eligible"]) for row in found["environments"]] == [
        ("onprem-a", True),
        ("cloud-b", True),
        ("edge-c", False),
    ]
    assert found["environments"][0]["score"] > found["environments"][1]["score"]
    [violation] = found["environments"][2]["violations"]
    assert (violation["constraint"], violation["wanted"], violation["kind"]) == ("workload-type", "type job", "never")
    assert found["forecast"]["start"] == {"lowSeconds": 60.0, "seconds": 60.0, "highSeconds": 60.0}
    assert "at once" in found["forecast"]["text"]
    assert found["waits"] is None
    assert len(world.seen) == seen
    assert await ledger.fetchval("select count(*) from charge") == 0
    [operation] = await world.accept()
    await world.until_placed([operation])
    assert world.placed()[operation] == "onprem-a"


async def test_a_full_queue_gives_place_reason_and_a_range_once_durations_were_seen(
    world: World, deciders: Deciders, bus: Bus
) -> None:
    await world.document("queue", "training", concurrency=1)
    await world.environment()
    operations = await world.accept(5)
    await wait_until(lambda: len(world.waits()) == 4, "four wait")
    found = await planned(bus)
    assert found["place"] == {"place": 5, "length": 5}
    assert found["waits"]["reason"] == "concurrency"
    assert found["forecast"]["admission"] is None
    assert "unknown" in found["forecast"]["text"]
    for _ in range(3):
        [held] = {name for name in world.placed() if name in operations}
        operations.remove(held)
        await world.end([held])
        await wait_until(lambda: any(name in world.placed() for name in operations), "the next one goes")
    found = await planned(bus)
    admission = found["forecast"]["admission"]
    assert 0 < admission["lowSeconds"] <= admission["seconds"] <= admission["highSeconds"]
    assert "last 3 operations there" in found["forecast"]["text"]
    [last] = [name for name in operations if name not in world.placed()]
    own = await planned(bus, operation=last)
    assert own["place"] == {"place": 1, "length": 1}
    assert own["waits"]["reason"] == "concurrency"
    assert own["forecast"]["admission"]["seconds"] > 0


async def planned_together(bus: Bus, *specs: dict[str, Any]) -> list[dict[str, Any]]:
    first, *others = [classify(effective(**spec)).body for spec in specs]
    reply = await asked(bus, "plan", PlanRequest(requirements=first, together=tuple(others)))
    assert reply.found, reply.message
    items: list[dict[str, Any]] = msgspec.json.decode(reply.json)["items"]
    return items


async def test_a_gang_that_is_planned_whole_goes_where_it_then_goes(
    world: World, deciders: Deciders, bus: Bus, ledger: Database
) -> None:
    await world.document("queue", "training")
    for name in ("onprem-a", "cloud-b"):
        await world.environment(name)
    await until_known(deciders[1], "onprem-a", "cloud-b")
    gang = {"name": "train", "members": 2, "spanEnvironments": True}
    members: list[dict[str, Any]] = [
        {"gang": gang, "constraints": {"environments": {"allow": [name]}}} for name in ("cloud-b", "onprem-a")
    ]
    alone = await planned(bus, **members[0])
    assert alone["waits"]["reason"] == "gang-incomplete"
    assert "1 of 2 members" in alone["waits"]["message"]
    together = await planned_together(bus, *members)
    assert [each["likely"]["environment"] for each in together] == ["cloud-b", "onprem-a"]
    assert [each["waits"] for each in together] == [None, None]
    assert all("at once" in each["forecast"]["text"] for each in together)
    assert await ledger.fetchval("select count(*) from charge") == 0
    operations = [(await world.accept(**member))[0] for member in members]
    await world.until_placed(operations)
    assert [world.placed()[operation] for operation in operations] == ["cloud-b", "onprem-a"]


async def test_what_is_planned_together_shares_room_and_queue_as_admission_would_have_it(
    world: World, deciders: Deciders, bus: Bus
) -> None:
    await world.document("queue", "training", concurrency=2)
    await world.environment("onprem-a", quotas={"running": 1})
    await world.environment("cloud-b", objectives={"startWithin": "5m"}, cost={"perHour": {"cpu-general": 0.5}})
    await until_known(deciders[1], "onprem-a", "cloud-b")
    found = await planned_together(bus, {}, {}, {"workload": "nosuch", "resources": {"requests": {"cpu": "9000"}}}, {})
    assert [each["likely"] and each["likely"]["environment"] for each in found[:3]] == ["onprem-a", "cloud-b", None]
    assert (found[1]["likely"]["route"], found[1]["likely"]["full"]) == ("overflow", ["onprem-a"])
    assert found[3]["waits"]["reason"] == "concurrency"
    # What nothing can run does not wait for its turn, and so is not before the others.
    assert found[3]["place"] == {"place": 3, "length": 3}
    assert "of 2 operations that hold places" in found[3]["forecast"]["text"]
    operations = await world.accept(3)
    await wait_until(lambda: len(world.placed()) == 2, "two are placed")
    await wait_until(lambda: len(world.waits()) == 1, "one waits")
    assert sorted(world.placed()[name] for name in operations if name in world.placed()) == ["cloud-b", "onprem-a"]
    [waits] = world.waits().values()
    assert waits.reason == "concurrency"


async def test_plans_that_the_broker_would_not_take_are_refused_with_what_to_do(
    world: World, deciders: Deciders, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.document("queue", "training")
    await world.environment("onprem-a")
    await until_known(deciders[1], "onprem-a")
    monkeypatch.setattr(type(deciders[1].bus), "max_payload", 10_000)
    first, *others = [classify(effective()).body] * 9
    reply = await asked(bus, "plan", PlanRequest(requirements=first, together=tuple(others)))
    assert not reply.found
    assert "ask for fewer of them at once" in reply.message
    assert msgspec.json.decode(reply.json)["status"] == 413


async def test_what_nothing_can_run_has_the_change_that_would_help(world: World, deciders: Deciders, bus: Bus) -> None:
    await world.document("queue", "training")
    await world.environment("onprem-a")
    await world.environment("cloud-b", workloads=["service"])
    await until_known(deciders[1], "onprem-a", "cloud-b")
    found = await planned(bus, resources={"requests": {"cpu": "100"}})
    assert (found["eligible"], found["condition"], found["likely"]) == (False, "unplaceable", None)
    nearest = found["nearestMiss"]
    assert nearest["environment"] == "onprem-a"
    assert (nearest["change"]["path"], nearest["change"]["value"]) == ("spec.resources.requests.cpu", "64")
    again = await planned(bus, resources={"requests": {"cpu": "64"}})
    assert again["likely"]["environment"] == "onprem-a"


async def test_a_pause_is_seen_at_once_also_when_nothing_waits(world: World, deciders: Deciders, bus: Bus) -> None:
    await world.document("queue", "training")
    await world.environment()
    await until_known(deciders[1], "onprem-a")
    assert (await planned(bus))["eligible"] is True
    await world.control(paused=True)

    def paused() -> bool:
        deciders[1].book.settle()
        return deciders[1].book.view.candidates["onprem-a"][0].control.paused

    await wait_until(paused, "ranking knows of the pause")
    found = await planned(bus)
    assert (found["eligible"], found["condition"]) == (False, "not-now")
    assert "landbridge env resume onprem-a" in found["nearestMiss"]["change"]["text"]


async def test_while_the_ledger_is_not_read_no_place_is_promised(world: World, deciders: Deciders, bus: Bus) -> None:
    await world.document("queue", "training")
    await world.environment()
    await until_known(deciders[1], "onprem-a")
    deciders[1].desk.soil()
    found = await planned(bus)
    assert found["eligible"] is True
    assert found["forecast"]["admission"] is None
    assert "being read" in found["forecast"]["text"]


async def test_the_same_question_about_the_same_state_is_worked_out_once(
    world: World, deciders: Deciders, bus: Bus
) -> None:
    await world.document("queue", "training")
    await world.environment()
    await until_known(deciders[1], "onprem-a")
    first = await planned(bus)
    assert (await planned(bus))["at"] == first["at"]
    assert (await planned(bus, resources={"requests": {"cpu": "3"}}))["at"] != first["at"]
    [operation] = await world.accept()
    await world.until_placed([operation])
    assert (await planned(bus))["at"] != first["at"]


async def test_a_decision_is_made_again_and_gives_the_same(
    world: World, deciders: Deciders, bus: Bus, ledger: Database
) -> None:
    await world.document("queue", "training")
    await world.environment()
    [operation] = await world.accept()
    await world.until_placed([operation])
    decision = await ledger.fetchval("select decision from charge where operation = $1", operation)
    reply = await asked(bus, "replay", ReplayRequest(decision=decision, operation=operation))
    found = msgspec.json.decode(reply.json)
    assert [check["same"] for check in found["checks"]] == [True] * 5
    assert (found["environment"], found["placed"]["operation"]) == ("onprem-a", operation)
    other = "00000000-0000-4000-8000-000000000000"
    partly = msgspec.json.decode((await asked(bus, "replay", ReplayRequest(decision=decision, operation=other))).json)
    assert [check["same"] for check in partly["checks"]] == [True, True, None, None, None]
    assert not (await asked(bus, "replay", ReplayRequest(decision="none", operation=operation))).found


async def test_a_question_that_cannot_be_read_is_answered(world: World, deciders: Deciders, bus: Bus) -> None:
    reply = await asked(bus, "plan", PlanRequest(requirements=b"[1"))
    assert not reply.found
    assert "cannot read" in reply.message


async def test_only_the_replica_that_admits_answers(world: World, deciders: Deciders, bus: Bus, start: Any) -> None:
    standby = await start("ranking")
    await world.environment()
    await until_known(deciders[1], "onprem-a", queue="")
    assert not standby.admits
    for _ in range(5):
        assert (await planned(bus, queue="default"))["eligible"] is True
    await deciders[1].end()  # type: ignore[attr-defined]
    await wait_until(lambda: standby.admits, "the other one is elected", timeout_s=30)
    await until_known(standby, "onprem-a", queue="")
    assert (await planned(bus, queue="default"))["eligible"] is True


@pytest.mark.parametrize("kind", ["plan", "replay"])
async def test_nobody_answers_where_nobody_admits(bus: Bus, kind: str) -> None:
    from landbridge.bus.errors import NoResponder

    with pytest.raises(NoResponder):
        await bus.request(subjects.ask("ranking", kind), b"{}", 5)


async def test_of_several_classes_the_best_with_room_serves_and_plan_event_and_ledger_name_it(
    world: World, deciders: Deciders, bus: Bus, ledger: Database
) -> None:
    classes = {"gpu-48gb": {"count": 2, "memory": "48Gi"}, "gpu-80gb": {"count": 2, "memory": "80Gi"}}
    prices = {"cpu-general": 0.05, "gpu-48gb": 1.0, "gpu-80gb": 3.0}
    asking: dict[str, Any] = {"resources": {"requests": {"cpu": "1"}, "accelerator": {"memory": "40Gi", "count": 2}}}
    await world.document("queue", "training")
    await world.environment("onprem-a", classes=classes, cost={"currency": "EUR", "perHour": prices})
    await until_known(deciders[1], "onprem-a")
    [row] = (await planned(bus, **asking))["environments"]
    assert (row["classes"], row["servedBy"]) == (["gpu-48gb", "gpu-80gb"], "gpu-48gb")
    several = [(each["class"], each["chosen"]) for each in row["alternatives"]]
    assert several == [("gpu-48gb", True), ("gpu-80gb", False)]
    operations = await world.accept(3, **asking)
    await world.until_waiting(operations[2:], "at-capacity")
    told = [each for event in world.events("decided") for each in event.operations]
    assert [each.operation for each in told] == operations[:2]
    assert [each.served_by for each in told] == ["gpu-48gb", "gpu-80gb"]
    charged = [msgspec.json.decode(row["amounts"]) for row in await ledger.fetch("select amounts from charge")]
    assert sorted(name for each in charged for name in each if name.startswith("gpu")) == ["gpu-48gb", "gpu-80gb"]
    await world.control("onprem-a", classes=["gpu-48gb"])
    await world.end(operations[:2])
    await world.until_placed(operations)
    told = [each for event in world.events("decided") for each in event.operations]
    assert (told[-1].operation, told[-1].served_by) == (operations[2], "gpu-80gb")
    decision = await ledger.fetchval("select decision from charge where operation = $1", operations[2])
    again = msgspec.json.decode(
        (await asked(bus, "replay", ReplayRequest(decision=decision, operation=operations[2]))).json
    )
    assert [check["same"] for check in again["checks"]] == [True] * 5
