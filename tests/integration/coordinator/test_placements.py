"""Offers, claims, reports: one owner, one end, every step told once and in order."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import msgspec

from landbridge.bus.declare import api
from landbridge.schema.wire import event_v1, report_v1
from landbridge_dispatch.coordinator.service import CoordinatorService
from support.coordinator_stage import PROJECT, Stage, an_epoch, effective
from support.wait import wait_until

from .conftest import Join, StartCoordinator


async def test_an_operation_goes_from_accepted_to_completed(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.run(operation)
    outputs = {"model": report_v1.OutputRef(connection="models", path="m/1", bytes=7, exists=True)}
    await a.tell(a.report(ref, "finished", "completed", reason="exit-code", exit_code=0, outputs=outputs))
    told = await stage.until(operation, "pending", "running", "completed")

    assert [event.op_seq for event in told] == [2, 3, 4]
    assert [event.attempt for event in told] == [0, 1, 1]
    assert {event.environment for event in told} == {"a"}
    assert told[2].report is not None
    assert told[2].report.outputs == outputs
    assert told[2].verdict is event_v1.ReportVerdict.ACCEPTED
    settled = await stage.ordered("a", "settle")
    assert [(item.operation, item.epoch) for item in settled] == [ref]


async def test_what_overtakes_the_beginning_of_its_operation_is_not_dropped(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    """The beginning may be in the hands of a replica that was killed, and comes back only after the ack wait."""
    a = await join("a")
    decided, cancelled = str(uuid4()), str(uuid4())
    await stage.decide([decided], "a")
    await stage.cancel(cancelled)

    async def put_off_for_long() -> bool:
        infos = [await api(stage.bus, f"CONSUMER.INFO.{stream}.coordinator") for stream in ("OPERATIONS", "INTENTS")]
        return all(int(info["delivered"]["consumer_seq"]) >= 10 for info in infos)

    await wait_until(put_off_for_long, "both were put off for longer than a hesitation", timeout_s=30, every_s=0.1)
    await stage.accept(operation=decided)
    await stage.accept(operation=cancelled)
    await a.run(decided)
    await stage.until(decided, "pending", "running")
    await stage.until(cancelled, "cancelled")


async def test_an_offer_carries_the_accepted_bytes(coordinator: CoordinatorService, stage: Stage, join: Join) -> None:
    a = await join("a")
    operation = await stage.accept("bytes", retries={"limit": 3})
    await stage.decide([operation], "a")
    await a.offered(operation)
    (offer,) = await stage.ordered("a", "offer")

    assert offer.spec == effective("bytes", retries={"limit": 3})
    assert offer.attempt == 1
    assert "type.job" in offer.features
    assert offer.claim_by is not None
    assert offer.claim_by > datetime.now(UTC)


async def test_queued_is_told_only_when_something_had_to_wait(coordinator: CoordinatorService, stage: Stage) -> None:
    operation = await stage.accept()
    await stage.wait(operation, condition="unplaceable", reason="no-environment")
    told = await stage.until(operation, "queued", "condition")
    await stage.decide([operation], "a")
    later = await stage.until(operation, "condition", "pending")

    assert told[1].condition is not None
    assert (told[1].condition.type, told[1].condition.status) == ("unplaceable", True)
    assert later[-2].condition is not None
    assert not later[-2].condition.status


async def test_a_decision_for_an_operation_not_yet_known_is_handled_when_it_is(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    early, body = "0190a1b2-0000-7000-8000-000000000001", effective()
    await stage.decide([early], "a")
    other = await stage.accept()
    await stage.decide([other], "a")
    await a.offered(other)
    accepted = event_v1.OperationAccepted(
        operation=early, project=PROJECT, op_seq=1, at=datetime.now(UTC), effective=body,
        effective_sha256=__import__("hashlib").sha256(body).hexdigest(),
    )  # fmt: skip
    await stage._say("OPERATIONS", f"lb.v1.operation.accepted.{PROJECT}", "operation", accepted, early)

    await a.offered(early)


async def test_repeated_and_stale_reports_change_nothing(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a, b = await join("a"), await join("b")
    operation = await stage.accept(retries={"limit": 1, "backoff": "1ms"})
    await stage.decide([operation], "a")
    first = await a.run(operation)
    failed = a.report(first, "finished", "failed", reason="exit-code", exit_code=3)
    await a.tell(failed)
    await a.tell(failed)
    await wait_until(lambda: stage.others(operation, "requeued"), "it is to be placed again")
    await stage.decide([operation], "b", 2)
    second = await b.run(operation, 2)
    await a.tell(a.report(first, "started"))
    await a.tell(a.report(first, "finished", "completed"))
    await b.tell(b.report(second, "finished", "completed"))
    await b.tell(b.report(second, "finished", "completed"))
    await stage.until(operation, "completed")
    await stage.wait(operation)  # for the stream to be read past the last reports
    told = await stage.told(operation)

    assert [event.op_seq for event in told] == list(range(2, len(told) + 2))
    assert [event.phase.value for event in told].count("completed") == 1
    superseded = [event for event in told if event.verdict is event_v1.ReportVerdict.SUPERSEDED]
    assert {event.phase.value for event in superseded} <= {"running"}
    assert superseded


async def test_a_report_of_an_environment_that_never_held_the_placement_is_ignored(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a, b = await join("a"), await join("b")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.run(operation)
    await b.tell(b.report(ref, "finished", "completed"))
    await b.tell(b.report((operation, an_epoch(9)), "finished", "completed"))
    await a.tell(a.report(ref, "finished", "failed", reason="exit-code"))
    told = await stage.until(operation, "pending", "running", "failed")

    assert len(told) == 3


async def test_claims_are_granted_once_and_repeated_alike(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a, b = await join("a"), await join("b")
    operations = [await stage.accept() for _ in range(20)]
    await stage.decide(operations, "a")
    refs = [await a.offered(operation) for operation in operations]
    replies = await asyncio.gather(a.claim(*refs), a.claim(*refs), b.claim(*refs))

    assert {len(reply.granted) for reply in replies[:2]} == {20}
    assert replies[2].granted == ()
    assert {refusal.reason for refusal in replies[2].refused} == {"superseded"}
    unknown = await a.claim(("not-an-id", an_epoch(1)))
    assert [refusal.reason for refusal in unknown.refused] == ["unknown"]


async def test_an_unclaimed_offer_is_withdrawn_and_placed_again(
    start_coordinator: StartCoordinator, stage: Stage, join: Join
) -> None:
    await start_coordinator(offer_seconds=0.3)
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.offered(operation)
    await stage.until(operation, "pending", "queued")
    await wait_until(lambda: stage.others(operation, "requeued"), "it is to be placed again")
    late = await a.claim(ref)
    await stage.decide([operation], "a", 2)
    await a.run(operation, 2)

    assert [refusal.reason for refusal in late.refused] == ["withdrawn"]
    assert [item.epoch for item in await stage.ordered("a", "withdraw")] == [an_epoch(1)]
    (requeued,) = await stage.others(operation, "requeued")
    assert requeued["round"] == 2
    assert [freed["round"] for freed in await stage.others(operation, "freed")] == [1]


async def test_an_operation_that_nobody_takes_fails_at_the_end_of_its_queue_time(
    coordinator: CoordinatorService, stage: Stage
) -> None:
    operation = await stage.accept(queueTimeout="100ms")
    told = await stage.until(operation, "failed")

    assert told[-1].reason == "no-eligible-environment"


async def test_a_claim_under_a_verdict_that_no_longer_holds_goes_back_to_eligibility(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    version = event_v1.ContractVersion(version=2, phase="active")
    await stage.environment_says(
        "contract",
        event_v1.EnvironmentContractChanged(environment="a", at=datetime.now(UTC), versions=(version,)),
    )
    await wait_until(lambda: coordinator.core.verdicts.is_registered("a"), "the contract is known")
    old, expired, good = [await stage.accept() for _ in range(3)]
    await stage.decide([old], "a", contract_version=1)
    await stage.decide([expired], "a", valid_for=timedelta(seconds=-1))
    await stage.decide([good], "a", contract_version=2, valid_for=timedelta(hours=1))
    reply = await a.claim(await a.offered(old), await a.offered(expired), await a.offered(good))

    assert [item.operation for item in reply.granted] == [good]
    assert {item.operation: item.reason for item in reply.refused} == {
        old: "contract-changed",
        expired: "verdict-expired",
    }
    await wait_until(lambda: stage.others(old, "requeued"), "it is judged again")


async def test_only_active_versions_of_a_contract_are_granted_claims(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    """A canary has not proven itself yet: what was decided by it, by whatever error, starts nowhere."""
    a = await join("a")
    phases = {1: "retiring", 2: "active", 3: "active", 4: "canary"}
    versions = tuple(event_v1.ContractVersion(version=number, phase=phase) for number, phase in phases.items())
    changed = event_v1.EnvironmentContractChanged(environment="a", at=datetime.now(UTC), versions=versions)
    await stage.environment_says("contract", changed)
    await wait_until(lambda: coordinator.core.verdicts.is_registered("a"), "the contract is known")
    placed = {number: await stage.accept() for number in phases}
    for number, operation in placed.items():
        await stage.decide([operation], "a", contract_version=number)
    reply = await a.claim(*[await a.offered(operation) for operation in placed.values()])

    assert {item.operation for item in reply.granted} == {placed[2], placed[3]}
    assert {item.operation: item.reason for item in reply.refused} == {
        placed[1]: "contract-changed",
        placed[4]: "contract-changed",
    }
    await wait_until(lambda: stage.others(placed[4], "requeued"), "it is judged again")


async def test_an_offer_from_before_a_class_was_paused_is_judged_again(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    """The centre cannot tell which class it needs: so nothing that was offered before is granted."""
    a = await join("a")
    before, after = await stage.accept(), await stage.accept()
    await stage.decide([before], "a")
    ref = await a.offered(before)
    hold = event_v1.ControlHold(capability_class="gpu-80gb", by="ann", reason="new driver", at=datetime.now(UTC))
    control = event_v1.EnvironmentControl(environment="a", at=datetime.now(UTC), holds=(hold,))
    await stage.environment_says("control", control)
    verdicts = coordinator.core.verdicts
    await wait_until(lambda: verdicts.holds_since("a") is not None, "the coordinator knows of it")

    reply = await a.claim(ref)

    assert [item.reason for item in reply.refused] == ["class-paused"]
    await wait_until(lambda: stage.others(before, "requeued"), "it is judged again")
    assert [item["reason"] for item in await stage.others(before, "requeued")] == ["class-paused"]
    await stage.decide([after], "a")
    await a.take(after)
    await stage.environment_says("control", event_v1.EnvironmentControl(environment="a", at=datetime.now(UTC)))
    await wait_until(lambda: verdicts.holds_since("a") is None, "nothing is paused any more")


async def test_a_failed_start_is_tried_elsewhere_and_then_anywhere(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.take(operation)
    await a.tell(a.report(ref, "failed-to-start", reason="image-not-found"))
    await wait_until(lambda: stage.others(operation, "requeued"), "it is to be placed again")
    await stage.wait(operation, 2, condition="unplaceable")
    await wait_until(
        lambda: _count(stage, operation, "requeued", 2), "it may go back where it failed when nothing else is left"
    )
    requeued = await stage.others(operation, "requeued")

    assert [item.get("exclude", []) for item in requeued] == [["a"], []]
    assert [item["round"] for item in requeued] == [2, 3]


async def _count(stage: Stage, operation: str, event: str, number: int) -> bool:
    return len(await stage.others(operation, event)) >= number


async def test_a_report_that_cannot_be_read_is_dead_lettered_and_the_rest_flows(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.take(operation)

    class AttemptReports(msgspec.Struct):
        items: str = "not a list"

    await a.say("attempts", AttemptReports())
    await a.tell(a.report(ref, "started"))
    await stage.until(operation, "running")

    letters = await coordinator.database.fetchval("select count(*) from dead_letter")
    assert letters == 1
