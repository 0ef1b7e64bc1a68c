"""Unknown work on the coordinator's own stores: what waits for a decision goes on once none is needed any more."""

import asyncio
from uuid import UUID

from landbridge.store import Database
from landbridge_dispatch.coordinator import quarantine
from landbridge_dispatch.coordinator.service import CoordinatorService
from support.coordinator_stage import ScriptedEnvironment, Stage, an_epoch
from support.wait import wait_until

from .conftest import Join
from .test_operators import STRANGER, ask, decide

REF = (STRANGER, an_epoch(3))


def _back(stage: Stage, old: ScriptedEnvironment) -> ScriptedEnvironment:
    again = ScriptedEnvironment(stage, old.name)
    again.term, again.n = old.term, old.n
    return again


async def _shows(
    coordinator: CoordinatorService, stage: Stage, join: Join, db: Database, state: str
) -> ScriptedEnvironment:
    """An environment shows a slot of an operation that then is submitted, and is held."""
    a = _back(stage, await join("a"))
    end = a.report(REF, "finished", "completed") if state == "finished" else None
    await a.join(a.slot(REF, state, end))
    await wait_until(lambda: coordinator.core.verdicts.any_quarantined, "the replica knows of it")
    await stage.accept(operation=STRANGER)
    await stage.decide([STRANGER], "a")
    await wait_until(lambda: db.fetchval("select true from operation where id = $1", UUID(STRANGER)), "it has begun")
    return a


async def test_an_operation_goes_on_with_what_is_known_of_a_slot_that_had_ended_and_is_gone(
    coordinator: CoordinatorService, stage: Stage, join: Join, dispatch_db: Database
) -> None:
    a = await _shows(coordinator, stage, join, dispatch_db, "finished")
    await _back(stage, a).join()

    told = await stage.until(STRANGER, "pending", "running", "completed")
    assert (told[-1].environment, told[-1].epoch) == ("a", an_epoch(3))
    assert await stage.ordered("a", "offer") == []
    assert (await ask(coordinator, "GET", "quarantine"))["items"] == []


async def test_a_slot_is_not_settled_while_an_operation_is_being_held_for_it(
    coordinator: CoordinatorService, stage: Stage, join: Join, dispatch_db: Database
) -> None:
    a = await _shows(coordinator, stage, join, dispatch_db, "finished")
    again = _back(stage, a)
    async with dispatch_db.transaction() as tx:
        assert await quarantine.undecided(tx, [STRANGER]) == {STRANGER}
        joining = asyncio.create_task(again.join())
        await asyncio.sleep(0.5)
        (entry,) = (await ask(coordinator, "GET", "quarantine"))["items"]
        assert entry["state"] == "open"  # else nobody would tell the operation that it may go on
    await joining
    await stage.until(STRANGER, "pending", "running", "completed")


async def test_a_slot_whose_record_is_lost_before_it_ended_still_waits_for_a_person(
    coordinator: CoordinatorService, stage: Stage, join: Join, dispatch_db: Database
) -> None:
    a = await _shows(coordinator, stage, join, dispatch_db, "running")
    again = await _back(stage, a).join()

    (entry,) = (await ask(coordinator, "GET", "quarantine"))["items"]
    assert (entry["state"], entry["slot"]) == ("open", "running")

    await decide(coordinator, f"quarantine/a/{STRANGER}/1.3/stop")
    # It has seen a later epoch of it, so that nothing of this one is there, nor will be: proof enough.
    await again.tell(again.report(REF, "refused", reason="stale-epoch"))

    async def stopped() -> bool:
        return not (await ask(coordinator, "GET", "quarantine"))["items"]

    await wait_until(stopped, "its stop is proven")
    await wait_until(lambda: stage.others(STRANGER, "requeued"), "it is judged again")
