"""The pages: each path to its fragment, for the first answer and for the live stream alike."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from fastapi import FastAPI, Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from landbridge.runtime.auth import Authenticator
from landbridge.runtime.problems import ProblemError
from landbridge_dashboard import places, views
from landbridge_dashboard.query import AskError, Query
from landbridge_dashboard.render import page, part
from landbridge_dashboard.sessions import to_sign_in
from landbridge_dashboard.text import TONES, clock

Values = dict[str, Any]
_FILTERS = ("project", "queue", "environment", "phase")
_OPEN = ("accepted", "queued", "pending", "running", "retrying")
_POLICY = (
    "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    "object-src 'none'"
)


class Headers:
    """ASGI middleware: what browsers must know of every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    @staticmethod
    def install(app: FastAPI) -> None:
        app.add_middleware(Headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = _POLICY
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "same-origin"
            await send(message)

        await self._app(scope, receive, add if scope["type"] == "http" else send)


async def _overview(query: Query, cookie: str, _: str, __: Values) -> tuple[str, str, str, Values]:
    overview, listed, environments = await asyncio.gather(
        query.lineage("overview", cookie),
        query.lineage("operations", cookie, limit=12),
        query.lineage("environments", cookie),
    )
    counts: dict[str, int] = overview.get("phases") or overview.get("counts") or {}
    cards = [places.environment_card(each) for each in environments["items"]]
    alerts, notices = await _firing(query, cookie)
    attention = [*alerts, *_attention(listed["items"], cards)]
    return (
        "overview.html",
        "Overview",
        "/",
        {
            "total": sum(counts.values()),
            "active": sum(counts.get(phase, 0) for phase in _OPEN),
            "phases": [{"phase": phase, "count": counts.get(phase, 0)} for phase in TONES],
            "environments": cards,
            "operations": [views.operation_row(each) for each in listed["items"]],
            "attention": attention[:12],
            "notices": notices,
        },
    )


async def _firing(query: Query, cookie: str) -> tuple[list[Values], list[Values]]:
    try:
        found = await query.alerting("alerts", cookie)
    except AskError as error:
        return [], [{"tone": "", "text": f"Alerts cannot be shown: {error.text}"}]
    firing = [each for each in found["items"] if each.get("state") == "firing"]
    return [
        {"tone": "bad", "title": a["summary"], "text": a.get("description", ""), "href": "/alerts"} for a in firing
    ], []


def _attention(items: list[Values], cards: list[Values]) -> list[Values]:
    found = [
        {"tone": "bad", "title": card["name"], "text": card["note"], "href": f"/environments/{card['name']}"}
        for card in cards
        if card["note"]
    ]
    for item in items:
        head = views.operation_head(item)
        if head["phase"] == "failed" or head["condition"] == "unplaceable":
            title = f"{head['name'] or head['id'][:8]} {'failed' if head['phase'] == 'failed' else 'is unplaceable'}"
            tone = "bad" if head["phase"] == "failed" else "warn"
            found.append({"tone": tone, "title": title, "text": head["notice"], "href": f"/operations/{head['id']}"})
    return found


async def _operations(query: Query, cookie: str, _: str, params: Values) -> tuple[str, str, str, Values]:
    filters = {name: str(params.get(name, "")) for name in _FILTERS}
    asked = {name: value for name, value in filters.items() if value}
    listed = await query.lineage("operations", cookie, limit=50, cursor=params.get("cursor", ""), **asked)
    rows = [views.operation_row(each) for each in listed["items"]]
    cursor = listed["cursor"] or ""
    described = ", ".join(f"{name} {value}" for name, value in asked.items())
    values = {
        "operations": rows,
        "filters": filters,
        "filtered": bool(asked),
        "all_phases": list(TONES),
        "summary": f"Newest first{', ' + described if described else ''}",
        "next_page": f"/operations?{urlencode({**asked, 'cursor': cursor})}" if cursor else "",
    }
    return "operations.html", "Operations", "/operations", values


async def _uncertain(query: Query, cookie: str, path: str) -> Values:
    """Ask the coordinator what a cut means; where it does not answer, the page goes without."""
    try:
        return dict(await query.coordinator(path, cookie))
    except AskError:
        return {}


async def _operation(query: Query, cookie: str, name: str, _: Values) -> tuple[str, str, str, Values]:
    safe = quote(name, safe="")
    item, explained, events = await asyncio.gather(
        query.lineage(f"operations/{safe}", cookie),
        query.lineage(f"operations/{safe}/explanation", cookie),
        query.lineage(f"operations/{safe}/events", cookie),
    )
    uncertain: Values = {}
    if any(held.get("type") in ("control-lost", "possible-overlap") for held in item.get("conditions", ())):
        uncertain = await _uncertain(query, cookie, f"operations/{safe}/ownership")
    values = {
        "op": views.operation_head(item),
        "uncertain": uncertain.get("text", ()),
        "drift": places.drift_rows(item),
        "gantt": views.gantt(item),
        "placement": views.placement(explained),
        "facts": views.facts(item),
        "outputs": views.outputs(item),
        "timeline": views.timeline(events["items"]),
    }
    return "operation.html", item.get("name") or name[:8], "/operations", values


async def _environments(query: Query, cookie: str, _: str, __: Values) -> tuple[str, str, str, Values]:
    found = await query.lineage("environments", cookie)
    values = {"environments": [places.environment_card(each) for each in found["items"]]}
    return "environments.html", "Environments", "/environments", values


async def _environment(query: Query, cookie: str, name: str, _: Values) -> tuple[str, str, str, Values]:
    detail, listed = await asyncio.gather(
        query.lineage(f"environments/{quote(name, safe='')}", cookie),
        query.lineage("operations", cookie, environment=name, limit=15),
    )
    lost: Values = {}
    if (detail.get("link") or {}).get("state") == "lost":
        lost = await _uncertain(query, cookie, f"environments/{quote(name, safe='')}/disconnection")
    values = {
        "env": places.environment_card(detail),
        "lost": places.lost_view(lost),
        "drift": places.drift_rows(detail),
        "evidence": places.evidence_rows(detail),
        "control": places.control_facts(detail),
        "contract": places.contract_facts(detail),
        "operations": [views.operation_row(each) for each in listed["items"]],
    }
    return "environment.html", name, "/environments", values


async def _queues(query: Query, cookie: str, _: str, __: Values) -> tuple[str, str, str, Values]:
    found = await query.lineage("queues", cookie)
    return "queues.html", "Queues", "/queues", {"queues": places.queue_rows(found["items"])}


async def _alerts(query: Query, cookie: str, _: str, __: Values) -> tuple[str, str, str, Values]:
    problem, items = "", []
    try:
        items = (await query.alerting("alerts", cookie))["items"]
    except AskError as error:
        problem = error.text
    rows = [
        {
            "summary": each.get("summary") or each.get("rule", ""),
            "description": each.get("description", ""),
            "state": each.get("state", ""),
            "tone": "bad" if each.get("state") == "firing" else "good",
            "severity": each.get("severity", ""),
            "since": clock(each.get("startsAt")),
        }
        for each in items
    ]
    return "alerts.html", "Alerts", "/alerts", {"alerts": rows, "problem": problem}


_Maker = Callable[[Query, str, str, Values], Awaitable[tuple[str, str, str, Values]]]
_EXACT: dict[str, _Maker] = {
    "/": _overview,
    "/operations": _operations,
    "/environments": _environments,
    "/queues": _queues,
    "/alerts": _alerts,
}
_BELOW: dict[str, _Maker] = {"operations": _operation, "environments": _environment}


async def _make(path: str, query: Query, cookie: str) -> tuple[str, str, str, Values]:
    """Return template, title, section and values of a page. Raises AskError."""
    parts = urlsplit(path)
    maker = _EXACT.get(parts.path)
    if maker is not None:
        return await maker(query, cookie, "", dict(parse_qsl(parts.query)))
    section, _, name = parts.path.strip("/").partition("/")
    below = _BELOW.get(section)
    if below is None or not name or "/" in name:
        raise AskError(404, f"There is no page {parts.path}")
    return await below(query, cookie, name, dict(parse_qsl(parts.query)))


def _problem(error: AskError) -> Values:
    headings = {404: "Not found", 403: "Not allowed", 401: "Not signed in", 503: "Not available now"}
    heading = headings.get(error.status, "This page cannot be shown")
    return {"heading": heading, "text": error.text, "back": "/", "back_text": "Overview"}


async def fragment_of(path: str, query: Query, cookie: str) -> str:
    """Return the fragment of a page; a page that cannot be shown now says why."""
    try:
        template, _, _, values = await _make(path, query, cookie)
    except AskError as error:
        return part("problem.html", **_problem(error))
    return part(template, **values)


def add_routes(app: FastAPI, auth: Authenticator, query: Query) -> None:
    """Add all pages."""

    async def show(request: Request) -> Response:
        try:
            principal = auth.authenticate(request)
        except ProblemError:
            return to_sign_in(request)
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        live = f"/live?path={quote(path, safe='')}"
        try:
            template, title, section, values = await _make(path, query, request.headers.get("cookie", ""))
        except AskError as error:
            values = _problem(error)
            lasting = live if error.status == 503 else ""
            return page(
                "problem.html",
                values["heading"],
                principal=principal.name,
                live=lasting,
                status=error.status,
                **values,
            )
        return page(template, title, section=section, principal=principal.name, live=live, **values)

    for path in (*_EXACT, *(f"/{section}/{{name}}" for section in _BELOW)):
        app.add_api_route(path, show, methods=["GET"], include_in_schema=False)
