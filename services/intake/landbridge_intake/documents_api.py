"""HTTP routes for documents (all kinds but Operation) and for what operators want of environments."""

from typing import TYPE_CHECKING, Any

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import Response

from landbridge.bus.envelope import Outbound
from landbridge.domain.documents import KINDS, Document, Kind, Refusal, find_kind, read_documents
from landbridge.domain.documents.nearest import did_you_mean
from landbridge.domain.errors import Problem
from landbridge.runtime.auth import Principal, Role, check
from landbridge.runtime.http import JsonResponse
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.request_v1 import ControlAction
from landbridge.store import Tx
from landbridge_intake import documents, messages, store
from landbridge_intake.answers import refusal
from landbridge_intake.operations_api import wish_in

if TYPE_CHECKING:
    from landbridge_intake.service import IntakeService

_APPLIED = tuple(name for name in KINDS if name != "Operation")
# What shapes work belongs to operators, what divides the place between tenants to admins.
_OPERATOR_KINDS = frozenset(("Component", "Preset", "Connection", "EnvironmentContract"))
_ACTIONS = tuple(action.value for action in ControlAction if action.value)


def add_document_routes(app: FastAPI, service: "IntakeService") -> None:
    """Add the routes that are about documents and environments."""
    _add_reading(app, service)

    @app.post("/v1/documents")
    async def apply(request: Request, draft: bool = False) -> Response:
        """Store documents. With `draft`, which is for environment contracts, they are kept and probed, and not used."""
        principal = service.auth.authenticate(request)
        return await _apply(service, principal, await request.body(), draft=draft)

    @app.delete("/v1/documents/{kind}/{name}")
    async def remove(request: Request, kind: str, name: str, version: int = 0) -> Response:
        principal = service.auth.authenticate(request)
        known = _kind(kind, owned=False)
        check(principal, _role_for(known))
        return await _remove(service, principal, known, name, version)

    @app.post("/v1/environments/{name}/{action}")
    async def control(request: Request, name: str, action: str) -> Response:
        principal = service.auth.authenticate(request)
        check(principal, Role.OPERATOR)
        return await _control(service, principal, name, action, (await wish_in(request)).reason)


def _add_reading(app: FastAPI, service: "IntakeService") -> None:
    @app.get("/v1/documents/{kind}")
    async def listed(request: Request, kind: str) -> Response:
        principal, known = _reader(service, request), _kind(kind)
        async with service.committer.reading() as tx:
            rows = await store.current_documents(tx, known.slug, versioned=known.versioned)
        rows = [row for row in rows if known.name != "Project" or principal.sees(row["name"])]
        return JsonResponse({"items": [_members(known, row["name"], row) for row in rows]})

    @app.get("/v1/documents/{kind}/{name}")
    async def one(request: Request, kind: str, name: str, version: int = 0) -> Response:
        principal, known = _reader(service, request), _kind(kind)
        async with service.committer.reading() as tx:
            rows = await store.document_versions(tx, known.slug, name)
        rows = [row for row in rows if not row["deleted"]] if known.versioned else _unless_removed(rows)
        wanted = [row for row in rows if version in (0, row["version"])]
        if not wanted or (known.name == "Project" and not principal.sees(name)):
            raise await _not_found(service, known, name)
        versions = {"versions": [row["version"] for row in rows]}
        return JsonResponse({**_members(known, name, wanted[-1]), **versions})


async def _apply(service: "IntakeService", principal: Principal, body: bytes, *, draft: bool) -> Response:
    found = _readable(read_documents(body, _APPLIED))
    for document in found:
        check(principal, _role_for(document.kind))
        if draft and document.kind.slug != documents.CONTRACT:
            what = f"{document.kind.name} {document.name}"
            raise ProblemError(422, "Invalid request", f"draft: expected environment contracts, found {what}")
    at = service.clock.wall()

    async def work(tx: Tx) -> tuple[list[documents.Applied], list[Outbound]]:
        return await documents.apply(tx, found, principal.name, at, draft=draft)

    service.committer.check_capacity()
    try:
        applied = await service.committer.run(work)
    except documents.VersionConflict as conflict:
        raise refusal([conflict.problem], conflict=True) from conflict
    members = [item.members() for item in applied]
    status = 202 if all(item.forwarded for item in applied) else 200
    return JsonResponse(members[0] if len(members) == 1 else {"items": members}, status)


