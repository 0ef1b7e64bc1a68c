"""Recovery over HTTP: what is found wrong, a generation begun by command, a log published again."""

import uuid

from landbridge.schema.wire import event_v1
from landbridge.store import Database
from landbridge_dispatch.coordinator.service import CoordinatorService
from support.coordinator_stage import ScriptedEnvironment, Stage
from support.wait import wait_until

from .conftest import Join
from .test_operators import ask, audited, back


async def test_a_restored_database_is_noticed_and_a_generation_begun_by_command(
    coordinator: CoordinatorService, stage: Stage, join: Join, dispatch_db: Database
) -> None:
    a, gone = await join("a"), await join("gone")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.run(operation)
    assert (await ask(coordinator, "GET", "recovery"))["findings"] == []
    # The environment holds a term of generation 3, which this database has never granted.
    a.term, a.n = 2_000_005, 3
    ahead = ScriptedEnvironment(stage, "a")
    ahead.term, ahead.n = a.term, a.n
    assert (await ahead.lease("hello")).refused == "centre-behind"
    found = await ask(coordinator, "GET", "recovery")
    assert [(item["code"], item["step"]) for item in found["findings"]] == [("centre-restored", "generation")]
    assert found["nextGeneration"] == 4
    body = {"reason": "restored last night's backup"}
    preview = await ask(coordinator, "POST", "recovery/generation", params={"dryRun": "true"}, json=body)
    assert (preview["generation"], preview["operations"], coordinator.core.generation) == (4, 1, 1)
    await ask(coordinator, "POST", "recovery/generation", json=body)
    assert (coordinator.core.generation, coordinator.core.recovering) == (4, True)
    await ask(coordinator, "POST", "recovery/generation", 409, json={**body, "generation": 4})

    home = await back(stage, a)
    await home.show(home.slot(ref, "running"))
    found = await ask(coordinator, "GET", "recovery")
    assert [item["code"] for item in found["findings"]] == ["recovering"]
    assert "gone" in found["waiting"]
    await ask(coordinator, "POST", "environments/gone/declare-dead", json={"reason": "sold"})
    await wait_until(lambda: not coordinator.core.recovering, "recovery does not wait for what is dead")
    await home.tell(home.report(ref, "finished", "completed"))
    await stage.until(operation, "running", "completed")
    assert [action for action, _, _ in await audited(coordinator)] == ["declare-dead", "begin-generation"]
    assert gone.term < home.term


async def test_a_log_published_again_has_the_same_ids_and_only_the_last_word_of_states(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.run(operation)
    await a.tell(a.report(ref, "finished", "completed"))
    told = await stage.until(operation, "running", "completed")
    before = await coordinator.database.fetchval("select count(*) from event_log")
    links = len(await stage.links.messages())
    shown = await ask(coordinator, "POST", "recovery/republish/coordinator", params={"dryRun": "true"})
    assert shown["events"] == {"operation": len(told), "environment": 1, "command": 1}
    again = await ask(coordinator, "POST", "recovery/republish/coordinator")
    assert again["events"] == shown["events"]
    # The tape holds each id once: nothing new was said.
    assert await stage.told(operation) == told
    assert len(await stage.links.messages()) == links
    assert await stage.link("a") == event_v1.LinkState.CONNECTED.value
    assert await coordinator.database.fetchval("select count(*) from event_log") == before
    await ask(coordinator, "GET", f"operations/{uuid.uuid4()}/ownership", 404)
