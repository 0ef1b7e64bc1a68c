"""Logs and outputs: asked of the environment through the service, authorised, audited, never stored."""

from collections.abc import AsyncIterator, Callable

import msgspec
import pytest
from nats.aio.msg import Msg

from landbridge.bus import subjects
from landbridge.bus.connection import Bus, frame
from landbridge.schema.wire.request_v1 import QueryReply, QueryRequest
from support.lineage_messages import a_whole_life, accepted, an_operation, placed
from support.lineage_service import Lineage

OPERATION = an_operation()
FILES = b'{"outputs":{"forecast":[{"path":"a","bytes":3},{"path":"b","bytes":4}]}}'
LOG = b"high water 04:12\n" * 40000


@pytest.fixture
async def quay(bus: Bus) -> AsyncIterator[list[tuple[str, QueryRequest]]]:
    """The environment quay: answers questions about its log and its outputs, and keeps them."""
    asked: list[tuple[str, QueryRequest]] = []

    def piece(request: QueryRequest) -> QueryReply:
        start = max(len(LOG) - request.tail, 0) if request.tail else request.offset
        data = LOG[start : start + request.limit]
        return QueryReply(found=True, data=data, next_offset=start + len(data), end=start + len(data) >= len(LOG))

    answers: dict[str, Callable[[QueryRequest], QueryReply]] = {
        "logs": piece,
        "outputs": lambda _: QueryReply(
            found=True, json=b'{"outputs":{"forecast":[{"path":"a","bytes":3},{"path":"b","bytes":4}]}}'
        ),
        "output-chunk": lambda request: piece(request) if request.name == "forecast" else QueryReply(message="none"),
    }

    async def answer(msg: Msg) -> None:
        kind = subjects.token(msg.subject, 4)
        request = msgspec.json.decode(msg.data, type=QueryRequest)
        asked.append((kind, request))
        await bus.write(frame(msg.reply, "", "", msgspec.json.encode(answers[kind](request))))

    subscription = await bus.subscribe(subjects.query("quay", "*"), answer)
    yield asked
    await subscription.close()


async def audits(lineage: Lineage) -> list[tuple[str, str, str]]:
    rows = await lineage.service.database.fetch("select principal, action, outcome from audit order by id")
    return [(row[0], row[1], row[2]) for row in rows]


async def test_a_log_is_read_from_the_environment_of_the_latest_attempt(
    lineage: Lineage, quay: list[tuple[str, QueryRequest]]
) -> None:
    await lineage.publish(*a_whole_life(OPERATION))
    tail = await lineage.get(f"/v1/operations/{OPERATION}/logs", tail=17)
    assert (tail["text"], tail["end"], tail["attempt"]) == ("high water 04:12\n", True, 2)
    whole, offset = "", 0
    while True:
        part = await lineage.get(f"/v1/operations/{OPERATION}/logs", offset=offset)
        whole, offset = whole + part["text"], part["nextOffset"]
        if part["end"]:
            break
    assert whole.encode() == LOG
    assert quay[0][1].epoch is not None
    assert quay[0][1].epoch.counter == 2
    first = await lineage.get(f"/v1/operations/{OPERATION}/logs", attempt=1)
    assert first["attempt"] == 1
    assert quay[-1][1].epoch is not None
    assert quay[-1][1].epoch.counter == 1
    assert set(await audits(lineage)) == {("admin", "logs", "answered")}
    tables = await lineage.service.database.fetch("select body from fact")
    assert not any(b"high water" in row[0] for row in tables)


async def test_recorded_outputs_need_no_environment(lineage: Lineage) -> None:
    await lineage.publish(*a_whole_life(OPERATION))
    found = await lineage.get(f"/v1/operations/{OPERATION}/outputs")
    assert (found["live"], found["outputs"]["forecast"]["bytes"]) == (False, 2048)


async def test_outputs_of_running_work_are_asked_for(lineage: Lineage, quay: list[tuple[str, QueryRequest]]) -> None:
    await lineage.publish(accepted(OPERATION), placed(OPERATION, 2, "pending"), placed(OPERATION, 3, "running"))
    found = await lineage.get(f"/v1/operations/{OPERATION}/outputs")
    assert (found["live"], found["outputs"]["forecast"]) == (True, {"bytes": 7, "exists": True})
    assert [each["path"] for each in found["files"]["forecast"]] == ["a", "b"]
    assert quay[0][0] == "outputs"


async def test_the_files_of_recorded_outputs_are_asked_for_where_wanted(
    lineage: Lineage, quay: list[tuple[str, QueryRequest]]
) -> None:
    await lineage.publish(*a_whole_life(OPERATION))
    found = await lineage.get(f"/v1/operations/{OPERATION}/outputs", files="true")
    assert (found["live"], found["outputs"]["forecast"]["bytes"]) == (False, 2048)
    assert [each["path"] for each in found["files"]["forecast"]] == ["a", "b"]
    assert len(quay) == 1


async def test_an_output_is_passed_on_in_pieces_and_as_a_whole(
    lineage: Lineage, quay: list[tuple[str, QueryRequest]]
) -> None:
    await lineage.publish(*a_whole_life(OPERATION))
    answer = await lineage.http.get(f"/v1/operations/{OPERATION}/outputs/forecast")
    assert answer.content == LOG
    assert len([kind for kind, _ in quay if kind == "output-chunk"]) == 3
    piece = await lineage.http.get(f"/v1/operations/{OPERATION}/outputs/forecast", params={"offset": len(LOG) - 5})
    assert piece.content == LOG[-5:]
    assert piece.headers["landbridge-end"] == "true"
    missing = await lineage.http.get(f"/v1/operations/{OPERATION}/outputs/other")
    assert missing.status_code == 404


async def test_an_environment_that_is_away_is_named_and_the_question_audited(lineage: Lineage) -> None:
    await lineage.publish(*a_whole_life(OPERATION))
    answer = await lineage.http.get(f"/v1/operations/{OPERATION}/logs")
    assert answer.status_code == 503
    assert "quay" in answer.json()["detail"]
    assert await audits(lineage) == [("admin", "logs", "failed")]


async def test_what_has_not_started_has_no_log(lineage: Lineage) -> None:
    await lineage.publish(accepted(OPERATION))
    answer = await lineage.http.get(f"/v1/operations/{OPERATION}/logs")
    assert answer.status_code == 404
    assert "nothing has started yet" in answer.json()["detail"]


async def test_a_viewer_may_not_read_what_restricted_work_wrote(
    lineage: Lineage, quay: list[tuple[str, QueryRequest]]
) -> None:
    first, *rest = a_whole_life(OPERATION)
    await lineage.publish(accepted(OPERATION, dataClass="restricted"), *rest)
    viewer = await lineage.access("viewer", "viewer", "coast")
    submitter = await lineage.access("submitter", "submitter", "coast")
    assert first.about == ""
    for path in ("logs", "outputs", "outputs/forecast"):
        assert (await viewer.get(f"/v1/operations/{OPERATION}/{path}")).status_code == 403
    assert quay == []
    assert (await submitter.get(f"/v1/operations/{OPERATION}/logs")).status_code == 200
