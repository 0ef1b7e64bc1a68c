"""Charges that no placement holds: ranking asks the coordinator, tells them, and gives back what is surely over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.consume import Consumer
from landbridge.bus.requests import respond
from landbridge.domain.charge_audit import Unowned
from landbridge.domain.ownership.standing import Standing
from landbridge.schema.wire import event_v1, request_v1
from landbridge.store import Database
from landbridge_dispatch.coordinator.service import CoordinatorService
from landbridge_dispatch.coordinator.settings import CoordinatorSettings
from landbridge_embedded.nats import NatsServer
from landbridge_ranking.handlers import RankingHandler
from landbridge_ranking.service import RankingService
from support.coordinator_stage import ScriptedEnvironment, Stage, Tape
from support.deciding_world import World
from support.wait import happens_within, wait_until

Start = Callable[..., Awaitable[Any]]
LOOK_S = 0.3
CHARGES = subjects.environment("charges", "onprem-a")
HELD = "select count(*) from charge where held"
# As a backup of ranking's database would bring it back from before the end.
RESTORE = "update charge set held = true, closed = false, at = at - interval '1 hour' where operation = $1"


@pytest.fixture
async def dsn(migrated_dsn: Callable[..., Awaitable[str]]) -> str:
    return await migrated_dsn("eligibility", "ranking", "coordinator")


@pytest.fixture
async def coordinator(nats_server: NatsServer, bus: Bus, dsn: str) -> AsyncIterator[CoordinatorService]:
    settings = CoordinatorSettings(nats_url=nats_server.url, postgres_dsn=dsn, lease_ttl_seconds=600)
    service = CoordinatorService(settings)
    task = asyncio.create_task(service.run())
    await wait_until(lambda: service.health.started or task.done(), "coordinator has started")
    yield service
    service.stop()
    assert await asyncio.wait_for(task, 30) == 0


@pytest.fixture
async def site(coordinator: CoordinatorService, bus: Bus, world: World) -> ScriptedEnvironment:
    made = await ScriptedEnvironment(Stage(bus), "onprem-a").join()
    await world.environment()  # after it was heard: its scripted dispatcher tells no features
    return made


async def told(bus: Bus) -> list[tuple[str, int, str, bool]]:
    """What is shown of charges in onprem-a by now."""
    found = [message for message in await Tape(bus, streams.ENVIRONMENTS).messages() if message.subject == CHARGES]
    if not found:
        return []
    items = msgspec.json.decode(found[-1].body, type=event_v1.EnvironmentCharges).items
    return [(item.operation, item.round, item.reason, item.released) for item in items]


async def until_held(ledger: Database, number: int) -> None:
    async def reached() -> bool:
        return bool(await ledger.fetchval(HELD) == number)

    await wait_until(reached, f"{number} charges are held", timeout_s=30)


async def looks(ranking: RankingService, number: int = 4) -> None:
    """Wait for so many looks."""
    ended = asyncio.get_running_loop().time() + number * LOOK_S
    await wait_until(lambda: asyncio.get_running_loop().time() > ended, "some looks have been taken")
    assert ranking.admits


async def test_what_an_ended_operation_holds_is_found_told_and_given_back_to_who_waits(
    world: World, start: Start, site: ScriptedEnvironment, ledger: Database, bus: Bus
) -> None:
    await start("eligibility")
    ranking = await start("ranking", audit_every_s=LOOK_S)
    await world.document("queue", "training", concurrency=2)
    done, runs = await world.accept(2)
    await world.until_placed([done, runs])
    ref, _ = await site.run(done), await site.run(runs)
    await site.tell(site.report(ref, "finished", "completed"))
    await site.stage.until(done, "pending", "running", "completed")
    await until_held(ledger, 1)
    await ranking.end()
    await ledger.execute(RESTORE, UUID(done))
    await start("ranking", audit_every_s=LOOK_S)
    [waits] = await world.accept()

    await world.until_placed([waits])
    assert await ledger.fetchval(HELD) == 2
    assert await ledger.fetchval("select held from charge where operation = $1", UUID(runs))
    assert await told(bus) == [(done, 1, "ended", True)]
    [late] = await world.accept()
    await world.until_waiting([late], "concurrency")
    await world.end([done])  # late, and once more: it changes nothing any more
    assert not await happens_within(2 * LOOK_S, lambda: late in world.placed())
    assert await ledger.fetchval(HELD) == 2


async def test_what_a_round_that_is_over_holds_is_given_back_and_the_later_round_keeps_its_own(
    world: World, start: Start, site: ScriptedEnvironment, ledger: Database, bus: Bus
) -> None:
    await start("eligibility")
    ranking = await start("ranking", audit_every_s=LOOK_S)
    await world.document("queue", "training", concurrency=1)
    [operation] = await world.accept()
    await world.until_placed([operation])
    ref = await site.take(operation)
    await ranking.end()
    await world.control(paused=True)  # what comes back does not go out again at once
    await site.tell(site.report(ref, "relinquished", reason="not-here"))
    await site.stage.until(operation, "pending", "queued")
    # The event that frees it is set aside before ranking reads it.
    await ledger.execute("update charge set at = at - interval '1 hour' where operation = $1", UUID(operation))
    await skip_what_was_said(bus)
    await start("ranking", audit_every_s=LOOK_S)

    await until_held(ledger, 0)
    assert await told(bus) == [(operation, 1, "over", True)]
    await world.control(paused=False)
    await world.until_placed([operation])
    assert not await ledger.fetchval("select closed from charge where operation = $1", UUID(operation))


async def skip_what_was_said(bus: Bus) -> None:
    """Take from ranking's durable what it would free by."""
    consumer = Consumer(bus, streams.OPERATIONS, "ranking")
    batch = await consumer.take(5)
    await consumer.ack([message for message in batch if subjects.token(message.subject, 3) == "freed"])
    await consumer.nak([message for message in batch if subjects.token(message.subject, 3) != "freed"])
    await consumer.stop()


