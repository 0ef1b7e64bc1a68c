"""`POST /v1/plan`: rendered and classified as a submission would be, then asked of ranking; nothing is stored."""

from typing import Any

import msgspec
import pytest

from landbridge.bus import subjects
from landbridge.bus.connection import Bus
from landbridge.bus.requests import respond
from landbridge.domain.requirements import from_class_body
from landbridge.schema.wire.request_v1 import AskReply, PlanRequest
from landbridge.store import Database
from support.intake_service import Intake, an_operation
from unit.documents.documents import a_document

ANSWER = {"eligible": True, "environments": []}


@pytest.fixture
async def asked(bus: Bus) -> Any:
    """A stand-in for ranking; what it was asked."""
    questions: list[PlanRequest] = []

    async def answer(_: str, body: bytes) -> bytes:
        questions.append(msgspec.json.decode(body, type=PlanRequest))
        return msgspec.json.encode(AskReply(found=True, json=msgspec.json.encode(ANSWER)))

    subscription = await respond(bus, subjects.ask("ranking", "plan"), answer)
    yield questions
    await subscription.close()


async def test_a_plan_is_asked_for_what_would_be_accepted_and_nothing_is_stored(
    intake: Intake, asked: list[PlanRequest], intake_db: Database
) -> None:
    status, answer = await intake.post(an_operation(), path="/v1/plan")
    assert status == 200, answer
    assert answer == {"name": "churn-train", "project": "retail-eu", **ANSWER}
    requirements = from_class_body(asked[0].requirements).requirements
    queue = a_document("queue")["metadata"]["name"]
    assert (requirements.project, requirements.queue) == ("retail-eu", queue)
    assert asked[0].operation == ""
    assert await intake_db.fetchval("select count(*) from operation") == 0
    assert await intake.told("accepted") == []


async def test_the_same_problems_as_at_a_submission(intake: Intake, asked: list[PlanRequest]) -> None:
    for bad in (an_operation(spec__queue="nosuch"), an_operation(spec__type="jobb"), b"- 1"):
        submitted, planned = await intake.post(bad), await intake.post(bad, path="/v1/plan")
        assert planned[0] == submitted[0] == 422
        assert planned[1]["problems"] == submitted[1]["problems"]
    assert asked == []


async def test_a_project_that_the_caller_may_not_know_of_does_not_exist(
    intake: Intake, asked: list[PlanRequest]
) -> None:
    status, _ = await intake.post(an_operation(project="retail-us"), path="/v1/plan")
    assert status == 422
    intake.http.headers.pop("Authorization")
    assert (await intake.post(an_operation(), path="/v1/plan"))[0] == 401
    assert asked == []


async def test_without_ranking_the_answer_is_to_try_again(intake: Intake) -> None:
    answer = await intake.http.post("/v1/plan", content=an_operation())
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "2"
    assert "ranking" in answer.json()["detail"]
