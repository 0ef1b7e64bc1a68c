"""Things that happen at the same moment, late, twice or by a wrong clock: each operation still has one history."""

import asyncio
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from landbridge.bus import subjects
from landbridge.schema.wire import event_v1
from landbridge_dispatch.coordinator.service import CoordinatorService
from support.coordinator_stage import Ref, Stage, an_epoch
from support.wait import wait_until

from .conftest import Join, StartCoordinator
from .test_loss import SHORT, Heartbeat, _link_is

ENDS = frozenset({"completed", "failed", "cancelled"})


def gapless(told: Iterable[event_v1.OperationChanged]) -> bool:
    numbers = [event.op_seq for event in told]
    return numbers == list(range(2, len(numbers) + 2))


def ends(told: Iterable[event_v1.OperationChanged]) -> list[str]:
    return [event.phase.value for event in told if event.condition is None and event.phase.value in ENDS]


async def until_ended(stage: Stage, operations: Iterable[str]) -> None:
    for operation in operations:

        async def ended(operation: str = operation) -> bool:
            return bool(ends(await stage.told(operation)))

        await wait_until(ended, f"{operation} has ended", timeout_s=60)


async def test_cancels_that_race_with_claims_end_once_and_stop_whatever_was_granted(
    start_coordinator: StartCoordinator, stage: Stage, join: Join
) -> None:
    """Two coordinators, 100 operations; each is cancelled within 50 ms around its claim."""
    await start_coordinator()
    await start_coordinator()
    a = await join("a")
    operations = [await stage.accept() for _ in range(100)]
    await stage.decide(operations, "a")
    refs = [await a.offered(operation) for operation in operations]
    order = random.Random(13)
    granted: set[str] = set()

    async def claim(some: list[Ref]) -> None:
        await asyncio.sleep(order.random() * 0.05)
        granted.update(item.operation for item in (await a.claim(*some)).granted)

    async def cancel(operation: str) -> None:
        await asyncio.sleep(order.random() * 0.05)
        await stage.cancel(operation)

    order.shuffle(refs)
    claims = [claim(refs[at : at + 5]) for at in range(0, len(refs), 5)]
    await asyncio.gather(*claims, *(cancel(operation) for operation in operations))

    async def answered() -> bool:
        """Every cancel has either ended its operation or ordered the stop of what was granted."""
        stops = {item.operation for item in await stage.ordered("a", "stop")}
        return stops == granted and all([ends(await stage.told(o)) for o in operations if o not in granted])

    await wait_until(answered, "every cancel is carried out", timeout_s=60)
    late = await a.claim(*refs)
    # What was granted before its cancel may only be given back: the answer to a repeated claim is no by now.
    assert late.granted == ()
    mine = [ref for ref in refs if ref[0] in granted]
    await a.tell(*(a.report(ref, "started") for ref in mine[::2]))
    await a.tell(*(a.report(ref, "finished", "cancelled", reason="cancelled") for ref in mine[::2]))
    await a.tell(*(a.report(ref, "relinquished", reason="stopped") for ref in mine[1::2]))
    await until_ended(stage, operations)
    for operation in operations:
        told = await stage.told(operation)
        assert ends(told) == ["cancelled"]
        assert gapless(told)
        if operation not in granted:
            assert "running" not in [event.phase.value for event in told]


async def test_one_round_that_is_decided_many_times_over_is_one_placement(
    start_coordinator: StartCoordinator, stage: Stage, join: Join
) -> None:
    """Whoever decides (a second ranker, a stale one, a repeated event): the row lets one epoch exist."""
    await start_coordinator()
    await start_coordinator()
    names = [f"site-{number}" for number in range(8)]
    for name in names:
        await join(name)
    operations = [await stage.accept() for _ in range(25)]
    await asyncio.gather(*(stage.decide([operation], name) for operation in operations for name in names))
    marker = await stage.accept()
    await stage.decide([marker], names[0])
    await stage.until(marker, "pending")

    async def all_pending() -> bool:
        return all([await stage.phases(operation) for operation in operations])

    await wait_until(all_pending, "all are placed")
    offers = [(offer.operation, offer.epoch) for name in names for offer in await stage.ordered(name, "offer")]
    for operation in operations:
        told = await stage.told(operation)
        assert [event.phase.value for event in told] == ["pending"]
        assert [epoch for offered, epoch in offers if offered == operation] == [an_epoch(1)]


