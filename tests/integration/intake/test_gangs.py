"""Members of a gang declare the same, and there are as many as declared, whatever comes at once."""

import asyncio
from typing import Any

from integration.intake.conftest import StartIntake
from landbridge.store import Database
from support.intake_service import an_operation
from unit.documents.documents import a_document

TRAIN = {"name": "train", "members": 3, "spanEnvironments": True}


def a_member(name: str = "shard", gang: dict[str, Any] | None = None, **put: Any) -> bytes:
    return an_operation(name, spec__gang=gang or TRAIN, **put)


async def test_two_replicas_together_accept_exactly_as_many_members_as_declared(
    start_intake: StartIntake, intake_db: Database
) -> None:
    first, second = await start_intake(), await start_intake()
    await first.apply(a_document("queue"), a_document("project"))
    answers = await asyncio.gather(
        *(intake.post(a_member(f"shard-{n}"), f"k-{n}") for n in range(8) for intake in (first, second))
    )
    accepted = {answer["operation"] for status, answer in answers if status in {200, 201}}
    assert len(accepted) == 3 == await intake_db.fetchval("select count(*) from gang_member")
    refused = [answer for status, answer in answers if status == 422]
    assert len(refused) + len([a for s, a in answers if s in {200, 201}]) == len(answers)
    [problem] = refused[0]["problems"]
    assert (problem["code"], problem["path"]) == ("gang-full", "spec.gang.name")
    assert problem["message"] == "gang train has its 3 members already"
    assert "name another gang" in problem["suggestion"]


async def test_what_was_accepted_is_known_however_full_the_gang_is(start_intake: StartIntake) -> None:
    intake = await start_intake()
    await intake.apply(a_document("queue"), a_document("project"))
    gang = {"name": "pair", "members": 2}
    for n in range(2):
        status, _ = await intake.post(a_member(f"s-{n}", gang), f"k-{n}")
        assert status == 201
    assert (await intake.post(a_member("s-1", gang), "k-1"))[0] == 200
    assert (await intake.post(a_member("s-2", gang), "k-2"))[0] == 422


async def test_a_member_that_declares_otherwise_is_refused_field_by_field_with_what_the_first_one_said(
    start_intake: StartIntake,
) -> None:
    intake = await start_intake()
    await intake.apply(a_document("queue"), a_document("project"))
    _, first = await intake.post(a_member(), "k-1")
    other = {**TRAIN, "members": 4, "spanEnvironments": False, "afterStart": "apart", "startWithin": "5m"}
    status, answer = await intake.post(a_member("shard-2", other), "k-2")
    assert status == 422
    found = {problem["path"]: problem for problem in answer["problems"]}
    assert set(found) == {f"spec.gang.{f}" for f in ("members", "spanEnvironments", "afterStart", "startWithin")}
    assert {problem["code"] for problem in found.values()} == {"gang-conflict"}
    declared = f"gang train was declared with 3 by operation {first['operation']}, found 4"
    assert found["spec.gang.members"]["message"] == declared
    assert found["spec.gang.members"]["suggestion"] == "write 3 as the other members do, or name another gang"
    together = {**TRAIN, "afterStart": "together"}
    assert (await intake.post(a_member("shard-2", together), "k-2"))[0] == 201, "the default, written out"


async def test_members_of_one_bulk_submission_are_judged_one_after_the_other(start_intake: StartIntake) -> None:
    intake = await start_intake()
    await intake.apply(a_document("queue"), a_document("project"))
    ids = await intake.send([a_member(f"shard-{n}") for n in range(5)])
    await intake.quiet()
    assert len(await intake.told("accepted")) == 3
    refused = await intake.told("refused")
    assert {problem["code"] for event in refused for problem in event["problems"]} == {"gang-full"}
    assert {event["submission"] for event in refused} <= set(ids)


async def test_a_name_belongs_to_its_project(start_intake: StartIntake) -> None:
    intake = await start_intake()
    other = a_document("project", {"metadata.name": "other"})
    await intake.apply(a_document("queue", {"spec.projects": []}), a_document("project"), other)
    assert (await intake.post(a_member(), "k-1"))[0] == 201
    mine = an_operation("shard", "other", spec__gang={"name": "train", "members": 7})
    assert (await intake.post(mine, "k-1", "/v1/operations"))[0] == 201
