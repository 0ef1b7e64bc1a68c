"""The query API, `/v1/**`: what operations, environments and queues are like now, and why.

Callers see their projects only; another project's operation does not exist for them (404, never 403).
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from fastapi import Depends, FastAPI, Query

from landbridge.runtime.asking import ask
from landbridge.runtime.auth import ALL_PROJECTS, Principal, Role
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.event_v1 import Phase
from landbridge.schema.wire.request_v1 import ReplayRequest
from landbridge_lineage import counts, reads, views
from landbridge_lineage.attempts import placements
from landbridge_lineage.explain import explanation
from landbridge_lineage.now import now_of
from landbridge_lineage.openlineage import export
from landbridge_lineage.reads import Cursor, Wanted
from landbridge_lineage.replaying import replay_answer
from landbridge_lineage.state import State

if TYPE_CHECKING:
    from landbridge_lineage.service import LineageService

LIMIT_MAX: Final = 500
_PHASES: Final = frozenset(phase.value for phase in Phase if phase)

Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX)]


def projects_of(principal: Principal, project: str) -> Sequence[str] | None:
    """Return the projects to look at; None for all. Raises ProblemError 404 for one that the caller may not know of."""
    if project:
        if not principal.sees(project):
            raise ProblemError(404, "Not found", f"no project {project!r}")
        return [project]
    everything = principal.role is Role.ADMIN or ALL_PROJECTS in principal.projects
    return None if everything else sorted(principal.projects)


def moment(text: str, name: str) -> datetime | None:
    """Read an RFC 3339 time from a query. Raises ProblemError 422."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        detail = f"{name}: expected a time such as 2026-12-01T06:00:00Z, found {text!r}"
        raise ProblemError(422, "Invalid request", detail) from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def cursor(text: str) -> Cursor | None:
    """Read a cursor from a query. Raises ProblemError 422."""
    try:
        return Cursor.parse(text) if text else None
    except ValueError as error:
        raise ProblemError(422, "Invalid request", str(error)) from error


def phases(text: str) -> list[str]:
    """Read phases, separated by commas, from a query. Raises ProblemError 422 for one that there is not."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    unknown = sorted(set(found) - _PHASES)
    if unknown:
        detail = f"phase: expected some of {', '.join(sorted(_PHASES))}; found {', '.join(unknown)}"
        raise ProblemError(422, "Invalid request", detail)
    return found


async def visible(service: "LineageService", principal: Principal, operation: str) -> State:
    """Return an operation that the caller may see. Raises ProblemError 404."""
    try:
        key = str(UUID(operation))
    except ValueError:
        key = ""
    state = await reads.operation(service.database, key) if key else None
    if state is None or not principal.sees(state.project):
        raise ProblemError(404, "Not found", f"no operation {operation!r}; list them at /v1/operations")
    return state


def add_routes(app: FastAPI, service: "LineageService") -> None:
    """Add the routes that read projections."""
    viewer = service.auth.require(Role.VIEWER)
    Viewer = Annotated[Principal, Depends(viewer)]  # noqa: N806 - a type
    _operation_routes(app, service, Viewer)
    _environment_routes(app, service, Viewer)
    _count_routes(app, service, Viewer)


def _operation_routes(app: FastAPI, service: "LineageService", Viewer: Any) -> None:  # noqa: N803 - a type
    @app.get("/v1/operations")
    async def operations(
        principal: Viewer,
        project: str = "",
        queue: str = "",
        environment: str = "",
        phase: str = "",
        since: str = "",
        limit: Limit = 50,
        cursor_: Annotated[str, Query(alias="cursor")] = "",
    ) -> dict[str, Any]:
        """Return accepted operations, newest first: {items, cursor}."""
        chosen, after = projects_of(principal, project), cursor(cursor_)
        wanted = Wanted(chosen, queue, environment, phases(phase), moment(since, "since"), after, limit)
        page = await reads.operations(service.database, wanted)
        return {"items": [views.summary(state) for state in page.items], "cursor": page.cursor}

    @app.get("/v1/operations/{operation}")
    async def one(principal: Viewer, operation: str) -> dict[str, Any]:
        """Return one operation with its specification, rounds and attempts."""
        state = await visible(service, principal, operation)
        known = await reads.facts(service.database, state.operation)
        found = views.detail(state, known, reads.rounds(known), placements(known))
        return {**found, "drift": service.environments.drift_of(state.operation)}

    @app.get("/v1/operations/{operation}/events")
    async def events(principal: Viewer, operation: str, after: Annotated[int, Query(ge=0)] = 0) -> dict[str, Any]:
        """Return what happened, in order: {items}. `after` leaves out lifecycle events up to that opSeq."""
        state = await visible(service, principal, operation)
        known = await reads.facts(service.database, state.operation)
        return {"operation": state.operation, "items": views.timeline(known, after)}

    @app.get("/v1/operations/{operation}/explanation")
    async def explain(
        principal: Viewer, operation: str, round_: Annotated[int, Query(alias="round", ge=0)] = 0
    ) -> dict[str, Any]:
        """Return every environment's verdict rule by rule, scores, route, what it waits for, the nearest miss.

        Without a round also how it stands `now`: place in the queue, forecast, every environment judged again.
        """
        return await explained(service, await visible(service, principal, operation), round_)

    @app.get("/v1/operations/{operation}/replay")
    async def replay(
        principal: Viewer, operation: str, round_: Annotated[int, Query(alias="round", ge=0)] = 0
    ) -> dict[str, Any]:
        """Return a round's decision (0: the latest), made again from its recorded inputs and compared."""
        return await replayed(service, await visible(service, principal, operation), round_)

    @app.get("/v1/lineage/{operation}")
    async def lineage(principal: Viewer, operation: str) -> list[dict[str, Any]]:
        """Return the operation as OpenLineage 2-0-2 run events."""
        state = await visible(service, principal, operation)
        known = await reads.facts(service.database, state.operation)
        return export(state, known, placements(known))


