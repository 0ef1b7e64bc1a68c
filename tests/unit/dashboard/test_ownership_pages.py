"""What the dashboard says of a cut, and where words of people go."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from landbridge.runtime.auth import Authenticator, digest
from landbridge.runtime.health import Health
from landbridge.runtime.http import create_app
from landbridge_dashboard import pages, proxy, sessions
from landbridge_dashboard.query import Query
from landbridge_dashboard.settings import DashboardSettings

TOKEN = "a-token-that-is-long-enough-for-this"
ID = "6f1c2d3e-0000-5000-8000-00000000000a"
ANSWERS: dict[str, Any] = {
    "/v1/environments/onprem-a": {
        "environment": "onprem-a",
        "link": {"state": "lost", "since": "2026-11-30T10:00:00Z"},
        "evidence": {},
    },
    "/v1/environments/onprem-a/disconnection": {
        "text": ["Not heard since 30 Nov 10:00:00 UTC: nothing new starts there."],
        "operations": [
            {"operation": ID, "name": "sums", "notBefore": "2026-11-30T10:01:00Z", "text": "declared x: it <stops>"}
        ],
    },
    "/v1/operations": {"items": [], "cursor": None},
    f"/v1/operations/{ID}": {
        "operation": ID,
        "project": "p",
        "phase": "running",
        "environment": "onprem-a",
        "conditions": [{"type": "control-lost", "since": "2026-11-30T10:00:00Z", "reason": "environment-lost"}],
    },
    f"/v1/operations/{ID}/explanation": {"round": 1, "environments": []},
    f"/v1/operations/{ID}/events": {"items": []},
    f"/v1/operations/{ID}/ownership": {"text": ["Unknown since 30 Nov 10:00:00 UTC: onprem-a is not heard."]},
}


class Services:
    """All services; `gone` do not answer."""

    def __init__(self) -> None:
        self.gone: set[str] = set()

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.host in self.gone:
            raise httpx2.ConnectError("refused")
        return httpx2.Response(200, json=ANSWERS[request.url.path])


@pytest.fixture
def services() -> Services:
    return Services()


@pytest.fixture
def web(services: Services) -> Iterator[TestClient]:
    settings = DashboardSettings(lineage_url="http://lineage", coordinator_url="http://coordinator")
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(services))
    auth = Authenticator(digest(TOKEN), "key")
    app = create_app("test", Health())
    sessions.add_routes(app, auth)
    pages.add_routes(app, auth, Query(http, settings))
    with TestClient(app, follow_redirects=False) as client:
        client.get("/sign-in", params={"token": TOKEN})
        yield client


def test_a_lost_environments_page_says_what_becomes_of_its_work(web: TestClient) -> None:
    page = web.get("/environments/onprem-a").text
    assert "Not heard since 30 Nov 10:00:00 UTC" in page
    assert f'<a href="/operations/{ID}">sums</a>' in page
    assert "it &lt;stops&gt;" in page
    assert "30 Nov 10:01:00" in page


def test_an_operation_out_of_reach_says_unknown_since(web: TestClient) -> None:
    assert "Unknown since 30 Nov 10:00:00 UTC" in web.get(f"/operations/{ID}").text


@pytest.mark.parametrize("path", ["/environments/onprem-a", f"/operations/{ID}"])
def test_pages_do_without_the_coordinator(web: TestClient, services: Services, path: str) -> None:
    services.gone.add("coordinator")
    answer = web.get(path)
    assert answer.status_code == 200
    assert "onprem-a" in answer.text


@pytest.mark.parametrize(
    ("method", "path", "service"),
    [
        ("POST", "environments/x/declare-dead", "coordinator"),
        ("GET", "environments/x/reconciliation", "coordinator"),
        ("GET", "environments/x/disconnection", "coordinator"),
        ("GET", "operations/x/ownership", "coordinator"),
        ("POST", "operations/x/override", "coordinator"),
        ("POST", "operations/x/move", "coordinator"),
        ("GET", "expiry", "coordinator"),
        ("POST", "expiry/lift", "coordinator"),
        ("GET", "quarantine", "coordinator"),
        ("POST", "quarantine/a/x/1.1/stop", "coordinator"),
        ("GET", "audit", "coordinator"),
        ("GET", "recovery", "coordinator"),
        ("POST", "recovery/generation", "coordinator"),
        ("POST", "recovery/lineage", "lineage"),
        ("POST", "recovery/republish/coordinator", "coordinator"),
        ("POST", "recovery/republish/ranking", "ranking"),
        ("POST", "recovery/republish/contract-verifier", "contract_verifier"),
        ("GET", "environments/reconciliation", "lineage"),
        ("GET", "environments/x/probes", "contract_verifier"),
    ],
)
def test_words_of_people_go_to_the_service_that_acts_on_them(method: str, path: str, service: str) -> None:
    settings = DashboardSettings()
    assert proxy.owner_of(method, path, settings) == getattr(settings, f"{service}_url")