async def test_reports_of_a_time_without_a_coordinator_become_whole_histories(
    start_coordinator: StartCoordinator, stage: Stage, join: Join
) -> None:
    """50 short jobs start and end meanwhile; what they said is repeated and out of order, some starts are untold."""
    first = await start_coordinator()
    a = await join("a")
    operations = [await stage.accept() for _ in range(50)]
    await stage.decide(operations, "a")
    refs = [await a.offered(operation) for operation in operations]
    await a.claim(*refs)
    await first.stop_it()  # type: ignore[attr-defined]

    order = random.Random(4)
    said = [a.report(ref, "started") for ref in refs[::3]] + [a.report(ref, "finished", "completed") for ref in refs]
    said += order.sample(said, 40)
    order.shuffle(said)
    for report in said:
        await a.tell(report)
    began = asyncio.get_running_loop().time()
    await start_coordinator()
    await until_ended(stage, operations)

    assert asyncio.get_running_loop().time() - began < 30
    for operation in operations:
        told = await stage.told(operation)
        assert [event.phase.value for event in told if event.verdict.value != "superseded"] == [
            "pending",
            "running",
            "completed",
        ]
        assert gapless(told)


async def test_a_cut_is_told_once_and_a_second_shorter_one_raises_nothing(
    start_coordinator: StartCoordinator, stage: Stage, join: Join
) -> None:
    await start_coordinator(**SHORT)
    a, b, c = await join("a"), await join("b"), await join("c")
    beats = [Heartbeat(b), Heartbeat(c)]
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.run(operation)
    await wait_until(lambda: _link_is(stage, "a", "lost"), "the first cut is noticed", timeout_s=30)
    await stage.until(operation, "running", "condition")
    await a.lease("hello")
    await a.show(a.slot(ref, "running"))
    await wait_until(lambda: _link_is(stage, "a", "connected"), "it is back")
    told = await stage.until(operation, "condition", "condition")

    for _ in range(4):  # each pause is half of the time to live
        await a.lease("renew")
        await asyncio.sleep(1.0)
    await a.lease("renew")
    await a.tell(a.report(ref, "finished", "completed"))
    final = await stage.until(operation, "completed")
    for beat in beats:
        await beat.stop()

    conditions = [(event.condition.type, event.condition.status) for event in final if event.condition is not None]
    assert conditions == [("control-lost", True), ("control-lost", False)]
    assert [event.phase.value for event in final if event.condition is None] == ["pending", "running", "completed"]
    assert {event.attempt for event in told if event.phase.value == "running"} == {1}
    assert await stage.ordered("a", "stop") == []


async def test_a_wrong_or_jumping_clock_of_an_environment_changes_neither_its_link_nor_the_order_of_events(
    start_coordinator: StartCoordinator, stage: Stage, join: Join
) -> None:
    coordinator: CoordinatorService = await start_coordinator(**SHORT)
    a, b = await join("a"), await join("b")
    beat = Heartbeat(b)
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.take(operation)

    for number in range(16):
        off = timedelta(minutes=(-10, 10, -5, 5)[number % 4])
        await a.lease("renew", wall_clock=datetime.now(UTC) + off)
        if number == 4:
            at = datetime.now(UTC) + timedelta(minutes=10)
            await a.tell(a.report(ref, "started", at=at, started_at=at))
        if number == 8:
            at = datetime.now(UTC) - timedelta(minutes=10)
            await a.tell(a.report(ref, "finished", "completed", at=at, started_at=at, finished_at=at))
        await asyncio.sleep(0.3)
    told = await stage.until(operation, "pending", "running", "completed")
    await beat.stop()

    subject = subjects.environment("link", "a")
    links = [message for message in await stage.links.messages() if message.subject == subject]
    assert len(links) == 2, "reconciling, then connected, and nothing else"
    assert await stage.link("a") == "connected"
    assert gapless(told)
    assert [event.at for event in told] == sorted(event.at for event in told)
    assert coordinator.health.started
