"""A project has no more operations waiting than it may, whatever comes at once and by whichever way."""

import asyncio
import json
from datetime import UTC, datetime

import msgspec

from integration.intake.conftest import StartIntake
from landbridge.bus import streams, subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.publish import publish_batch
from landbridge.schema.wire import event_v1
from landbridge.store import Database
from support.intake_service import Intake, an_operation
from support.wait import wait_until
from unit.documents.documents import a_document

LIMIT = 5


async def decide(intake: Intake, *operations: str) -> None:
    """Say that operations were placed, as ranking does."""
    body = event_v1.OperationsDecided(
        decision=event_v1.Decision(id="d", assessment_id="a", at=datetime.now(UTC)),
        operations=tuple(event_v1.DecidedOperation(operation=o, round=1, environment="x") for o in operations),
    )
    type_ = event_type("operation", "OperationsDecided")
    message = Outbound(subjects.operation("decided", "retail-eu"), type_, msgspec.json.encode(body))
    await publish_batch(intake.bus, streams.OPERATIONS, [message])


async def test_two_replicas_and_both_ways_together_accept_exactly_what_may_wait(
    start_intake: StartIntake, intake_db: Database
) -> None:
    first, second = await start_intake(), await start_intake()
    project = a_document("project", {"spec.limits": {"queued": LIMIT}})
    await first.apply(a_document("queue"), project)
    answers = await asyncio.gather(
        *(intake.post(an_operation(), f"k-{n}") for n in range(12) for intake in (first, second)),
        first.send([an_operation()] * 6),
    )
    await first.quiet()
    statuses = [answer[0] for answer in answers[:-1]]
    accepted = await wait_until(lambda: first.told("accepted"), "some are accepted")
    assert len(accepted) == LIMIT == await intake_db.fetchval("select count(*) from queued")
    assert set(statuses) <= {200, 201, 429}
    refused = await first.told("refused")
    assert {problem["code"] for event in refused for problem in event["problems"]} == {"too-many-queued"}

    [key] = {event["idempotencyKey"] for event in accepted[:1]}
    known = await first.http.post("/v1/operations", content=an_operation(), headers={"Idempotency-Key": key})
    assert known.status_code == 200  # what was accepted before is known, however full it is
    full = await second.http.post("/v1/operations", content=an_operation(), headers={"Idempotency-Key": "late"})
    assert full.status_code == 429
    assert int(full.headers["Retry-After"]) > 0
    assert "5 operations waiting" in full.json()["detail"]

    await decide(first, *(event["operation"] for event in accepted[:2]))
    await wait_until(lambda: _counted(intake_db, LIMIT - 2), "two wait no longer")
    assert (await second.post(an_operation(), "late"))[0] == 201


async def _counted(intake_db: Database, number: int) -> bool:
    return bool(await intake_db.fetchval("select count(*) from queued") == number)


async def test_one_request_with_many_is_answered_item_by_item(start_intake: StartIntake) -> None:
    intake = await start_intake()
    await intake.apply(a_document("queue"), a_document("project", {"spec.limits": {"queued": 2}}))
    await intake.post(an_operation(), "first")  # brings the catalogue up to date
    items = [{"document": json.loads(an_operation(f"op-{n}")), "idempotencyKey": f"k-{n}"} for n in range(3)]
    answer = await intake.http.post("/v1/operations:bulk", json={"items": items})
    assert [item["status"] for item in answer.json()["items"]] == [201, 429, 429]