async def test_what_may_still_be_placed_is_told_and_kept(
    world: World, start: Start, site: ScriptedEnvironment, ledger: Database, bus: Bus, dsn: str
) -> None:
    await start("eligibility")
    await world.document("queue", "training", concurrency=1)
    ranking = await start("ranking", audit_every_s=LOOK_S)
    [operation] = await world.accept()
    await world.until_placed([operation])
    await site.stage.until(operation, "pending")
    # The coordinator's database is older than the decision.
    centre = await Database.open(dsn, "dispatch")
    await centre.execute("update operation set placement = 'idle', active = false, phase = 'queued', timer = ''")
    await looks(ranking)
    assert await told(bus) == []  # it may be on its way
    await ranking.end()
    await ledger.execute("update charge set at = at - interval '1 hour'")
    await start("ranking", audit_every_s=LOOK_S)

    await wait_until(lambda: told(bus), "it is told")
    assert await told(bus) == [(operation, 1, "undecided", False)]
    assert await ledger.fetchval(HELD) == 1
    await centre.execute("update operation set placement = 'offered', active = true, phase = 'pending'")
    await centre.close()

    async def gone() -> bool:
        return not await told(bus)

    await wait_until(gone, "it is told no more")
    assert await ledger.fetchval(HELD) == 1


@pytest.mark.parametrize("answer", ["none", "recovering", "a-word-of-tomorrow", "garbage"])
async def test_without_a_clear_word_nothing_is_given_back(
    world: World, start: Start, ledger: Database, bus: Bus, answer: str
) -> None:
    asked = 0

    async def reply(_: str, body: bytes) -> bytes:
        nonlocal asked
        asked += 1
        items = msgspec.json.decode(body, type=request_v1.StandingRequest).items
        standing = tuple(request_v1.Standing(operation=i.operation, round=i.round, state=answer) for i in items)
        if answer == "garbage":
            return b"{"
        return msgspec.json.encode(request_v1.StandingReply(recovering=answer == "recovering", items=standing))

    if answer != "none":
        await respond(bus, subjects.ask("coordinator", "standing"), reply)
    await start("eligibility")
    await world.document("queue", "training", concurrency=1)
    await world.environment()
    ranking = await start("ranking", audit_every_s=LOOK_S)
    [operation] = await world.accept()
    await world.until_placed([operation])
    await ranking.end()
    await ledger.execute("update charge set at = at - interval '1 hour'")
    again = await start("ranking", audit_every_s=LOOK_S)
    await wait_until(lambda: again.admits, "ranking is elected")
    await (looks(again) if answer == "none" else wait_until(lambda: asked >= 3, "three looks were taken"))
    assert await ledger.fetchval(HELD) == 1
    assert await told(bus) == []
    [other] = await world.accept()
    await world.until_waiting([other], "concurrency")
    await world.end([operation])
    await world.until_placed([other])


async def test_what_was_charged_anew_since_the_question_is_kept(
    world: World, deciders: tuple[Any, RankingService], ledger: Database
) -> None:
    ranking = deciders[1]
    await world.document("queue", "training", concurrency=1)
    await world.environment()
    [operation] = await world.accept()
    await world.until_placed([operation])
    [charge] = ranking.desk.admission.ledger.charges()
    await world.requeue(operation, 2, free_from="onprem-a")
    await wait_until(lambda: len(world.decided()) == 2, "it is placed once more")

    handler: RankingHandler = ranking.handler
    stale = [Unowned(charge, Standing.OVER)]

    async def late(tx: Any) -> Any:
        events, still = await handler.give_back(tx, stale)
        assert still == []
        return events

    await ranking.outbox.commit(late)
    assert await ledger.fetchval("select round from charge where held") == 2


async def test_a_replica_that_stands_by_asks_nothing(world: World, start: Start, bus: Bus) -> None:
    asked = 0

    async def reply(_: str, body: bytes) -> bytes:
        nonlocal asked
        asked += 1
        return msgspec.json.encode(request_v1.StandingReply())

    await respond(bus, subjects.ask("coordinator", "standing"), reply)
    await start("eligibility")
    await world.document("queue", "training")
    await world.environment()
    first = await start("ranking", audit_every_s=timedelta(days=1).total_seconds())
    await wait_until(lambda: first.admits, "ranking is elected")
    other = await start("ranking", audit_every_s=LOOK_S)
    await world.until_placed(await world.accept())
    assert not await happens_within(6 * LOOK_S, lambda: asked > 0 or other.admits)
