"""Cancels, lost environments and what is found when they come back."""

import asyncio
from datetime import UTC, datetime, timedelta

import httpx2

from landbridge.domain import claims
from landbridge.schema.wire import event_v1, report_v1
from landbridge.store import Database
from landbridge_dispatch.coordinator.service import CoordinatorService
from support.coordinator_stage import ScriptedEnvironment, Stage, an_epoch
from support.wait import wait_until

from .conftest import ADMIN, Join, StartCoordinator

# -- cancel -----------------------------------------------------------------------------------------------------------


async def test_a_cancel_before_the_claim_ends_it_and_the_claim_is_refused(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.offered(operation)
    await stage.cancel(operation)
    await stage.until(operation, "pending", "cancelled")
    reply = await a.claim(ref)

    assert [refusal.reason for refusal in reply.refused] == ["ended"]
    assert [item.operation for item in await stage.ordered("a", "withdraw")] == [operation]


async def test_a_cancel_of_running_work_ends_when_the_environment_proves_the_stop(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.run(operation)
    await stage.cancel(operation)
    told = await stage.until(operation, "running", "condition")
    assert told[-1].condition is not None
    assert told[-1].condition.type == "cancelling"
    (stop,) = await stage.ordered("a", "stop")
    assert (stop.operation, stop.epoch, stop.reason) == (*ref, "cancelled")
    await a.tell(a.report(ref, "finished", "cancelled", reason="cancelled"))

    await stage.until(operation, "condition", "cancelled")


async def test_whichever_end_is_reported_first_wins_against_a_cancel(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    operations = [await stage.accept() for _ in range(30)]
    await stage.decide(operations, "a")
    refs = [await a.offered(operation) for operation in operations]
    await a.claim(*refs)
    await a.tell(*(a.report(ref, "started") for ref in refs))
    finishing = a.tell(*(a.report(ref, "finished", "completed") for ref in refs))
    await asyncio.gather(finishing, *(stage.cancel(operation) for operation in operations))
    for operation in operations:
        told = await stage.until(operation, "completed")
        terminal = [event.phase.value for event in told if event.phase.value in {"completed", "cancelled", "failed"}]
        assert terminal == ["completed"]
        assert [event.op_seq for event in told] == list(range(2, len(told) + 2))


async def test_a_cancel_in_another_projects_name_changes_nothing(coordinator: CoordinatorService, stage: Stage) -> None:
    operation = await stage.accept()
    await stage.cancel(operation, project="other")

    async def buried() -> bool:
        return bool(await coordinator.database.fetchval("select count(*) from dead_letter"))

    await wait_until(buried, "the cancel is dead-lettered")
    assert await stage.told(operation) == []


# -- loss and return --------------------------------------------------------------------------------------------------

SHORT = {"lease_ttl_seconds": 2.0, "lease_renewal_seconds": 5.0, "offer_seconds": 30.0}


class Heartbeat:
    """Renews an environment's lease until told not to."""

    def __init__(self, environment: ScriptedEnvironment) -> None:
        self._task = asyncio.create_task(self._beat(environment))

    async def _beat(self, environment: ScriptedEnvironment) -> None:
        while True:
            await environment.lease("renew")
            await asyncio.sleep(0.3)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def _measured_self_stop(stage: Stage, coordinator: CoordinatorService, environment: str) -> None:
    now = datetime.now(UTC)
    proof = report_v1.Evidence(
        claim=claims.SELF_STOP,
        result=report_v1.EvidenceResult.PROVEN,
        at=now,
        expires=now + timedelta(hours=1),
    )
    await stage.environment_says(
        "evidence", event_v1.EnvironmentEvidence(environment=environment, at=now, items=(proof,))
    )
    await wait_until(
        lambda: coordinator.core.verdicts.self_stop_verified(environment, datetime.now(UTC)), "self-stop is known"
    )


async def test_a_lost_environment_keeps_its_work_unless_time_may_free_it(
    start_coordinator: StartCoordinator, stage: Stage, join: Join
) -> None:
    coordinator = await start_coordinator(**SHORT)
    a, b, c = await join("a"), await join("b"), await join("c")
    beats = [Heartbeat(b), Heartbeat(c)]
    await _measured_self_stop(stage, coordinator, "a")
    stays = await stage.accept()
    moves = await stage.accept(disconnection={"policy": "stop-after-grace", "grace": "100ms"})
    offered = await stage.accept()
    await stage.decide([stays, moves], "a")
    lost_ref, moved_ref = await a.run(stays), await a.run(moves)
    await stage.decide([offered], "a")
    await a.offered(offered)

    await wait_until(lambda: _link_is(stage, "a", "lost"), "the link is told as lost")
    await wait_until(lambda: stage.others(offered, "requeued"), "the offer is taken back at once")
    told = await stage.until(stays, "running", "condition")
    assert told[-1].condition is not None
    assert (told[-1].condition.type, told[-1].condition.status) == ("control-lost", True)
    await stage.until(moves, "condition", "retrying")
    assert (await stage.others(moves, "requeued"))[-1]["failedOver"] is True

    await stage.decide([moves], "b", 2)
    second = await b.run(moves, 2)
    reborn = ScriptedEnvironment(stage, "a")
    reborn.term, reborn.n = a.term, a.n
    await reborn.lease("hello")
    assert reborn.term > a.term
    await reborn.tell(reborn.report(moved_ref, "finished", "completed", term=a.term))
    await reborn.show(reborn.slot(lost_ref, "running", term=a.term), reborn.slot(moved_ref, "finished"))
    told = await stage.until(stays, "condition", "condition")
    assert told[-1].condition is not None
    assert not told[-1].condition.status
    await b.tell(b.report(second, "finished", "completed"))
    await reborn.tell(reborn.report(lost_ref, "finished", "completed"))
    await stage.until(moves, "completed")
    await stage.until(stays, "completed")
    for beat in beats:
        await beat.stop()

    verdicts = [event.verdict.value for event in await stage.told(moves)]
    assert verdicts.count("superseded") >= 1
    assert [e.phase.value for e in await stage.told(moves)].count("completed") == 1


async def _link_is(stage: Stage, environment: str, state: str) -> bool:
    return await stage.link(environment) == state


async def test_nothing_expires_while_most_environments_are_silent_together(
    start_coordinator: StartCoordinator, stage: Stage, join: Join
) -> None:
    coordinator = await start_coordinator(**SHORT)
    a, _ = await join("a"), await join("b")
    await _measured_self_stop(stage, coordinator, "a")
    operation = await stage.accept(disconnection={"policy": "stop-after-grace", "grace": "1ms"})
    await stage.decide([operation], "a")
    await a.run(operation)
    await stage.until(operation, "running", "condition")

    async def held() -> bool:
        return bool(await coordinator.database.fetchval("select held_since is not null from centre"))

    await wait_until(held, "the centre suspects itself")
    # Long enough for the expiry rule, were it not for the doubt: (2 + 5.001) * 1.02 + 2 s after the last grant.
    silent = asyncio.get_running_loop().time() + 10.0
    await wait_until(lambda: asyncio.get_running_loop().time() > silent, "the wait is over", timeout_s=30)
    assert "retrying" not in await stage.phases(operation)
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{coordinator.port}") as http:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        answer = await http.post("/v1/expiry/lift", json={"reason": "the site is down, I looked"}, headers=headers)
        assert answer.status_code == 200, answer.text
    await stage.until(operation, "condition", "retrying")


async def test_an_environment_may_start_only_after_its_inventory_was_compared(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.offered(operation)
    again = ScriptedEnvironment(stage, "a")
    again.term, again.n = a.term, a.n
    hello = await again.lease("hello")
    early = await again.claim(ref)
    renewed = await again.lease("renew")
    await again.show(part=1, parts=2)
    half = await again.lease("renew")
    await again.show(part=2, parts=2)
    await wait_until(lambda: _may_start(again), "it may start", every_s=0.05)
    late = await again.claim(ref)
    old = await a.lease("renew")

    assert (hello.may_start, hello.want_inventory) == (False, True)
    assert (renewed.may_start, half.may_start) == (False, False)
    assert [refusal.reason for refusal in early.refused] == ["reconciling"]
    assert [item.operation for item in late.granted] == [operation]
    assert old.refused == "displaced"


async def _may_start(environment: ScriptedEnvironment) -> bool:
    return (await environment.lease("renew")).may_start


async def test_reconciliation_adopts_stops_settles_and_quarantines(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    runs, finished, gone = [await stage.accept() for _ in range(3)]
    await stage.decide([runs, finished, gone], "a")
    refs = [await a.run(operation) for operation in (runs, finished)]
    gone_ref = await a.take(gone)
    stranger = ("0190a1b2-0000-7000-8000-00000000dead", an_epoch(1))
    again = ScriptedEnvironment(stage, "a")
    again.term, again.n = a.term, a.n
    await again.lease("hello")
    end = again.report(refs[1], "finished", "completed", term=a.term)
    await again.show(
        again.slot(refs[0], "running"), again.slot(refs[1], "finished", end), again.slot(stranger, "running")
    )
    await stage.until(finished, "completed")
    await wait_until(lambda: _may_start(again), "it may start", every_s=0.05)
    # What is missing is not freed before the environment has occupied its slot and says so.
    stops = await wait_until(lambda: stage.ordered("a", "stop"), "its slot is to be occupied")
    assert [(stop.operation, stop.reason) for stop in stops] == [(gone, "missing")]
    await again.tell(again.report(gone_ref, "relinquished", reason="not-here"))
    await stage.until(gone, "pending", "queued")

    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{coordinator.port}") as http:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        answer = await http.get("/v1/environments/a/reconciliation", headers=headers)
    outcome = answer.json()
    assert (outcome["adopted"], outcome["missing"]) == (1, [gone])
    assert [item["operation"] for item in outcome["quarantined"]] == [stranger[0]]


async def test_what_a_return_has_shown_stays_readable_after_the_next_ones(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.run(operation)
    for number in range(25):
        again = ScriptedEnvironment(stage, "a")
        again.term, again.n = a.term, a.n
        await again.lease("hello")
        await again.show(*([again.slot(ref, "running")] if number == 10 else []))
        await wait_until(lambda again=again: _may_start(again), "it may start", every_s=0.05)  # type: ignore[misc]
        a = again

    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{coordinator.port}") as http:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        told = (await http.get("/v1/environments/a/reconciliation", headers=headers)).json()
    compared = [told, *told["earlier"]]
    assert len(compared) == 20
    assert [found["term"] for found in compared] == sorted((found["term"] for found in compared), reverse=True)
    assert [(found["slots"], found["adopted"]) for found in compared if found["slots"]] == [(1, 1)]


async def test_work_of_a_restored_environment_that_runs_on_by_itself_waits_for_a_person(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    await a.run(operation)
    for _ in range(3):
        await a.lease("renew")
    restored = ScriptedEnvironment(stage, "a")
    restored.term, restored.n = a.term, max(a.n - 3, 0)
    await restored.join()
    told = await stage.until(operation, "running", "condition")
    assert told[-1].reason == "record-lost"
    assert await stage.ordered("a", "stop") == []
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{coordinator.port}") as http:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        answer = await http.post(
            "/v1/environments/a/declare-dead", json={"reason": "rebuilt from backup"}, headers=headers
        )
    assert (answer.json()["operations"], answer.json()["dryRun"]) == (1, False)
    await stage.until(operation, "condition", "retrying")


async def test_a_restored_centre_places_nothing_before_all_environments_have_shown_what_they_hold(
    start_coordinator: StartCoordinator, stage: Stage, join: Join, dispatch_db: Database
) -> None:
    first = await start_coordinator()
    a, b = await join("a"), await join("b")
    running, waiting = await stage.accept(), await stage.accept()
    await stage.decide([running], "a")
    ref = await a.run(running)
    await first.stop_it()  # type: ignore[attr-defined]
    # The restored backup is older than the placement.
    await dispatch_db.fetchval(
        """update operation set phase = 'accepted', op_seq = 1, epoch_generation = 0, epoch_counter = 0,
           environment = '', placement = 'idle', active = false, grant_term = 0, attempts = 0 where id = $1::uuid
           returning 1""",
        running,
    )
    second = await start_coordinator(begin_generation=2)
    await stage.decide([waiting], "b")
    homes = {}
    for name, old, slots in (("a", a, ("running",)), ("b", b, ())):
        homes[name] = ScriptedEnvironment(stage, name)
        homes[name].term, homes[name].n = old.term, old.n
        await homes[name].lease("hello")
        if name == "a":
            await homes[name].show(*(homes[name].slot(ref, state) for state in slots))
            assert second.core.recovering
    assert await stage.ordered("b", "offer") == []
    await homes["b"].show()
    await wait_until(lambda: not second.core.recovering, "recovery is done")
    await stage.until(running, "pending", "running")
    await homes["a"].tell(homes["a"].report(ref, "finished", "completed"))
    await stage.until(running, "completed")
    await wait_until(lambda: stage.others(waiting, "requeued"), "the other is placed anew")
    await stage.decide([waiting], "b", 2)
    await wait_until(lambda: stage.ordered("b", "offer"), "it is offered")
    (offer,) = await stage.ordered("b", "offer")

    assert homes["a"].term > 1_000_000
    assert offer.epoch.generation == 2
