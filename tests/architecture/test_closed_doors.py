"""No port of any service does or tells anything without credentials, but for health, metrics and the way in."""

import re
import warnings
from collections.abc import Iterator

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from landbridge.runtime.service import Service
from landbridge.runtime.settings import Settings
from landbridge_alerting.service import AlertingService
from landbridge_alerting.settings import AlertingSettings
from landbridge_contract_verifier.service import ContractVerifierService
from landbridge_contract_verifier.settings import VerifierSettings
from landbridge_dashboard.service import Dashboard
from landbridge_dashboard.settings import DashboardSettings
from landbridge_dispatch.coordinator.service import CoordinatorService
from landbridge_dispatch.coordinator.settings import CoordinatorSettings
from landbridge_eligibility.service import EligibilityService
from landbridge_intake.service import IntakeService
from landbridge_intake.settings import IntakeSettings
from landbridge_lineage.service import LineageService
from landbridge_ranking.service import RankingService

SERVICES: list[tuple[type[Service], type[Settings]]] = [
    (AlertingService, AlertingSettings),
    (ContractVerifierService, VerifierSettings),
    (CoordinatorService, CoordinatorSettings),
    (Dashboard, DashboardSettings),
    (EligibilityService, Settings),
    (IntakeService, IntakeSettings),
    (LineageService, Settings),
    (RankingService, Settings),
]
HEALTH = {"/livez", "/readyz", "/readyz/{name}", "/startupz", "/metrics"}
# Where people sign in, and what is passed on with its credentials to the service that owns it, which refuses it.
OPEN = {"/sign-in", "/sign-out"}
PASSED_ON = "/v1/{path:path}"
UNKNOWN = "0190a1b2-0000-7000-8000-00000000dead"


@pytest.fixture(params=SERVICES, ids=[kind.name for kind, _ in SERVICES])
def service(request: pytest.FixtureRequest) -> Service:
    kind, settings = request.param
    made: Service = kind(settings())
    made.routes(made.app)
    made.health.started = True
    return made


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is not connected yet is not closed either
        yield TestClient(service.app, raise_server_exceptions=False, follow_redirects=False)


def doors(service: Service) -> list[tuple[str, str]]:
    """Every method and path, but for those that are meant to be open."""
    return sorted(
        (method, route.path)
        for route in service.app.routes
        if isinstance(route, APIRoute) and route.path not in HEALTH | OPEN
        for method in route.methods or ()
    )


def refused(client: TestClient, method: str, path: str, headers: dict[str, str]) -> bool:
    address = re.sub(r"\{[^}]*\}", UNKNOWN, path)
    answer = client.request(method, address, headers=headers, content=b"{}" if method in {"POST", "PUT"} else None)
    sent_to_sign_in = answer.status_code == 303 and answer.headers["location"].startswith("/sign-in")
    nobody_behind = path == PASSED_ON and answer.status_code == 503
    return answer.status_code == 401 or sent_to_sign_in or nobody_behind


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer lb_not-a-token-of-this-instance-0000000000000"},
        {"Authorization": "Basic YWRtaW46YWRtaW4="},
        {"Cookie": "landbridge_session=admin.9999999999.deadbeef"},
    ],
    ids=["nothing", "empty", "unknown", "basic", "cookie"],
)
def test_every_door_is_closed(service: Service, client: TestClient, headers: dict[str, str]) -> None:
    found = doors(service)
    assert found, "a service without routes of its own needs no place in this list"
    assert [door for door in found if not refused(client, *door, headers)] == []


def test_what_is_open_tells_nothing_of_anybodys_work(service: Service, client: TestClient) -> None:
    for path in sorted(HEALTH):
        answer = client.get(path.replace("{name}", "nats"))
        assert answer.status_code in {200, 404, 503}
        assert "Bearer" not in answer.text