async def explained(service: "LineageService", state: State, round_: int) -> dict[str, Any]:
    """Return the explanation of a round (0: the latest), from what is recorded about it."""
    db = service.database
    known = await reads.facts(db, state.operation)
    rounds = reads.rounds(known)
    number = round_ or max((each.round for each in rounds), default=0)
    shown = next((each for each in rounds if each.round == number), None)
    decision = await reads.decision(db, shown.decision_id) if shown and shown.decision_id else None
    waits = state.waits if not round_ else None
    assessment_id = (waits.assessment_id if waits else "") or (shown.assessment_id if shown else "")
    if decision is not None:
        assessment_id = decision.assessment_id
    assessment = await reads.assessment(db, assessment_id) if assessment_id else None
    if assessment is not None and decision is None and not round_:
        assessment = await reads.latest_of_class(db, assessment.requirement_class) or assessment
    answer = explanation(state, rounds, shown, assessment, decision)
    return answer if round_ else {**answer, **await now_of(service, state, known, assessment)}


async def replayed(service: "LineageService", state: State, round_: int) -> dict[str, Any]:
    """Return a decision made again. Raises ProblemError 404 where there is none, 503 if ranking is not reached."""
    db = service.database
    decided = [each for each in reads.rounds(await reads.facts(db, state.operation)) if each.decision_id]
    shown = next((each for each in reversed(decided) if round_ in (0, each.round)), None)
    if shown is None:
        where = f"in round {round_}" if round_ else "yet"
        raise ProblemError(404, "Not found", f"operation {state.operation}: nothing was decided {where}")
    question = ReplayRequest(decision=shown.decision_id, operation=state.operation)
    reply = await ask(service.bus, "ranking", "replay", question)
    if not reply.found:
        raise ProblemError(404, "Not found", f"{reply.message}; ranking keeps decisions for three weeks")
    again = msgspec.json.decode(reply.json)
    return replay_answer(state.operation, shown, await reads.assessment(db, again["assessmentId"]), again)


def _environment_routes(app: FastAPI, service: "LineageService", Viewer: Any) -> None:  # noqa: N803 - a type
    @app.get("/v1/environments")
    async def environments(principal: Viewer) -> dict[str, Any]:
        """Return every environment with link, control, evidence in short and what is there: {items}."""
        found = counts.grouped(
            (await counts.read(service.database, service.redis)).seen_by(principal.sees), lambda cell: cell.environment
        )
        names = service.environments.names()
        rows = [(name, service.environments.summary(name)) for name in names]
        return {"items": [{**row, "phases": found.get(name, {})} for name, row in rows if row]}

    @app.get("/v1/environments/{name}")
    async def environment(principal: Viewer, name: str) -> dict[str, Any]:
        """Return one environment with its contracts and every claim's evidence."""
        found = service.environments.detail(name)
        if found is None:
            raise ProblemError(404, "Not found", f"no environment {name!r}; list them at /v1/environments")
        here = (await counts.read(service.database, service.redis)).seen_by(principal.sees)
        phases = counts.grouped(here, lambda cell: cell.environment).get(name, {})
        return {**found, "drift": await _drift(service, principal, name), "phases": phases}


async def _drift(service: "LineageService", principal: Any, name: str) -> list[dict[str, Any]]:
    """Return where what runs in an environment is not what is recorded, of operations that may be seen."""
    items = service.environments.drift(name)
    known = await reads.projects_of(service.database, [str(item["operation"]) for item in items])
    return [item for item in items if principal.sees(known.get(str(item["operation"]), ""))]


def _count_routes(app: FastAPI, service: "LineageService", Viewer: Any) -> None:  # noqa: N803 - a type
    @app.get("/v1/overview")
    async def overview(principal: Viewer) -> dict[str, Any]:
        """Return counts by phase, environment, queue and project, and since when the oldest operations wait."""
        found = (await counts.read(service.database, service.redis)).seen_by(principal.sees)
        return {
            **counts.overview(found, service.clock.wall()),
            "environmentLinks": {
                name: ((service.environments.summary(name) or {}).get("link") or {}).get("state", "never")
                for name in service.environments.names()
            },
        }

    @app.get("/v1/queues")
    async def queues(principal: Viewer) -> dict[str, Any]:
        """Return every queue with its document's spec and what is in it: {items}."""
        found = (await counts.read(service.database, service.redis)).seen_by(principal.sees)
        inside = counts.grouped(found, lambda cell: cell.queue)
        oldest = counts.oldest_by_queue(found, service.clock.wall())
        names = sorted({*service.documents.names("queue"), *inside})
        rows = [
            counts.queue_row(name, service.documents.spec("queue", name), inside.get(name, {}), oldest.get(name))
            for name in names
        ]
        return {"items": rows}

    @app.get("/v1/refusals")
    async def refusals(
        principal: Viewer,
        project: str = "",
        since: str = "",
        limit: Limit = 50,
        cursor_: Annotated[str, Query(alias="cursor")] = "",
    ) -> dict[str, Any]:
        """Return refused submissions with everything that was wrong, newest first: {items, cursor}."""
        page = await reads.refusals(
            service.database, projects_of(principal, project), moment(since, "since"), cursor(cursor_), limit
        )
        return {"items": [views.refusal(*each) for each in page.items], "cursor": page.cursor}
