"""`POST /v1/plan`: what would become of an operation if it were submitted now. Nothing is stored."""

from typing import TYPE_CHECKING, Any, Final

import msgspec
from fastapi import FastAPI, Request
from fastapi.responses import Response

from landbridge.domain.classify import classify
from landbridge.domain.documents import Document, read_document, render
from landbridge.runtime.asking import ask
from landbridge.runtime.auth import Role, check
from landbridge.runtime.http import JsonResponse
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.request_v1 import PlanRequest
from landbridge_intake.answers import refusal

if TYPE_CHECKING:
    from landbridge_intake.service import IntakeService

# Judging every environment and looking ahead is work; a person, or a pipeline, asks now and then.
A_MINUTE: Final = 120


def add_plan_route(app: FastAPI, service: "IntakeService") -> None:
    """Add the route."""

    @app.post("/v1/plan")
    async def plan(request: Request) -> Response:
        """Return every environment's verdict and scores, the likely place, and when it may start."""
        principal = service.auth.authenticate(request)
        check(principal, Role.VIEWER)
        async with service.committer.reading() as tx:
            await service.acceptor.view.refresh(tx)
        read = read_document(await request.body(), ("Operation",))
        if not isinstance(read, Document):
            raise refusal(read.problems)
        check(principal, Role.VIEWER, read.project)
        if not await service.redis.allow(f"plan:{principal.name}", limit=A_MINUTE, window_s=60):
            detail = f"{principal.name} may ask for {A_MINUTE} plans a minute"
            raise ProblemError(429, "Too many requests", detail, headers={"Retry-After": "10"})
        rendered = render(read, service.acceptor.view.catalogue)
        if isinstance(rendered, tuple):
            raise refusal(rendered)
        asked = classify(rendered.canonical)
        reply = await ask(service.bus, "ranking", "plan", PlanRequest(requirements=asked.body))
        if not reply.found:
            raise ProblemError(502, "Unreadable answer", reply.message)
        answer: dict[str, Any] = msgspec.json.decode(reply.json)
        return JsonResponse({"name": read.name, "project": read.project, **answer})
