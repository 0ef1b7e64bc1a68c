"""HTTP routes for operations: submit one or many, as documents or CloudEvents; cancel, retry; check a document."""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import orjson
from fastapi import FastAPI, Request
from fastapi.responses import Response

from landbridge.bus.envelope import Outbound
from landbridge.domain.documents import Document, Rendered, read_documents, render
from landbridge.domain.ids import cloud_event_key
from landbridge.runtime.auth import Principal, Role, check
from landbridge.runtime.http import JsonResponse
from landbridge.runtime.ids import new_id
from landbridge.runtime.problems import ProblemError, problem_members
from landbridge.runtime.telemetry import from_headers
from landbridge.store import Tx
from landbridge_intake import messages, store
from landbridge_intake.accept import CREATED, EXISTING, Submission
from landbridge_intake.answers import STATUS, accepted_members, error_of, item_members, problem_count
from landbridge_intake.bulk import Item, read_items
from landbridge_intake.cloud_events import is_batch, read_events

if TYPE_CHECKING:
    from landbridge_intake.service import IntakeService

_REASON_MAX = 1000


def add_operation_routes(app: FastAPI, service: "IntakeService") -> None:
    """Add the routes that are about operations."""
    _add_submitting(app, service)
    _add_wishes(app, service)

    @app.post("/v1/validate")
    async def validate(request: Request) -> Response:
        principal = service.auth.authenticate(request)
        check(principal, Role.VIEWER)
        return JsonResponse(await _validate(service, principal, await request.body()))


def _add_submitting(app: FastAPI, service: "IntakeService") -> None:
    @app.post("/v1/operations")
    async def submit(request: Request) -> Response:
        principal = _submitter(service, request)
        key = request.headers.get("idempotency-key") or new_id()
        return await _submit_one(service, principal, await request.body(), key, f"http/{principal.name}", key, request)

    @app.post("/v1/operations:bulk")
    async def bulk(request: Request) -> Response:
        principal = _submitter(service, request)
        content_type = request.headers.get("content-type", "").lower()
        items = read_items(await request.body(), content_type, request.headers.get("idempotency-key", ""))
        items = [Item(item.body, item.key or new_id()) for item in items]
        return await _submit_many(service, principal, items)

    @app.post("/v1/events")
    async def events(request: Request) -> Response:
        principal = _submitter(service, request)
        headers = dict(request.headers)
        found = read_events(headers, await request.body())
        if is_batch(headers):
            items = [Item(event.body, cloud_event_key(event.source, event.id)) for event in found]
            return await _submit_many(service, principal, items)
        event = found[0]
        key = cloud_event_key(event.source, event.id)
        return await _submit_one(service, principal, event.body, key, event.source, event.id, request)


def _add_wishes(app: FastAPI, service: "IntakeService") -> None:
    @app.post("/v1/operations/{operation}/cancel")
    async def cancel(request: Request, operation: str) -> Response:
        principal = _submitter(service, request)
        found = await _operation(service, principal, operation)
        wanted = await wish_in(request)
        if wanted.force:
            check(principal, Role.OPERATOR)
        wish = messages.cancel(found.id, found.project, principal.name, wanted.reason, force=wanted.force)
        await service.committer.run(_telling(wish))
        return JsonResponse({"operation": found.id, "requested": "cancel"}, 202)

    @app.post("/v1/operations/{operation}/retry")
    async def retry(request: Request, operation: str) -> Response:
        principal = _submitter(service, request)
        found = await _operation(service, principal, operation)
        key = request.headers.get("idempotency-key") or new_id()
        source = f"http/{principal.name}"
        submission = Submission(
            found.written, key, found.project, source, key, principal.name, found.id, from_headers(request.headers)
        )
        return _answer(await service.committer.submit(submission), key)


def _submitter(service: "IntakeService", request: Request) -> Principal:
    principal = service.auth.authenticate(request)
    check(principal, Role.SUBMITTER)
    return principal


async def _submit_one(
    service: "IntakeService", principal: Principal, body: bytes, key: str, source: str, name: str, request: Request
) -> Response:
    await _admit(service, principal, body)
    trace = from_headers(request.headers)
    submission = Submission(body, key, "", source, name, principal.name, traceparent=trace)
    return _answer(await service.committer.submit(submission), key)