async def _control(service: "IntakeService", principal: Principal, name: str, action: str, reason: str) -> Response:
    if action not in _ACTIONS:
        hint = did_you_mean(action, _ACTIONS) or f"actions are {', '.join(_ACTIONS)}"
        raise ProblemError(404, "Not found", f"no action {action!r}; {hint}")
    if name not in service.environments:
        hint = did_you_mean(name, sorted(service.environments))
        raise ProblemError(404, "Not found", f"no environment {name!r}" + (f"; {hint}" if hint else ""))
    wish = messages.control(name, action, principal.name, reason)

    async def work(_: Tx) -> tuple[None, list[Outbound]]:
        return None, [wish]

    await service.committer.run(work)
    return JsonResponse({"environment": name, "requested": action}, 202)


def _role_for(kind: Kind) -> Role:
    return Role.OPERATOR if kind.name in _OPERATOR_KINDS else Role.ADMIN


def _reader(service: "IntakeService", request: Request) -> Principal:
    principal = service.auth.authenticate(request)
    check(principal, Role.VIEWER)
    return principal


def _kind(text: str, *, owned: bool = True) -> Kind:
    """Return the kind in an address. Raises ProblemError 404 for unknown ones and for those of other services."""
    kind = find_kind(text)
    slugs = [each.slug for each in KINDS.values() if each.name in _APPLIED]
    if kind is None or kind.name == "Operation":
        hint = did_you_mean(text, slugs) or f"kinds are {', '.join(slugs)}"
        raise ProblemError(404, "Not found", f"no kind {text!r} of documents; {hint}")
    if owned and kind.slug == documents.CONTRACT:
        raise ProblemError(404, "Not found", "contracts are kept by the contract verifier; read /v1/environments")
    return kind


def _readable(found: list[Document | Refusal]) -> list[Document]:
    """Return the documents of a request. Raises ProblemError 422 with the problems of all of them."""
    problems: list[Problem] = []
    for number, read in enumerate(found):
        if isinstance(read, Refusal):
            where = f"[{number}] " if len(found) > 1 and not any(problem.line for problem in read.problems) else ""
            problems += [
                Problem(where + p.path, p.code, p.message, p.suggestion, p.line, p.column) for p in read.problems
            ]
    if problems:
        raise refusal(problems)
    return [read for read in found if isinstance(read, Document)]


def _members(kind: Kind, name: str, row: Any) -> dict[str, Any]:
    return {
        "kind": kind.slug,
        "name": name,
        "version": row["version"],
        "document": orjson.loads(row["document"]),
        "appliedBy": row["applied_by"],
        "at": row["at"],
    }


def _unless_removed(rows: list[Any]) -> list[Any]:
    """Return the versions of a document whose newest row alone counts; nothing if that row is its end."""
    return [row for row in rows if not row["deleted"]] if rows and not rows[-1]["deleted"] else []


async def _not_found(service: "IntakeService", kind: Kind, name: str) -> ProblemError:
    async with service.committer.reading() as tx:
        rows = await store.current_documents(tx, kind.slug, versioned=kind.versioned)
    hint = did_you_mean(name, [row["name"] for row in rows]) if kind.name != "Project" else ""
    return ProblemError(404, "Not found", f"no {kind.slug} {name!r}" + (f"; {hint}" if hint else ""))


async def _remove(service: "IntakeService", principal: Principal, kind: Kind, name: str, version: int) -> Response:
    at = service.clock.wall()
    if kind.slug == documents.CONTRACT:
        wish = messages.removal(kind.slug, name, principal.name)

        async def forward(_: Tx) -> tuple[None, list[Outbound]]:
            return None, [wish]

        await service.committer.run(forward)
        return JsonResponse({"kind": kind.slug, "name": name, "requested": "remove"}, 202)

    async def work(tx: Tx) -> tuple[bool, list[Outbound]]:
        await service.acceptor.view.refresh(tx)
        users = service.acceptor.view.users_of(kind.slug, name) if not version else []
        if users:
            raise ProblemError(409, "Conflict", f"{kind.slug} {name} is used by {', '.join(users)}; change that first")
        events = await documents.remove(
            tx, kind.slug, name, principal.name, at, versioned=kind.versioned, version=version
        )
        return bool(events), events

    if not await service.committer.run(work):
        raise await _not_found(service, kind, name)
    return Response(status_code=204)
