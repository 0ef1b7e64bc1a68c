"""Two coordinators and a generation: whoever hears of it late decides nothing by the earlier one."""

import asyncio
from collections.abc import Sequence

import pytest

from landbridge.bus.envelope import Inbound, Outbound
from landbridge.domain.ownership.centre_model import PlacementState
from landbridge.store import Database, Tx
from landbridge_dispatch.coordinator import rows, stream_watch
from landbridge_dispatch.coordinator.core import Core
from landbridge_dispatch.coordinator.generations import InGeneration
from landbridge_dispatch.coordinator.recovery import begin_generation
from landbridge_dispatch.coordinator.service import CoordinatorService
from support.coordinator_stage import ScriptedEnvironment, Stage
from support.wait import wait_until

from .conftest import StartCoordinator
from .test_operators import ask, back

_AT_ONCE_S = 0.5
_ROUNDS = 6
_WAITING = """
select count(*) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and query like '%from centre for update%'
"""


@pytest.fixture
async def two(start_coordinator: StartCoordinator) -> list[CoordinatorService]:
    return [await start_coordinator(), await start_coordinator()]


def _forget(core: Core) -> None:
    """Make a replica that has not heard of anything since it was started."""
    core.generation, core.recovering = 1, False


async def test_a_generation_waits_for_what_another_replica_has_begun(two: list[CoordinatorService]) -> None:
    one, other = (service.core for service in two)
    async with other.database.transaction() as tx:
        await other.stand(tx)
        beginning = asyncio.create_task(begin_generation(one, 2))
        done, _ = await asyncio.wait([beginning], timeout=_AT_ONCE_S)
        assert not done
        assert await tx.fetchval("select generation from centre") == 1
    assert await asyncio.wait_for(beginning, 10)


async def test_what_begins_behind_a_generation_decides_in_it(two: list[CoordinatorService]) -> None:
    one, other = (service.core for service in two)
    seen: list[tuple[int, bool]] = []

    async def handle(tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        assert (await tx.fetchval("select generation from centre"), list(batch)) == (7, [])
        seen.append((other.generation, other.recovering))
        return ()

    async def decide() -> None:
        async with other.database.transaction() as tx:
            await InGeneration(other, handle)(tx, ())

    async with one.database.transaction() as tx:
        await one.stand(tx, alone=True)
        _forget(other)
        deciding = asyncio.create_task(decide())
        done, _ = await asyncio.wait([deciding], timeout=_AT_ONCE_S)
        assert not done
        await tx.execute("update centre set generation = 7, recovering = true")
    await asyncio.wait_for(deciding, 10)
    assert seen == [(7, True)]


async def test_of_two_that_begin_at_once_one_begins(two: list[CoordinatorService], dispatch_db: Database) -> None:
    begun = await asyncio.gather(*(begin_generation(service.core, 2) for service in two))
    assert sorted(begun) == [False, True]
    assert await dispatch_db.fetchval("select generation from centre") == 2
    assert [service.core.generation for service in two] == [2, 2]


async def test_a_recovery_does_not_end_before_it_sees_what_another_replica_begins_for_it(
    two: list[CoordinatorService], stage: Stage, dispatch_db: Database
) -> None:
    one, other = (service.core for service in two)
    site = await ScriptedEnvironment(stage, "a").join()
    assert await begin_generation(one, 2)

    async def it_waits() -> bool:
        return bool(await dispatch_db.fetchval(_WAITING))

    async with other.database.transaction() as tx:
        await other.stand(tx)
        assert await other.recovers(tx)
        # Its operation would be read by nobody, and wait for the end of a recovery that is over.
        showing = asyncio.create_task((await back(stage, site)).show())
        await wait_until(it_waits, "the end of the recovery waits", timeout_s=20)
        assert await tx.fetchval("select recovering from centre")
    await asyncio.wait_for(showing, 20)

    async def over() -> bool:
        async with other.database.transaction() as tx:
            await other.stand(tx)
            return not await other.recovers(tx)

    await wait_until(over, "the recovery has ended", timeout_s=20)


async def test_recovery_beside_another_replica_adopts_what_runs_and_places_nothing_twice(
    two: list[CoordinatorService], stage: Stage, dispatch_db: Database
) -> None:
    """Again and again: whichever replica hears hello, inventory and a new operation, all are of the new generation."""
    site = await ScriptedEnvironment(stage, "a").join()
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await site.run(operation)
    for round_ in range(_ROUNDS):
        generation = round_ + 2
        begun = await ask(two[round_ % 2], "POST", "recovery/generation", json={"reason": "drill"})
        assert begun["generation"] == generation
        fresh = [await stage.accept() for _ in range(3)]
        site = await back(stage, site)
        await site.show(site.slot(ref, "running"))

        async def recovered() -> bool:
            return not await dispatch_db.fetchval("select recovering from centre")

        await wait_until(recovered, f"generation {generation} has recovered", timeout_s=20)
        row = await dispatch_db.fetchrow("select placement, environment from operation where id = $1::uuid", operation)
        assert row is not None
        assert (row["placement"], row["environment"]) == (PlacementState.RUNNING, "a")

        async def all_new(fresh: list[str] = fresh, generation: int = generation) -> bool:
            async with dispatch_db.transaction() as tx:
                states = [row.state for row in (await rows.load(tx, fresh)).values()]
            return [(state.generation, state.placement) for state in states] == [
                (generation, PlacementState.IDLE)
            ] * len(fresh)

        await wait_until(all_new, f"new operations are of generation {generation}", timeout_s=20)
    assert [offer.operation for offer in await stage.ordered("a", "offer")] == [operation]


async def test_the_stream_is_compared_without_waiting_for_whoever_writes_the_centres_row(
    coordinator: CoordinatorService, dispatch_db: Database
) -> None:
    await stream_watch.look(coordinator)
    async with dispatch_db.transaction() as tx:
        await tx.fetchrow("select generation from centre for update")
        await asyncio.wait_for(stream_watch.look(coordinator), 10)


async def test_a_stream_that_goes_back_is_noticed_until_its_messages_are_published_again(
    coordinator: CoordinatorService, stage: Stage, dispatch_db: Database
) -> None:
    site = await ScriptedEnvironment(stage, "a").join()
    operation = await stage.accept()
    await stage.decide([operation], "a")
    await site.run(operation)
    assert (await ask(coordinator, "GET", "recovery"))["findings"] == []
    # As if the broker had held more before it came back.
    await dispatch_db.execute("update centre set stream_last = stream_last + 1000")
    found = await ask(coordinator, "GET", "recovery")
    assert [(item["code"], item["step"]) for item in found["findings"]] == [("stream-lost", "republish")]
    await stage.accept("later")
    assert [item["code"] for item in (await ask(coordinator, "GET", "recovery"))["findings"]] == ["stream-lost"]

    await ask(coordinator, "POST", "recovery/republish/coordinator")
    assert (await ask(coordinator, "GET", "recovery"))["findings"] == []
    assert (await site.lease("renew")).refused == "say-hello"  # so that it repeats what was lost on its way here