def _answer(outcome: Any, key: str) -> Response:
    if outcome.status not in (CREATED, EXISTING):
        raise error_of(outcome)
    headers = {"Idempotency-Key": _header(key), "Location": f"/v1/operations/{outcome.operation}"}
    body = orjson.dumps(accepted_members(outcome, key))
    return Response(body, STATUS[outcome.status], headers, "application/json")


def _header(text: str) -> str:
    """Return a key as a header may carry it; the body has it exactly."""
    return text if text.isascii() and text.isprintable() else ""


async def _submit_many(service: "IntakeService", principal: Principal, items: list[Item]) -> Response:
    """Answer each item for itself. A project that the caller may not know of is answered as if there were none."""
    results: list[dict[str, Any] | None] = []
    submissions: list[Submission] = []
    for item in items:
        try:
            await _admit(service, principal, item.body)
        except ProblemError as error:
            results.append({**error.body(), "idempotencyKey": item.key})
            continue
        results.append(None)
        source = f"http/{principal.name}"
        submissions.append(Submission(item.body, item.key, "", source, item.key, principal.name))
    outcomes = iter(
        zip(await service.committer.submit_all(submissions), submissions, strict=True) if submissions else ()
    )
    answers = []
    for result in results:
        if result is not None:
            answers.append(result)
            continue
        outcome, submission = next(outcomes)
        answers.append(item_members(outcome, submission.key))
    return Response(orjson.dumps({"items": answers}), media_type="application/json")


async def _admit(service: "IntakeService", principal: Principal, body: bytes) -> None:
    """Raise ProblemError 404 for a project that the caller may not know of, 429 above what it may submit a minute.

    What is no document is let through: it will be answered with its problems.
    """
    project = service.acceptor.preparer.project_of(body)
    if project is None:
        return
    check(principal, Role.SUBMITTER, project)
    limit = service.acceptor.view.submissions_per_minute(project)
    if limit is not None and not await service.redis.allow(f"submit:{project}", limit=limit, window_s=60):
        detail = f"the project {project} may submit {limit} operations a minute"
        raise ProblemError(429, "Too many requests", detail, headers={"Retry-After": "10"})


async def _operation(service: "IntakeService", principal: Principal, operation: str) -> store.Stored:
    async with service.committer.reading() as tx:
        found = await store.stored_operation(tx, operation)
    if found is None or not principal.sees(found.project):
        raise ProblemError(404, "Not found", f"no operation {operation!r}")
    return found


class Wish(msgspec.Struct):
    """What may be said with a wish."""

    reason: Annotated[str, msgspec.Meta(max_length=_REASON_MAX)] = ""
    force: bool = False


async def wish_in(request: Request) -> Wish:
    """Return what a request's body says: `{"reason": "..."}` or nothing. Raises ProblemError 422."""
    body = await request.body()
    try:
        return msgspec.json.decode(body, type=Wish) if body.strip() else Wish()
    except msgspec.MsgspecError as error:
        detail = f'expected {{"reason": "..."}} of at most {_REASON_MAX} characters, or nothing: {error}'
        raise ProblemError(422, "Invalid request", detail) from error


def _telling(event: Outbound) -> Any:
    async def work(_: Tx) -> tuple[None, list[Outbound]]:
        return None, [event]

    return work


async def _validate(service: "IntakeService", principal: Principal, body: bytes) -> dict[str, Any]:
    """Return what would become of documents; nothing is stored."""
    async with service.committer.reading() as tx:
        await service.acceptor.view.refresh(tx)
    items = [_validated(service, principal, read) for read in read_documents(body)]
    problems = [problem for item in items for problem in item["problems"]]
    answer: dict[str, Any] = {"valid": not problems, "problems": problems}
    if problems:
        answer["detail"] = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
    return {**answer, **(items[0] if len(items) == 1 else {"items": items})}


def _validated(service: "IntakeService", principal: Principal, read: Any) -> dict[str, Any]:
    if not isinstance(read, Document):
        return {"kind": read.kind, "name": read.name, "problems": [problem_members(p) for p in read.problems]}
    item: dict[str, Any] = {"kind": read.kind.name, "name": read.name, "problems": []}
    if read.kind.name != "Operation":
        return item
    check(principal, Role.VIEWER, read.project)
    rendered = render(read, service.acceptor.view.catalogue)
    if isinstance(rendered, Rendered):
        return {**item, "effective": rendered.value, "provenance": dict(rendered.provenance)}
    return {**item, "detail": problem_count(rendered), "problems": [problem_members(p) for p in rendered]}
