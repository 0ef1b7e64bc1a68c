"""What people may ask ranking: what waits where in a queue, what is held against which limit, why it was decided so."""

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
from fastapi import Depends, FastAPI, Query, Request

from landbridge.domain.decision_record import Placed, replay
from landbridge.runtime.asking import ask
from landbridge.runtime.auth import Principal, Role
from landbridge.runtime.orders import Order, read_order
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.request_v1 import AskReply, OverrideRequest
from landbridge_ranking import controls, questions, store

if TYPE_CHECKING:
    from landbridge_ranking.service import RankingService


DryRun = Annotated[bool, Query(alias="dryRun")]


class OverrideOrder(Order, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Why, and where to."""

    environment: str = ""


def _answer(reply: AskReply) -> dict[str, Any]:
    """Return what the admitter did. Raises the ProblemError that it answered with."""
    if reply.found:
        return dict(msgspec.json.decode(reply.json))
    if not reply.json:
        raise ProblemError(503, "Try again", reply.message, headers={"Retry-After": "2"})
    problem = msgspec.json.decode(reply.json, type=dict[str, Any])
    more = {name: problem[name] for name in ("violations",) if name in problem}
    raise ProblemError(problem["status"], problem["title"], reply.message, **more)


def add_routes(app: FastAPI, service: "RankingService") -> None:
    """Add the routes. Any replica answers, from the tables."""
    _questions(app, service)
    _controls(app, service)


def _controls(app: FastAPI, service: "RankingService") -> None:
    Admin = Annotated[Principal, Depends(service.auth.require(Role.ADMIN))]  # noqa: N806 - a type
    Operator = Annotated[Principal, Depends(service.auth.require(Role.OPERATOR))]  # noqa: N806 - a type

    @app.post("/v1/ranking/queues/{queue}/{action}")
    async def control(
        principal: Admin, queue: str, action: str, request: Request, dry_run: DryRun = False
    ) -> dict[str, Any]:
        """Pause, resume or drain a queue. With `dryRun` only tell what it would do."""
        if action not in list(controls.Action):
            raise ProblemError(404, "Not found", f"expected pause, resume or drain, found {action!r}")
        order = await read_order(request, Order, dry_run=dry_run)
        wanted = controls.Action(action)
        return await controls.act(service, wanted, queue, principal.name, order.reason, dry_run=dry_run)

    @app.post("/v1/ranking/operations/{operation}/override")
    async def override(principal: Admin, operation: UUID, request: Request, dry_run: DryRun = False) -> dict[str, Any]:
        """Place an operation that waits in a named environment, past queue and rules. `dryRun` only tells."""
        order = await read_order(request, OverrideOrder, dry_run=dry_run)
        if not order.environment:
            raise ProblemError(422, "Invalid request", "expected the environment that it is to go to")
        asked = OverrideRequest(
            operation=str(operation),
            environment=order.environment,
            by=principal.name,
            reason=order.reason,
            dry_run=dry_run,
        )
        return _answer(await ask(service.bus, "ranking", "override", asked))

    @app.get("/v1/ranking/audit")
    async def audit(
        principal: Operator,  # noqa: ARG001
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        queue: str = "",
    ) -> dict[str, Any]:
        """Return what people decided about queues, the newest first."""
        async with service.database.transaction(readonly=True) as tx:
            return {"items": await controls.latest(tx, limit, queue)}


def _questions(app: FastAPI, service: "RankingService") -> None:
    Viewer = Annotated[Principal, Depends(service.auth.require(Role.VIEWER))]  # noqa: N806 - a type

    @app.get("/v1/ranking/queues")
    async def queues(principal: Viewer) -> list[dict[str, Any]]:  # noqa: ARG001
        async with service.database.transaction(readonly=True) as tx:
            return await questions.queues(tx, service.book.view.catalogue)

    @app.get("/v1/ranking/operations/{operation}")
    async def operation(principal: Viewer, operation: str) -> dict[str, Any]:
        async with service.database.transaction(readonly=True) as tx:
            found = await questions.standing(tx, operation)
        if found is None or not principal.sees(found["project"]):
            raise ProblemError(404, "Not found", f"operation {operation} neither waits here nor holds anything")
        return found

    @app.get("/v1/ranking/decisions/{decision}")
    async def decision(principal: Viewer, decision: str) -> dict[str, Any]:
        """Return a decision record, and whether computing it again for the operations it placed gives the same."""
        async with service.database.transaction(readonly=True) as tx:
            record = await store.decision(tx, decision)
            placed = await questions.placed_by(tx, decision) if record is not None else []
        if record is None or not all(principal.sees(project) for project, _ in placed):
            raise ProblemError(404, "Not found", f"there is no decision {decision}")
        again = [replay(record, Placed(p.operation, p.round, p.previous, p.held_out)) == record for _, p in placed]
        answer: dict[str, Any] = msgspec.to_builtins(record)
        return {**answer, "operations": [msgspec.to_builtins(p) for _, p in placed], "replays": all(again)}
