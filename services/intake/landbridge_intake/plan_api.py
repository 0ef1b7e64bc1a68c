"""`POST /v1/plan`: what would become of operations if they were submitted now. Nothing is stored."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from fastapi import FastAPI, Request
from fastapi.responses import Response

from landbridge.domain.classify import classify
from landbridge.domain.documents import Document, Refusal, read_documents, render
from landbridge.domain.errors import Problem
from landbridge.runtime.asking import ask
from landbridge.runtime.auth import Principal, Role, check
from landbridge.runtime.http import JsonResponse
from landbridge.runtime.problems import ProblemError, problem_members
from landbridge.schema.wire.request_v1 import PlanRequest
from landbridge_intake import gangs
from landbridge_intake.answers import refusal

if TYPE_CHECKING:
    from landbridge_intake.service import IntakeService

# Judging every environment and looking ahead is work; a person, or a pipeline, asks now and then.
A_MINUTE: Final = 120
# As many as a gang may have members.
MOST_TOGETHER: Final = 100


class _Ready(msgspec.Struct, frozen=True):
    """An operation that would be accepted, with what ranking has to know."""

    name: str
    project: str
    requirements: bytes


class _Unfit(msgspec.Struct, frozen=True):
    """An operation that would be refused, with everything that is wrong."""

    name: str
    project: str
    problems: tuple[Problem, ...]


def add_plan_route(app: FastAPI, service: "IntakeService") -> None:
    """Add the route."""

    @app.post("/v1/plan")
    async def plan(request: Request) -> Response:
        """Return every environment's verdict and scores, the likely place, and when it may start.

        Several documents, separated by `---`, are planned together: {items}, one for each, in their order. One that
        would be refused has its `problems` there, and the others are planned without it.
        """
        principal = service.auth.authenticate(request)
        check(principal, Role.VIEWER)
        async with service.committer.reading() as tx:
            await service.acceptor.view.refresh(tx)
        read = read_documents(await request.body(), ("Operation",))
        if len(read) > MOST_TOGETHER:
            detail = f"expected at most {MOST_TOGETHER} operations, found {len(read)}"
            raise ProblemError(413, "Too large", detail)
        if len(read) == 1 and isinstance(read[0], Refusal):
            raise refusal(read[0].problems)
        for each in read:
            if isinstance(each, Document):
                check(principal, Role.VIEWER, each.project)
        await _allow(service, principal, len(read))
        known: dict[gangs.Key, gangs.Known] = {}
        items = [_prepared(service, each, known) for each in read]
        if len(items) == 1:
            if isinstance(items[0], _Unfit):
                raise refusal(items[0].problems)
            [answer] = await _answers(service, [items[0]])
            return JsonResponse({"name": items[0].name, "project": items[0].project, **answer})
        return JsonResponse({"items": await _together(service, items)})


async def _allow(service: "IntakeService", principal: Principal, operations: int) -> None:
    """Count operations, however many are planned together: each costs about as much."""
    if not await service.redis.allow(f"plan:{principal.name}", limit=A_MINUTE, window_s=60, uses=operations):
        detail = f"{principal.name} may have {A_MINUTE} operations planned a minute"
        raise ProblemError(429, "Too many requests", detail, headers={"Retry-After": "10"})


def _prepared(
    service: "IntakeService", read: Document | Refusal, known: dict[gangs.Key, gangs.Known]
) -> _Ready | _Unfit:
    """Render and classify as a submission would be. Members of a gang are held to what the first here declares."""
    if isinstance(read, Refusal):
        return _Unfit(read.name, read.project, read.problems)
    rendered = render(read, service.acceptor.view.catalogue)
    if isinstance(rendered, tuple):
        return _Unfit(read.name, read.project, rendered)
    gang = gangs.gang_of(rendered.value)
    if gang.name:
        found = known.setdefault((read.project, gang.name), gangs.Known(gang, read.name, 0))
        if problems := found.problems(gang):
            return _Unfit(read.name, read.project, problems)
        found.members += 1
    return _Ready(read.name, read.project, classify(rendered.canonical).body)


async def _together(service: "IntakeService", items: Sequence[_Ready | _Unfit]) -> list[dict[str, Any]]:
    ready = [item for item in items if isinstance(item, _Ready)]
    answers = iter(await _answers(service, ready) if ready else ())
    return [
        {"name": item.name, "project": item.project, **next(answers)}
        if isinstance(item, _Ready)
        else {
            "name": item.name,
            "project": item.project,
            "problems": [problem_members(problem) for problem in item.problems],
        }
        for item in items
    ]


async def _answers(service: "IntakeService", ready: Sequence[_Ready]) -> list[dict[str, Any]]:
    """Ask ranking. Raises ProblemError if it does not answer, or cannot."""
    first, *others = [item.requirements for item in ready]
    reply = await ask(service.bus, "ranking", "plan", PlanRequest(requirements=first, together=tuple(others)))
    if not reply.found:
        told = msgspec.json.decode(reply.json, type=dict[str, Any]) if reply.json else {}
        raise ProblemError(told.get("status", 502), told.get("title", "Unreadable answer"), reply.message)
    answer: dict[str, Any] = msgspec.json.decode(reply.json)
    found = answer.get("items") if others else [answer]
    if not isinstance(found, list) or len(found) != len(ready):
        # A ranking of the release before answers for the first alone.
        detail = f"ranking answered for another number of operations than the {len(ready)} that were asked about"
        raise ProblemError(503, "Try again", detail, headers={"Retry-After": "10"})
    return found
