"""The coordinator's own reading and writing of messages says what the generated structs say."""

import hashlib
import json
from datetime import UTC, datetime

import msgspec

from landbridge.domain.lifecycle import Condition, Phase
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect, Retries
from landbridge.schema.wire import command_v1, common_v1, event_v1, report_v1
from landbridge_dispatch.coordinator import reading, wire
from landbridge_dispatch.coordinator.declared import Specification, Specifications, as_raw, declare
from landbridge_dispatch.coordinator.outgoing import Commands, changed, freed, requeued

STATE = model.OperationState(operation="o", project="p", environment="a", epoch=Epoch(1, 2))
REPORT = report_v1.AttemptReport(
    operation="o",
    epoch=common_v1.Epoch(generation=1, counter=2),
    state=report_v1.AttemptState.FINISHED,
    term=7,
    at=datetime(2026, 11, 30, tzinfo=UTC),
    outcome=report_v1.AttemptOutcome.FAILED,
    reason="exit-code",
    exit_code=0,
    message="worte: ä",
    metrics={"auc": 0.5},
    checkpoint=report_v1.CheckpointRef(epoch=common_v1.Epoch(generation=1, counter=1), manifest="m/1"),
)


def a_specification(**lifecycle: object) -> Specification:
    body = json.dumps({"spec": {"type": "job", "command": ["true"], "lifecycle": lifecycle}}).encode()
    return Specification(hashlib.sha256(body).digest(), body, as_raw(body), declare(body))


def test_a_lifecycle_event_reads_as_the_generated_message() -> None:
    event = model.Lifecycle(
        event="failed",
        op_seq=4,
        phase=Phase.FAILED,
        round=1,
        attempt=1,
        epoch=Epoch(1, 2),
        environment="a",
        decision_id="d",
        reason="exit-code",
        condition=Condition.CONTROL_LOST,
        status=True,
        report=msgspec.Raw(msgspec.json.encode(REPORT)),
        verdict=model.Verdict.ACCEPTED,
    )
    message = changed(STATE, event, "2026-11-30T00:00:00.000Z")
    read = msgspec.json.decode(message.body, type=event_v1.OperationChanged)

    assert message.subject == "lb.v1.operation.failed.p"
    assert message.about == "o"
    assert read == event_v1.OperationChanged(
        operation="o",
        project="p",
        op_seq=4,
        phase=event_v1.Phase.FAILED,
        at=datetime(2026, 11, 30, tzinfo=UTC),
        round=1,
        attempt=1,
        epoch=common_v1.Epoch(generation=1, counter=2),
        environment="a",
        decision_id="d",
        reason="exit-code",
        condition=event_v1.Condition(type="control-lost", status=True, reason="exit-code"),
        report=REPORT,
        verdict=event_v1.ReportVerdict.ACCEPTED,
    )


def test_what_is_not_set_is_not_written() -> None:
    event = model.Lifecycle(
        event="queued", op_seq=2, phase=Phase.QUEUED, round=1, attempt=0, epoch=Epoch(0, 0), environment=""
    )
    body = json.loads(changed(STATE, event, "2026-11-30T00:00:00.000Z").body)

    assert set(body) == {"operation", "project", "opSeq", "phase", "at", "round"}


def test_requests_to_place_again_carry_the_accepted_bytes() -> None:
    specification = a_specification()
    requeue = model.Requeue(2, "retry-due", ("a",), True)
    read = msgspec.json.decode(requeued(STATE, requeue, specification.raw).body, type=event_v1.OperationRequeued)
    free = msgspec.json.decode(freed(STATE, model.Free(1, "a")).body, type=event_v1.OperationFreed)

    assert read.effective == specification.body
    assert (read.round, read.exclude, read.failed_over) == (2, ("a",), True)
    assert (free.operation, free.round, free.environment) == ("o", 1, "a")


def test_commands_are_one_message_per_environment_and_kind_and_strictly_readable() -> None:
    commands = Commands()
    for number in range(3):
        offer = model.SendOffer("a", Epoch(1, number), 1, "m", 1_764_460_800_000)
        commands.offer(STATE, offer, a_specification())
        commands.add("o", model.SendStop("a", Epoch(1, number), "cancelled", 1_500, True))
    commands.add("o", model.SendSettle("b", Epoch(1, 1)))
    commands.add("o", model.SendWithdraw("a", Epoch(1, 1)))
    found = {message.subject: message.body for message in commands.messages()}

    assert list(found) == [
        "lb.v1.command.a.withdraw",
        "lb.v1.command.a.stop",
        "lb.v1.command.b.settle",
        "lb.v1.command.a.offer",
    ]
    offers = msgspec.json.decode(found["lb.v1.command.a.offer"], type=command_v1.Offers).offers
    assert [offer.epoch.counter for offer in offers] == [0, 1, 2]
    assert offers[0].spec == a_specification().body
    assert offers[0].spec_sha256 == hashlib.sha256(offers[0].spec).hexdigest()
    stops = msgspec.json.decode(found["lb.v1.command.a.stop"], type=command_v1.Stops).items
    assert (stops[0].grace_seconds, stops[0].force) == (2, True)


