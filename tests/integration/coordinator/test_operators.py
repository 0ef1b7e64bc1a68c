"""What people decide over HTTP: previews change nothing, decisions are kept, the protocol stays safe."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec
import pytest

from landbridge.schema.wire import event_v1, report_v1
from landbridge.store import Database
from landbridge_dispatch.coordinator.service import CoordinatorService
from support.coordinator_stage import ScriptedEnvironment, Stage, an_epoch
from support.wait import wait_until

from .conftest import ADMIN, Join, StartCoordinator
from .test_loss import SHORT, Heartbeat, _link_is, _may_start, _measured_self_stop

STRANGER = "0190a1b2-0000-5000-8000-00000000dead"


async def ask(coordinator: CoordinatorService, method: str, path: str, status: int = 200, **more: Any) -> Any:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{coordinator.port}") as http:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        answer = await http.request(method, f"/v1/{path}", headers=headers, **more)
    assert answer.status_code == status, answer.text
    return answer.json()


async def decide(coordinator: CoordinatorService, path: str, status: int = 200, **more: Any) -> Any:
    """Preview a decision, then make it; the preview must tell what then happens."""
    body = {"reason": "as the drill says", **more}
    if status != 200:
        return await ask(coordinator, "POST", path, status, json=body)
    preview = await ask(coordinator, "POST", path, params={"dryRun": "true"}, json=body)
    made = await ask(coordinator, "POST", path, json=body)
    assert (preview.pop("dryRun"), made.pop("dryRun")) == (True, False)
    assert preview == made
    return made


async def audited(coordinator: CoordinatorService) -> list[tuple[str, str, str]]:
    found = (await ask(coordinator, "GET", "audit"))["items"]
    return [(item["action"], item["by"], item["reason"]) for item in found]


async def back(stage: Stage, old: ScriptedEnvironment) -> ScriptedEnvironment:
    """The environment returns as a new process that kept its records; it has said hello."""
    again = ScriptedEnvironment(stage, old.name)
    again.term, again.n = old.term, old.n
    await again.lease("hello")
    return again


async def registered(coordinator: CoordinatorService, stage: Stage, *names: str) -> None:
    """Say that environments have an active contract."""
    for name in names:
        contract = event_v1.ContractVersion(version=1, phase="active")
        changed = event_v1.EnvironmentContractChanged(environment=name, at=datetime.now(UTC), versions=(contract,))
        await stage.environment_says("contract", changed)
    await wait_until(lambda: all(map(coordinator.core.verdicts.is_registered, names)), "contracts are known")


@pytest.fixture
async def beating(join: Join) -> AsyncIterator[Callable[[str], Awaitable[ScriptedEnvironment]]]:
    """`await beating("b")`: an environment that is heard all the time."""
    beats = []

    async def make(name: str) -> ScriptedEnvironment:
        environment = await join(name)
        beats.append(Heartbeat(environment))
        return environment

    yield make
    for beat in beats:
        await beat.stop()


async def test_a_cut_is_told_in_words_for_each_policy(
    start_coordinator: StartCoordinator, stage: Stage, join: Join, beating: Callable[[str], Awaitable[Any]]
) -> None:
    coordinator = await start_coordinator(**SHORT)
    for name in ("b", "c"):
        await beating(name)
    a = await join("a")
    policies = {
        "continue": {"policy": "continue"},
        "must-finish": {"policy": "must-finish"},
        "stop-after-grace": {"policy": "stop-after-grace", "grace": "1h"},
    }
    operations = {name: await stage.accept(name, disconnection=policy) for name, policy in policies.items()}
    await stage.decide(list(operations.values()), "a")
    renewing = Heartbeat(a)
    for operation in operations.values():
        await a.run(operation)
    await renewing.stop()
    await wait_until(lambda: _link_is(stage, "a", "lost"), "the link is told as lost")
    before = await ask(coordinator, "GET", "environments/a/disconnection")
    await _measured_self_stop(stage, coordinator, "a")
    view = await ask(coordinator, "GET", "environments/a/disconnection")
    for operation in operations.values():
        await stage.until(operation, "running", "condition")
    one = await ask(coordinator, "GET", f"operations/{operations['continue']}/ownership")
    heard = await ask(coordinator, "GET", "environments/b/disconnection")

    prospects = {row["name"]: (row["prospect"], bool(row["notBefore"])) for row in view["operations"]}
    assert prospects == {
        "continue": ("runs-on", False),
        "must-finish": ("runs-on", False),
        "stop-after-grace": ("may-be-placed-again", True),
    }
    assert {row["name"]: row["prospect"] for row in before["operations"]}["stop-after-grace"].startswith("waits")
    assert view["text"][0].startswith("Not heard since ")
    assert one["text"][0].startswith("Unknown since ")
    assert one["unknownSince"] == view["since"]
    assert (heard["link"], heard["text"], heard["operations"]) == ("connected", [], [])


async def test_a_preview_leaves_no_trace(coordinator: CoordinatorService, stage: Stage, join: Join) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    await a.run(operation)
    for path in ("environments/a/declare-dead", f"operations/{operation}/override", "expiry/lift"):
        outcome = await ask(coordinator, "POST", path, params={"dryRun": "true"}, json={})
        assert outcome["text"], path
    await ask(coordinator, "POST", f"operations/{operation}/override", 422, json={"reason": " "})
    assert await audited(coordinator) == []
    assert [event.phase.value for event in await stage.told(operation)] == ["pending", "running"]
    assert await stage.ordered("a", "stop") == []


async def test_declared_dead_frees_and_the_returning_environment_stops_the_old_copy(
    start_coordinator: StartCoordinator, stage: Stage, join: Join, beating: Callable[[str], Awaitable[Any]]
) -> None:
    coordinator = await start_coordinator(**SHORT)
    b, _ = await beating("b"), await beating("c")
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    renewing = Heartbeat(a)
    old = await a.run(operation)
    await renewing.stop()
    await stage.until(operation, "running", "condition")
    outcome = await decide(coordinator, "environments/a/declare-dead")
    assert (outcome["operations"], outcome["link"]) == (1, "lost")
    told = await stage.until(operation, "condition", "retrying")
    assert "admin declares environment a dead: as the drill says" in told[-1].message
    await stage.decide([operation], "b", 2)
    await b.run(operation, 2)
    again = await back(stage, a)
    await again.show(again.slot(old, "running", term=a.term))
    await wait_until(lambda: _may_start(again), "it may start", every_s=0.05)

    stops = [(stop.epoch, stop.reason) for stop in await stage.ordered("a", "stop")]
    assert (old[1], "superseded") in stops
    assert again.term > a.term
    assert (await stage.told(operation))[-1].phase.value == "running"
    assert await audited(coordinator) == [("declare-dead", "admin", "as the drill says")]


async def test_an_override_flags_possible_overlap_until_the_old_attempt_is_proven_over(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a, b = await join("a"), await join("b")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    old = await a.run(operation)
    outcome = await decide(coordinator, f"operations/{operation}/override")
    assert outcome["possibleOverlap"]
    told = await stage.until(operation, "condition", "retrying")
    assert told[-2].condition is not None
    assert (told[-2].condition.type, told[-2].condition.status) == ("possible-overlap", True)
    await stage.decide([operation], "b", 2)
    new = await b.run(operation, 2)
    shown = await ask(coordinator, "GET", f"operations/{operation}/ownership")
    assert "may still run" in " ".join(shown["text"])
    await a.tell(a.report(old, "finished", "completed"))
    told = await stage.until(operation, "running", "condition")
    assert told[-1].condition is not None
    assert (told[-1].condition.type, told[-1].condition.status) == ("possible-overlap", False)
    # The old result is a record: it moves nothing, and the new attempt's counts.
    assert [event.verdict.value for event in told if event.verdict.value == "superseded"] == ["superseded"]
    await b.tell(b.report(new, "finished", "completed"))
    told = await stage.until(operation, "condition", "completed")
    assert told[-1].environment == "b"
    await decide(coordinator, f"operations/{operation}/override", 409)


@pytest.mark.usefixtures("coordinator")
async def test_what_has_to_give_way_is_stopped_by_its_environment_and_waits_again(stage: Stage, join: Join) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.run(operation)
    for _ in range(2):
        await stage.preempt(operation)
    await wait_until(lambda: stage.ordered("a", "stop"), "the stop is ordered")
    sealed = report_v1.CheckpointRef(epoch=ref[1], manifest="ck/manifest.json")
    await a.tell(a.report(ref, "relinquished", reason="preempted", checkpoint=sealed))
    told = await stage.until(operation, "retrying")
    (stop,) = await stage.ordered("a", "stop")
    assert (stop.reason, stop.force) == ("preempted", False)
    assert [event.reason for event in told if event.reason == "preempted"] == ["preempted"] * 2
    ((freed,), (requeued,)) = (await stage.others(operation, "freed"), await stage.others(operation, "requeued"))
    assert (freed["round"], requeued["round"], requeued["reason"]) == (1, 2, "preempted")
    await stage.decide([operation], "a", 2)
    await a.run(operation, 2)
    assert (await stage.ordered("a", "offer"))[-1].resume_from == "ck/manifest.json"


async def test_what_waits_is_moved_to_another_queue_and_given_another_class_and_what_runs_is_not(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    for queue, classes in (("fast", {"urgent": 90}), ("closed", {})):
        spec = {"priorityClasses": classes, "projects": ["somebody-else"] if queue == "closed" else []}
        await stage.document("queue", queue, spec)
    await wait_until(lambda: not coordinator.core.queues.why_not("fast", "urgent", "any"), "queues are known")
    a = await join("a")
    operation = await stage.accept()
    await stage.wait(operation, reason="quota")
    await stage.until(operation, "queued")
    path = f"operations/{operation}/queue"
    assert "no queue nowhere" in (await decide(coordinator, path, 409, queue="nowhere"))["detail"]
    assert "does not take project" in (await decide(coordinator, path, 409, queue="closed"))["detail"]
    assert "no priority class idle" in (await decide(coordinator, path, 409, queue="fast", priority="idle"))["detail"]
    await decide(coordinator, path, 422)
    await decide(coordinator, path, queue="fast")
    await decide(coordinator, path, priority="urgent")
    await wait_until(lambda: _requeued(stage, operation, 2), "it is judged again twice")
    bodies = [
        msgspec.json.decode(msgspec.json.encode(item), type=event_v1.OperationRequeued)
        for item in await stage.others(operation, "requeued")
    ]
    specs = [msgspec.json.decode(body.effective)["spec"] for body in bodies]
    assert [(body.round, body.reason) for body in bodies] == [(2, "queue-changed"), (3, "priority-changed")]
    assert [(spec.get("queue"), spec.get("priority")) for spec in specs] == [("fast", None), ("fast", "urgent")]
    assert [item[0] for item in await audited(coordinator)] == ["queue-prioritise", "queue-move"]
    await stage.decide([operation], "a", 3)
    await a.run(operation)
    assert "it is in a already" in (await decide(coordinator, path, 409, queue="fast"))["detail"]


async def _requeued(stage: Stage, operation: str, number: int) -> bool:
    return len(await stage.others(operation, "requeued")) == number


async def test_a_move_waits_for_the_environment_then_wants_one_target_by_the_ordinary_rules(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a, b = await join("a"), await join("b")
    await registered(coordinator, stage, "a", "b")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.run(operation)
    await decide(coordinator, f"operations/{operation}/move", 404, environment="nowhere")
    await decide(coordinator, f"operations/{operation}/move", 409, environment="a")
    await decide(coordinator, f"operations/{operation}/move", environment="b")
    await wait_until(lambda: stage.ordered("a", "stop"), "the stop is ordered")
    (stop,) = await stage.ordered("a", "stop")
    assert (stop.reason, stop.force, await stage.others(operation, "requeued")) == ("moved", False, [])
    sealed = report_v1.CheckpointRef(epoch=ref[1], manifest="ck/manifest.json")
    await a.tell(a.report(ref, "relinquished", reason="moved", checkpoint=sealed))
    await stage.until(operation, "retrying")
    (requeued,) = await stage.others(operation, "requeued")
    body = msgspec.json.decode(msgspec.json.encode(requeued), type=event_v1.OperationRequeued)
    wanted = msgspec.json.decode(body.effective)
    assert wanted["spec"]["constraints"] == {"environments": {"allow": ["b"]}}
    await stage.decide([operation], "b", 2)
    await b.run(operation, 2)
    (offer,) = await stage.ordered("b", "offer")
    assert (offer.resume_from, msgspec.json.decode(offer.spec)["spec"].get("constraints")) == ("ck/manifest.json", None)
    assert [action for action, _, _ in await audited(coordinator)] == ["move"]


async def test_what_a_specification_forbids_is_refused_before_anything_is_stopped(
    coordinator: CoordinatorService, stage: Stage, join: Join, dispatch_db: Database
) -> None:
    a = await join("a")
    await registered(coordinator, stage, "b")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    await a.run(operation)
    narrow = b'{"metadata":{"name":"train"},"spec":{"constraints":{"environments":{"allow":["a"]}}}}'
    await dispatch_db.execute("update content set body = $1", narrow)
    refused = await decide(coordinator, f"operations/{operation}/move", 409, environment="b")
    assert "does not allow b" in refused["detail"]
    assert await stage.ordered("a", "stop") == []


async def test_work_that_must_finish_is_not_moved(coordinator: CoordinatorService, stage: Stage, join: Join) -> None:
    a = await join("a")
    await registered(coordinator, stage, "b")
    operation = await stage.accept(disconnection={"policy": "must-finish"})
    await stage.decide([operation], "a")
    await a.run(operation)
    refused = await decide(coordinator, f"operations/{operation}/move", 409, environment="b")
    assert "must-finish" in refused["detail"]


async def test_a_cancel_during_a_cut_is_confirmed_on_return(
    start_coordinator: StartCoordinator, stage: Stage, join: Join, beating: Callable[[str], Awaitable[Any]]
) -> None:
    coordinator = await start_coordinator(**SHORT)
    for name in ("b", "c"):
        await beating(name)
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    renewing = Heartbeat(a)
    ref = await a.run(operation)
    await renewing.stop()
    await stage.until(operation, "running", "condition")
    await stage.cancel(operation)
    await stage.until(operation, "condition", "condition")
    shown = await ask(coordinator, "GET", f"operations/{operation}/ownership")
    assert "unconfirmed" in " ".join(shown["text"])
    again = await back(stage, a)
    await again.show(again.slot(ref, "running", term=a.term))
    await wait_until(lambda: _may_start(again), "it may start", every_s=0.05)
    assert {stop.reason for stop in await stage.ordered("a", "stop")} == {"cancelled"}
    await again.tell(again.report(ref, "finished", "cancelled", reason="cancelled"))
    await stage.until(operation, "cancelled")


# -- quarantine -------------------------------------------------------------------------------------------------------


async def with_stranger(stage: Stage, join: Join) -> tuple[ScriptedEnvironment, Any]:
    a = await join("a")
    again = await back(stage, a)
    ref = (STRANGER, an_epoch(3))
    await again.show(again.slot(ref, "running"))
    await wait_until(lambda: _may_start(again), "it may start", every_s=0.05)
    return again, ref


async def quarantined_of(stage: Stage, environment: str) -> int:
    found = [m for m in await stage.links.messages() if m.subject.endswith(f".link.{environment}")]
    return msgspec.json.decode(found[-1].body, type=event_v1.EnvironmentLink).quarantined


async def test_unknown_work_is_kept_told_and_stopped_only_by_a_person(
    coordinator: CoordinatorService, stage: Stage, join: Join, dispatch_db: Database
) -> None:
    a, ref = await with_stranger(stage, join)
    (entry,) = (await ask(coordinator, "GET", "quarantine"))["items"]
    assert (entry["environment"], entry["operation"], entry["epoch"], entry["state"]) == ("a", STRANGER, "1.3", "open")
    assert await quarantined_of(stage, "a") == 1
    assert await stage.ordered("a", "stop") == []
    await decide(coordinator, f"quarantine/a/{STRANGER}/1.3/adopt", 409)
    await decide(coordinator, f"quarantine/a/{STRANGER}/1.3/stop")
    (stop,) = await stage.ordered("a", "stop")
    assert (stop.operation, stop.reason, stop.force) == (STRANGER, "quarantined", False)

    async def told() -> bool:
        return await quarantined_of(stage, "a") == 0

    await wait_until(told, "nothing is undecided")
    await a.tell(a.report(ref, "relinquished", reason="quarantined"))
    await wait_until(lambda: stage.ordered("a", "settle"), "its slot is settled")
    rows = (await ask(coordinator, "GET", "quarantine", params={"all": "true"}))["items"]
    assert [(row["state"], row["decidedBy"]) for row in rows] == [("stopped", "admin")]
    assert (await ask(coordinator, "GET", "quarantine"))["items"] == []


async def test_an_operation_found_running_is_adopted_not_started_anew(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a, ref = await with_stranger(stage, join)
    await wait_until(lambda: coordinator.core.verdicts.any_quarantined, "the replica knows of it")
    await stage.accept(operation=STRANGER)
    await stage.decide([STRANGER], "a")

    async def known() -> bool:
        return bool((await ask(coordinator, "GET", "quarantine"))["items"][0]["known"])

    await wait_until(known, "the operation is known")
    assert await stage.ordered("a", "offer") == []
    await decide(coordinator, f"quarantine/a/{STRANGER}/1.3/adopt")
    await stage.until(STRANGER, "accepted", "pending", "running")
    await a.tell(a.report(ref, "finished", "completed"))
    told = await stage.until(STRANGER, "running", "completed")
    assert (told[-1].environment, told[-1].epoch) == ("a", an_epoch(3))
    assert [action for action, _, _ in await audited(coordinator)] == ["quarantine-adopted"]
