"""The SDK over HTTP: what is sent, what is repeated, what becomes which error."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from landbridge.client import (
    AmbiguousError,
    BusyError,
    ConflictError,
    HttpClient,
    InvalidError,
    LandbridgeError,
    NotFoundError,
    NotSignedInError,
    Refused,
    ServerError,
    Submission,
    Submitted,
    UnreachableError,
    WaitTimeoutError,
    connect,
    transport,
)

Answer = httpx2.Response
ID = "6f1c2d3e-0000-5000-8000-00000000000a"
OTHER = "6f1c2d3e-0000-5000-8000-00000000000b"


class Server:
    """Answers from a list, then repeats the last one; remembers what it was asked."""

    def __init__(self, *answers: "Answer | Exception") -> None:
        self.answers = list(answers)
        self.asked: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> Answer:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer(body: Any = None, status: int = 200, **headers: str) -> Answer:
    return Answer(status, json=body, headers=headers)


def operation(phase: str = "running", name: str = ID, **more: Any) -> dict[str, Any]:
    return {"operation": name, "project": "retail", "phase": phase, **more}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_PAUSE_S", (0.001,))


@pytest.fixture
async def client() -> AsyncIterator[Callable[..., HttpClient]]:
    made: list[HttpClient] = []

    def make(server: Server, **options: Any) -> HttpClient:
        made.append(HttpClient("http://landbridge", "token", http=httpx2.MockTransport(server), **options))
        return made[-1]

    yield make
    for item in made:
        await item.close()


async def test_a_document_is_sent_as_it_is_written_with_a_key_that_is_told(client: Callable[..., HttpClient]) -> None:
    server = Server(answer({"operation": ID, "phase": "accepted", "existing": False}, 201))
    text = "kind: Operation  # a remark\n"
    submitted = await client(server).submit(text)
    [request] = server.asked
    assert submitted.id == ID
    assert request.content == text.encode()
    assert request.headers["Content-Type"] == "application/yaml"
    assert request.headers["Idempotency-Key"] == submitted.idempotency_key
    assert request.headers["Authorization"] == "Bearer token"


async def test_a_mapping_is_sent_as_json(client: Callable[..., HttpClient]) -> None:
    server = Server(answer({"operation": ID}))
    await client(server).submit({"kind": "Operation"}, idempotency_key="mine")
    assert server.asked[0].headers["Content-Type"] == "application/json"
    assert server.asked[0].headers["Idempotency-Key"] == "mine"
    assert json.loads(server.asked[0].content) == {"kind": "Operation"}


@pytest.mark.parametrize("failure", [httpx2.ReadError("cut"), answer(status=503), answer(status=429)], ids=repr)
async def test_a_submission_is_repeated_with_the_same_key(
    client: Callable[..., HttpClient], failure: "Answer | Exception"
) -> None:
    server = Server(failure, answer({"operation": ID}))
    await client(server).submit("kind: Operation")
    keys = {request.headers["Idempotency-Key"] for request in server.asked}
    assert len(server.asked) == 2
    assert len(keys) == 1


async def test_making_access_is_not_repeated_once_it_was_sent(client: Callable[..., HttpClient]) -> None:
    server = Server(httpx2.ReadError("cut"), answer({"token": "x"}))
    with pytest.raises(UnreachableError):
        await client(server).create_access("ci", "retail")
    assert len(server.asked) == 1


async def test_repeating_ends_after_its_time(client: Callable[..., HttpClient]) -> None:
    server = Server(httpx2.ConnectError("refused"))
    with pytest.raises(UnreachableError, match="http://landbridge: no answer"):
        await client(server, retry_s=0.02).get(ID)
    assert 1 < len(server.asked) < 200


async def test_retry_after_is_heeded_as_far_as_time_allows(client: Callable[..., HttpClient]) -> None:
    server = Server(answer({"title": "Too many requests"}, 429, **{"Retry-After": "30"}))
    with pytest.raises(BusyError):
        await client(server, retry_s=0.1).get(ID)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, NotSignedInError),
        (404, NotFoundError),
        (409, ConflictError),
        (422, InvalidError),
        (500, ServerError),
    ],
)
async def test_refusals_are_typed(client: Callable[..., HttpClient], status: int, error: type[LandbridgeError]) -> None:
    server = Server(answer({"title": "Refused", "detail": "because"}, status))
    with pytest.raises(error, match="Refused: because"):
        await client(server).get(ID)


async def test_a_refused_document_carries_every_problem(client: Callable[..., HttpClient]) -> None:
    problems = [
        {"path": "spec.command", "code": "missing", "message": "expected a command", "line": 4, "column": 3},
        {"path": "spec.queue", "code": "unknown", "message": "no such queue", "suggestion": 'did you mean "batch"?'},
    ]
    server = Server(answer({"title": "Refused", "problems": problems}, 422))
    with pytest.raises(InvalidError) as caught:
        await client(server).submit("kind: Operation")
    assert [(problem.path, problem.line) for problem in caught.value.problems] == [
        ("spec.command", 4),
        ("spec.queue", 0),
    ]
    assert 'spec.queue: no such queue; did you mean "batch"?' in str(caught.value)


async def test_an_answer_that_is_no_problem_document_is_quoted(client: Callable[..., HttpClient]) -> None:
    server = Server(Answer(500, text="<html>bad gateway</html>"))
    with pytest.raises(ServerError, match="HTTP 500: <html>bad gateway"):
        await client(server).get(ID)


async def test_many_are_sent_together_and_answered_one_by_one(client: Callable[..., HttpClient]) -> None:
    rows = [{"operation": ID, "phase": "accepted", "status": 201}, {"status": 422, "title": "Refused", "problems": []}]
    server = Server(answer({"items": rows}))
    good, bad = await client(server).submit_many(["kind: Operation", Submission("kind: X", "k2")])
    assert isinstance(good, Submitted)
    assert good.id == ID
    assert isinstance(bad, Refused)
    assert json.loads(server.asked[0].content)["items"][1] == {"document": "kind: X", "idempotencyKey": "k2"}


async def test_a_shortened_id_is_completed_when_it_fits_one(client: Callable[..., HttpClient]) -> None:
    page = answer({"items": [operation(), operation(name="aaaa2d3e-0000-5000-8000-00000000000a")], "cursor": ""})
    assert await client(Server(page)).resolve("6f1c") == ID


async def test_a_shortened_id_that_fits_several_is_refused_with_some_of_them(client: Callable[..., HttpClient]) -> None:
    page = answer({"items": [operation(), operation(name=OTHER)], "cursor": ""})
    with pytest.raises(AmbiguousError, match=f"{ID}, {OTHER}"):
        await client(Server(page)).resolve("6f1c")


async def test_an_id_that_fits_none_is_not_found(client: Callable[..., HttpClient]) -> None:
    with pytest.raises(NotFoundError, match="'zz': not found"):
        await client(Server(answer({"items": [], "cursor": ""}))).resolve("zz")


async def test_lists_go_through_all_pages_up_to_the_limit(client: Callable[..., HttpClient]) -> None:
    server = Server(
        answer({"items": [operation(name=f"{n}") for n in range(500)], "cursor": "next"}),
        answer({"items": [operation(name=f"{n}") for n in range(500, 700)], "cursor": "more"}),
    )
    found = await client(server).operations(limit=700, phase="running", project="")
    assert len(found) == 700
    queries = [dict(request.url.params) for request in server.asked]
    assert queries == [
        {"phase": "running", "limit": "500"},
        {"phase": "running", "limit": "200", "cursor": "next"},
    ]


async def test_waiting_ends_with_the_operation(client: Callable[..., HttpClient]) -> None:
    server = Server(answer({"title": "Not found"}, 404), answer(operation("running")), answer(operation("completed")))
    assert (await client(server).wait(ID)).phase == "completed"


async def test_waiting_can_end_with_the_news_that_nothing_can_run_it(client: Callable[..., HttpClient]) -> None:
    waits = operation("queued", conditions=[{"type": "unplaceable", "since": "2026-11-30T10:00:00Z"}])
    found = await client(Server(answer(waits))).wait(ID, stop_when_unplaceable=True)
    assert found.unplaceable
    assert not found.finished


async def test_waiting_too_long_says_where_it_stands(client: Callable[..., HttpClient]) -> None:
    with pytest.raises(WaitTimeoutError, match=r"still running after 0\.05 s; it goes on"):
        await client(Server(answer(operation("running")))).wait(ID, timeout_s=0.05)


def timeline(*entries: tuple[str, str, int]) -> Answer:
    items = [
        {"id": name, "event": event, "opSeq": sequence or None, "at": "2026-11-30T10:00:00Z", "data": {"phase": event}}
        for name, event, sequence in entries
    ]
    return answer({"items": items})


async def test_following_yields_each_event_once_and_ends_with_the_final_one(client: Callable[..., HttpClient]) -> None:
    first = [("1", "accepted", 1), ("2", "decided", 0)]
    server = Server(timeline(*first), timeline(*first), timeline(*first, ("3", "completed", 2)))
    seen = [(event.event, event.sequence) async for event in client(server).follow(ID)]
    assert seen == [("accepted", 1), ("decided", 0), ("completed", 2)]


async def test_following_a_log_ends_when_all_was_read(client: Callable[..., HttpClient]) -> None:
    server = Server(
        answer({"text": "one\n", "nextOffset": 4, "end": False}),
        answer({"text": "two\n", "nextOffset": 8, "end": True}),
    )
    assert [text async for text in client(server).follow_logs(ID)] == ["one\n", "two\n"]
    assert [request.url.params["offset"] for request in server.asked] == ["0", "4"]


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(LandbridgeError, match="expected http://, https://, nats://"):
        connect("localhost:80")


def test_nats_needs_credentials() -> None:
    with pytest.raises(LandbridgeError, match="landbridge access create"):
        connect("nats://localhost", creds="")
