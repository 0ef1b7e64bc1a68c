"""`POST /v1/plan`: rendered and classified as a submission would be, then asked of ranking; nothing is stored."""

from typing import Any

import msgspec
import pytest

from integration.intake.conftest import StartIntake
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
        asked = msgspec.json.decode(body, type=PlanRequest)
        questions.append(asked)
        items = [{**ANSWER, "number": number} for number in range(1 + len(asked.together))]
        found = {"items": items} if asked.together else ANSWER
        return msgspec.json.encode(AskReply(found=True, json=msgspec.json.encode(found)))

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


def a_member(name: str, **spec: Any) -> bytes:
    gang = {"name": "train", "members": 2, "spanEnvironments": True}
    return an_operation(spec__gang={**gang, **spec}, metadata__name=name)


async def test_several_are_asked_about_together_in_their_order(intake: Intake, asked: list[PlanRequest]) -> None:
    body = b"\n---\n".join([a_member("left"), a_member("right"), an_operation(metadata__name="single")])
    status, answer = await intake.post(body, path="/v1/plan")
    assert status == 200, answer
    assert [(item["name"], item["number"]) for item in answer["items"]] == [("left", 0), ("right", 1), ("single", 2)]
    [question] = asked
    gangs = [from_class_body(each).requirements.gang for each in (question.requirements, *question.together)]
    assert gangs == ["train", "train", ""]


async def test_one_that_would_be_refused_does_not_hide_the_others(intake: Intake, asked: list[PlanRequest]) -> None:
    bad = an_operation(spec__queue="nosuch", metadata__name="bad")
    unlike = a_member("unlike", members=3)
    body = b"\n---\n".join([bad, a_member("left"), unlike, a_member("right"), a_member("third"), b"- 1"])
    status, answer = await intake.post(body, path="/v1/plan")
    assert status == 200, answer
    told = [[problem["code"] for problem in item.get("problems", ())] for item in answer["items"]]
    assert told[1] == told[3] == []
    assert (told[2], told[4]) == (["gang-conflict"], ["gang-full"])
    assert "declared with 2 by operation left, found 3" in answer["items"][2]["problems"][0]["message"]
    assert told[0]
    assert told[5]
    assert [answer["items"][place]["number"] for place in (1, 3)] == [0, 1]
    assert len(asked[0].together) == 1
    nothing = await intake.post(b"\n---\n".join([bad, bad]), path="/v1/plan")
    assert all(item["problems"] for item in nothing[1]["items"])
    assert len(asked) == 1, "nothing is left to ask about"


async def test_more_than_a_gang_may_have_are_too_many(intake: Intake, asked: list[PlanRequest]) -> None:
    status, answer = await intake.post(b"\n---\n".join([an_operation()] * 101), path="/v1/plan")
    assert (status, answer["detail"]) == (413, "expected at most 100 operations, found 101")
    assert asked == []


async def test_what_is_planned_together_counts_each_for_itself(
    start_intake: StartIntake, asked: list[PlanRequest], redis_url: str
) -> None:
    intake = await start_intake(redis_url=redis_url)
    await intake.settle()
    many = b"\n---\n".join([an_operation()] * 100)
    # Counted by the minute, which may end between two of these.
    answers = [await intake.post(many, path="/v1/plan") for _ in range(3)]
    assert [status for status, _ in answers].count(429) in (1, 2)
    assert "may have 120 operations planned a minute" in next(a["detail"] for status, a in answers if status == 429)


async def test_a_ranking_that_answers_for_the_first_alone_is_not_believed(intake: Intake, bus: Bus) -> None:
    """One of the release before does, while a new one comes."""

    async def answer(_: str, __: bytes) -> bytes:
        return msgspec.json.encode(AskReply(found=True, json=msgspec.json.encode(ANSWER)))

    subscription = await respond(bus, subjects.ask("ranking", "plan"), answer)
    status, told = await intake.post(b"\n---\n".join([an_operation()] * 2), path="/v1/plan")
    await subscription.close()
    assert status == 503
    assert "another number of operations than the 2" in told["detail"]


async def test_without_ranking_the_answer_is_to_try_again(intake: Intake) -> None:
    answer = await intake.http.post("/v1/plan", content=an_operation())
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "2"
    assert "ranking" in answer.json()["detail"]
