"""Probes over HTTP: what they say, and what they never say."""

import asyncio
import time
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI, Request

from landbridge.domain.errors import Problem
from landbridge.runtime.health import Health, StallDetector
from landbridge.runtime.http import create_app
from landbridge.runtime.problems import ProblemError
from landbridge.store import UnavailableError


@pytest.fixture
def health() -> Health:
    made = Health()
    made.started = True
    made.add("nats", lambda: True)
    made.add("redis", lambda: "connection refused", critical=False)
    return made


@pytest.fixture
async def client(health: Health) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app("test", health, max_body_bytes=1000, started=lambda: health.started)
    _add_routes(app)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as made:
        yield made


def _add_routes(app: FastAPI) -> None:
    @app.post("/refuse/{kind}")
    async def refuse(kind: str) -> None:
        if kind == "store":
            raise UnavailableError("postgresql://u:hunter2@db is away")
        if kind == "bug":
            raise KeyError("hunter2")
        problem = Problem("spec.x", "unknown-field", "unknown field", "did you mean y?", 3, 5)
        raise ProblemError(422, "Invalid", "one problem", problems=[problem], operation="op")

    @app.post("/echo")
    async def echo(request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}


async def test_a_degraded_dependency_leaves_the_service_ready(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.text) == (200, "ok")
    verbose = (await client.get("/readyz?verbose")).text
    assert verbose.splitlines() == ["[+]nats ok", "[!]redis degraded: connection refused", "readyz check passed"]


async def test_what_is_not_loaded_yet_is_not_denied(client: httpx2.AsyncClient, health: Health) -> None:
    health.started = False
    answer = await client.post("/echo", content=b"12345")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["title"] == "Starting"
    assert (await client.get("/livez")).status_code == 200
    assert (await client.get("/metrics")).status_code == 200
    health.started = True
    assert (await client.post("/echo", content=b"12345")).json() == {"bytes": 5}


async def test_a_critical_failure_makes_it_unready_but_not_dead(client: httpx2.AsyncClient, health: Health) -> None:
    health.add("postgres", lambda: False)
    assert (await client.get("/readyz")).status_code == 503
    assert (await client.get("/livez")).status_code == 200
    assert (await client.get("/readyz?exclude=postgres,redis")).status_code == 200
    assert (await client.get("/readyz/postgres")).status_code == 503
    assert (await client.get("/readyz/nats")).status_code == 200
    assert (await client.get("/readyz/nothing")).status_code == 404


async def test_a_check_that_hangs_or_raises_has_failed(client: httpx2.AsyncClient, health: Health) -> None:
    async def hang() -> bool:
        await asyncio.Event().wait()
        return True

    def broken() -> bool:
        raise ValueError("hunter2")

    health.add("slow", hang)
    health.add("broken", broken)
    started = time.perf_counter()
    text = (await client.get("/readyz?verbose")).text
    assert time.perf_counter() - started < 2
    assert "[-]slow failed: no answer within 1 s" in text
    assert "[-]broken failed: ValueError" in text
    assert "hunter2" not in text


async def test_reasons_hold_no_credentials(client: httpx2.AsyncClient, health: Health) -> None:
    health.add_startup("stage", lambda: "connecting to NATS: no connection to nats://user:hunter2@nats:4222")
    text = (await client.get("/startupz?verbose")).text
    assert "nats:4222" in text
    assert "hunter2" not in text


async def test_starting_and_draining_are_not_ready(client: httpx2.AsyncClient, health: Health) -> None:
    health.started = False
    assert (await client.get("/startupz")).status_code == 503
    assert (await client.get("/readyz")).status_code == 503
    health.started = True
    assert (await client.get("/startupz")).status_code == 200
    health.draining = True
    assert (await client.get("/readyz")).status_code == 503
    assert (await client.get("/livez")).status_code == 200


async def test_metrics_are_openmetrics_with_our_prefix(client: httpx2.AsyncClient) -> None:
    await client.post("/echo", content=b"x")
    text = (await client.get("/metrics")).text
    assert 'landbridge_http_requests_total{route="/echo",status="200"}' in text
    assert text.rstrip().endswith("# EOF")


async def test_errors_are_problems_with_places(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/refuse/document")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": "Invalid",
        "status": 422,
        "detail": "one problem",
        "problems": [
            {
                "path": "spec.x",
                "code": "unknown-field",
                "message": "unknown field",
                "suggestion": "did you mean y?",
                "line": 3,
                "column": 5,
            }
        ],
        "operation": "op",
    }


@pytest.mark.parametrize(("kind", "status"), [("store", 503), ("bug", 500)])
async def test_failures_of_ours_tell_no_internals(client: httpx2.AsyncClient, kind: str, status: int) -> None:
    answer = await client.post(f"/refuse/{kind}")
    assert answer.status_code == status
    assert "hunter2" not in answer.text
    assert answer.json()["status"] == status


async def test_unknown_routes_and_methods_are_problems(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/nowhere")).json()["status"] == 404
    assert (await client.get("/echo")).json()["status"] == 405


async def test_a_body_above_the_limit_is_refused_announced_or_not(client: httpx2.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    assert (await client.post("/echo", content=b"x" * 1000)).json() == {"bytes": 1000}
    assert (await client.post("/echo", content=b"x" * 1001)).status_code == 413
    assert (await client.post("/echo", content=chunks())).status_code == 413


async def test_a_stalled_event_loop_is_noticed_and_measured() -> None:
    detector = StallDetector(threshold_s=0.4)
    task = asyncio.create_task(detector.run())
    await asyncio.sleep(0.01)
    time.sleep(0.9)  # the stall
    await asyncio.sleep(0.3)
    task.cancel()
    assert detector.stalls == 1
    assert detector.worst_s() > 0.3
