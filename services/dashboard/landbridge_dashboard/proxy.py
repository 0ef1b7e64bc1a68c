"""The one address of the HTTP API: each path of /v1 goes on to the service that owns it.

Programs send a bearer token, which travels on unchanged. Changes need it: a session cookie alone may only read,
so that no other site can make a signed-in person change anything.
"""

import re
from collections.abc import AsyncIterator

import httpx2
from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse

from landbridge.runtime.problems import ProblemError
from landbridge_dashboard.settings import DashboardSettings

_READ = frozenset({"GET", "HEAD"})
_PASSED = (
    "authorization",
    "content-type",
    "accept",
    "idempotency-key",
    "traceparent",
    "tracestate",
    "last-event-id",
    "cookie",
)
_RETURNED = ("content-type", "retry-after", "location", "cache-control", "www-authenticate")
_TO_VERIFIER = re.compile(r"environments/[^/]+/(join$|probes$|control(/|$))|access(/|$)")
_TO_INTAKE_READ = re.compile(r"documents(/|$)")
_TO_ALERTING = re.compile(r"(alerts|silences)(/|$)")
_TO_COORDINATOR = re.compile(
    r"environments/[^/]+/(declare-dead|reconciliation|disconnection)$|operations/[^/]+/(override|move|queue|ownership)$"
    r"|(expiry|quarantine|recovery|audit)(/|$)"
)
_RECOVERY = re.compile(
    r"recovery/(republish/)?(?P<service>intake|eligibility|ranking|coordinator|contract-verifier|lineage)$"
)
_TO_RANKING = re.compile(r"ranking/")


def owner_of(method: str, path: str, settings: DashboardSettings) -> str:
    """Return the base URL of the service that owns `path` (without `/v1/`)."""
    if _TO_VERIFIER.match(path):
        return settings.contract_verifier_url
    if _TO_ALERTING.match(path):
        return settings.alerting_url
    recovering = _RECOVERY.match(path)
    if recovering:
        return str(getattr(settings, f"{recovering['service'].replace('-', '_')}_url"))
    if _TO_COORDINATOR.match(path):
        return settings.coordinator_url
    if _TO_RANKING.match(path):
        return settings.ranking_url
    if method in _READ:
        return settings.intake_url if _TO_INTAKE_READ.match(path) else settings.lineage_url
    return settings.intake_url


def _passed_headers(request: Request) -> dict[str, str]:
    headers = {name: value for name, value in request.headers.items() if name in _PASSED or name.startswith("ce-")}
    if "authorization" in headers:
        headers.pop("cookie", None)
    return headers


def add_routes(app: FastAPI, http: httpx2.AsyncClient, settings: DashboardSettings) -> None:
    """Add /v1/**."""

    @app.api_route("/v1/{path:path}", methods=["GET", "HEAD", "POST", "PUT", "DELETE"], include_in_schema=False)
    async def forward(request: Request, path: str) -> Response:
        if request.method not in _READ and "authorization" not in request.headers:
            raise ProblemError(401, "Not signed in", "changes need Authorization: Bearer <token>")
        url = f"{owner_of(request.method, path, settings)}/v1/{path}"
        upstream = http.build_request(
            request.method,
            url,
            params=list(request.query_params.multi_items()),
            headers=_passed_headers(request),
            content=await request.body() if request.method not in _READ else None,
        )
        try:
            answer = await http.send(upstream, stream=True)
        except (httpx2.TransportError, RuntimeError, OSError) as error:
            # The latter two: the event loop's own words for a connection that closed while it was written to.
            detail = "the service behind this path does not answer; `landbridge status` names it"
            raise ProblemError(503, "Try again", detail, headers={"Retry-After": "2"}) from error
        headers = {name: value for name, value in answer.headers.items() if name.lower() in _RETURNED}
        return StreamingResponse(_body(answer), answer.status_code, headers)


async def _body(answer: httpx2.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.aiter_bytes():
            yield piece
    finally:
        await answer.aclose()