def test_offers_are_split_before_a_message_grows_too_large() -> None:
    commands = Commands()
    body = json.dumps({"spec": {"type": "job", "notes": "x" * 200_000}}).encode()
    specification = Specification(b"", body, as_raw(body), declare(body))
    for number in range(5):
        commands.offer(STATE, model.SendOffer("a", Epoch(1, number), 1, "", 1_000), specification)

    assert len(commands.messages()) == 3
    assert all(len(message.body) < 1_000_000 for message in commands.messages())


def test_a_report_is_read_for_what_decides_and_kept_as_it_came() -> None:
    raw = msgspec.Raw(msgspec.json.encode(REPORT))
    message = reading.report(wire.read_report(raw), raw, "a", 9)

    assert message == model.ReportFinished(
        environment="a",
        epoch=Epoch(1, 2),
        term=7,
        environment_term=9,
        reason="exit-code",
        message="worte: ä",
        checkpoint="m/1",
        report=raw,
        outcome="failed",
        exit_code=0,
    )


def test_a_slot_of_an_inventory_carries_its_final_report() -> None:
    inventory = report_v1.Inventory(
        incarnation="i",
        term=8,
        part=1,
        parts=1,
        slots=(
            report_v1.SlotState(
                operation="o", epoch=REPORT.epoch, state=report_v1.SlotPhase.FINISHED, grant_term=7, report=REPORT
            ),
            report_v1.SlotState(operation="q", epoch=REPORT.epoch, state=report_v1.SlotPhase.CREATED, grant_term=7),
        ),
    )
    read = wire.read_inventory(msgspec.json.encode(inventory))
    ended, created = (reading.slot(slot, "a", read.term) for slot in read.slots)

    assert ended is not None
    assert (ended.final, ended.outcome, ended.exit_code, ended.term) == ("finished", "failed", 0, 8)
    assert created is not None
    assert created.report is None


def test_a_declaration_is_read_as_numbers() -> None:
    declared = a_specification(
        queueTimeout="2h",
        retries={"limit": 2, "backoff": "1m", "maxBackoff": "5m", "exceptExitCodes": [2, 3]},
        disconnection={"policy": "checkpoint-then-stop", "checkpointWithin": "5m", "grace": "30s"},
    ).declared

    assert declared.queue_timeout_ms == 7_200_000
    assert declared.retries == Retries(2, 60_000, (2, 3), 300_000)
    assert declared.policy == Disconnection(OnDisconnect.CHECKPOINT_THEN_STOP, 300_000, 30_000)
    assert a_specification().declared.policy == Disconnection(OnDisconnect.CONTINUE, 0, 30_000)
    assert a_specification().declared.queue_timeout_ms == 86_400_000


def test_specifications_are_remembered_by_their_hash() -> None:
    specifications, one = Specifications(), a_specification()
    read = specifications.read(one.sha256, one.raw)
    specifications.keep(read)

    assert (read.body, bytes(read.raw)) == (one.body, bytes(one.raw))
    assert specifications.read(one.sha256, msgspec.Raw(b"unread")) is read


def test_an_offer_names_the_class_that_was_chosen_where_it_is_not_the_one_that_was_asked_for() -> None:
    body = json.dumps({"spec": {"type": "job", "resources": {"accelerator": {"class": "gpu-48gb"}}}}).encode()
    specification = Specification(b"", body, as_raw(body), declare(body))
    commands = Commands()
    for counter, served_by in enumerate(("gpu-48gb", "gpu-80gb")):
        commands.offer(STATE, model.SendOffer("a", Epoch(1, counter), 1, "", 1_000, served_by), specification)
    [message] = commands.messages()
    named, other = msgspec.json.decode(message.body, type=command_v1.Offers).offers

    assert (named.accelerator_class, "assigned-class" in named.features) == ("", False)
    assert (other.accelerator_class, "assigned-class" in other.features) == ("gpu-80gb", True)
