"""Who may do what in the dashboard, without any service behind it."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from landbridge.runtime.auth import COOKIE, Authenticator, digest
from landbridge.runtime.health import Health
from landbridge.runtime.http import create_app
from landbridge_dashboard import pages, proxy, sessions
from landbridge_dashboard.query import Query
from landbridge_dashboard.settings import DashboardSettings

TOKEN = "a-token-that-is-long-enough-for-this"


class Upstream:
    """Stands for all other services; remembers what it was asked."""

    def __init__(self) -> None:
        self.seen: list[httpx2.Request] = []
        self.fails: Exception | None = None

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.seen.append(request)
        if self.fails is not None:
            raise self.fails
        return httpx2.Response(200, json={"items": [], "cursor": None})


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
def web(upstream: Upstream) -> Iterator[TestClient]:
    settings = DashboardSettings(intake_url="http://intake", lineage_url="http://lineage")
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(upstream))
    auth = Authenticator(digest(TOKEN), "key")
    app: FastAPI = create_app("test", Health())
    pages.Headers.install(app)
    sessions.add_routes(app, auth)
    pages.add_routes(app, auth, Query(http, settings))
    proxy.add_routes(app, http, settings)
    with TestClient(app, follow_redirects=False) as client:
        yield client


def sign_in(web: TestClient) -> Any:
    return web.get("/sign-in", params={"token": TOKEN, "next": "/queues"})


def test_without_a_session_every_page_leads_to_the_sign_in_page_and_back(web: TestClient) -> None:
    answer = web.get("/operations?phase=failed")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=%2Foperations%3Fphase%3Dfailed"


def test_a_good_token_becomes_a_cookie_that_scripts_cannot_read(web: TestClient) -> None:
    answer = sign_in(web)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/queues"
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=lax" in answer.headers["set-cookie"]
    assert TOKEN not in answer.headers["set-cookie"]


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nSet-Cookie: x"])
def test_signing_in_never_leads_to_another_site(web: TestClient, target: str) -> None:
    answer = web.get("/sign-in", params={"token": TOKEN, "next": target})
    assert answer.headers["location"] == "/"


def test_a_wrong_token_is_refused_in_words(web: TestClient) -> None:
    answer = web.get("/sign-in", params={"token": "wrong-but-long-enough-token"})
    assert answer.status_code == 401
    assert "not known here" in answer.text


def test_a_cookie_alone_may_read_but_not_change(web: TestClient, upstream: Upstream) -> None:
    sign_in(web)
    assert COOKIE in web.cookies
    assert web.get("/v1/operations").status_code == 200
    assert upstream.seen[-1].headers["cookie"]
    assert web.post("/v1/operations", content="{}").status_code == 401
    assert web.post("/v1/operations", content="{}", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert "cookie" not in upstream.seen[-1].headers


@pytest.mark.parametrize(
    ("method", "path", "service"),
    [
        ("POST", "operations", "intake"),
        ("POST", "operations:bulk", "intake"),
        ("POST", "operations/x/cancel", "intake"),
        ("GET", "operations/x", "lineage"),
        ("GET", "documents/queue", "intake"),
        ("POST", "environments/x/pause", "intake"),
        ("POST", "environments/x/join", "contract_verifier"),
        ("POST", "access", "contract_verifier"),
        ("GET", "environments", "lineage"),
        ("GET", "alerts", "alerting"),
        ("GET", "ranking/queues", "ranking"),
        ("POST", "operations/x/override", "coordinator"),
    ],
)
def test_each_path_goes_to_the_service_that_owns_it(method: str, path: str, service: str) -> None:
    settings = DashboardSettings()
    assert proxy.owner_of(method, path, settings) == getattr(settings, f"{service}_url")


@pytest.mark.parametrize(
    "failure", [httpx2.ReadError("reset"), RuntimeError("the handler is closed"), OSError("reset")]
)
def test_a_service_that_ends_during_a_request_is_a_reason_to_try_again(
    web: TestClient, upstream: Upstream, failure: Exception
) -> None:
    upstream.fails = failure
    answer = web.post("/v1/operations", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")


def test_pages_allow_no_script_of_others_and_no_frames(web: TestClient) -> None:
    policy = web.get("/sign-in").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_an_unknown_page_says_so(web: TestClient) -> None:
    sign_in(web)
    assert web.get("/environments/a/b").status_code == 404
