"""HTTP of the coordinator: who owns what, what reconciliation found, and the words of people that only people can say.

Whatever changes something takes `?dryRun=true` and then only tells what it would do.
"""

import json
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import Depends, FastAPI, Query, Request

from landbridge.domain.ownership.epochs import Epoch, parse_epoch
from landbridge.runtime.auth import Principal, Role
from landbridge.runtime.problems import ProblemError
from landbridge_dispatch.coordinator import audit, declarations, diagnosing, lost, quarantine, requeueing, unknown_work
from landbridge_dispatch.coordinator.acting import Outcome, read_order

if TYPE_CHECKING:
    from landbridge_dispatch.coordinator.service import CoordinatorService

DryRun = Annotated[bool, Query(alias="dryRun")]


def add_routes(app: FastAPI, service: "CoordinatorService") -> None:
    """Add the routes."""
    _reading(app, service)
    _environments(app, service)
    _operations(app, service)
    _quarantine(app, service)
    _recovery(app, service)


def _reading(app: FastAPI, service: "CoordinatorService") -> None:
    viewer = Depends(service.auth.require(Role.VIEWER))
    operator = Depends(service.auth.require(Role.OPERATOR))

    @app.get("/v1/environments/{name}/reconciliation")
    async def reconciliation(name: str, _: Principal = viewer) -> dict[str, Any]:
        return await _reconciliation(service, name)

    @app.get("/v1/environments/{name}/disconnection")
    async def disconnection(name: str, principal: Principal = viewer) -> dict[str, Any]:
        async with service.database.transaction(readonly=True) as tx:
            found = await lost.environment_view(service.core, tx, name)
        if found is None:
            raise ProblemError(404, "Not found", f"environment {name} was never heard")
        mine = [row for row in found["operations"] if principal.sees(row["project"])]
        return {**found, "operations": mine}

    @app.get("/v1/operations/{operation}/ownership")
    async def ownership(operation: UUID, principal: Principal = viewer) -> dict[str, Any]:
        async with service.database.transaction(readonly=True) as tx:
            state = await declarations.operation_for(tx, str(operation), principal)
            return await lost.operation_view(service.core, tx, state)

    @app.get("/v1/audit")
    async def decisions(
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        operation: str = "",
        environment: str = "",
        _: Principal = operator,
    ) -> dict[str, Any]:
        async with service.database.transaction(readonly=True) as tx:
            found = await audit.latest(tx, limit=limit, operation=operation, environment=environment)
        return {"items": found}


def _environments(app: FastAPI, service: "CoordinatorService") -> None:
    viewer = Depends(service.auth.require(Role.VIEWER))
    admin = Depends(service.auth.require(Role.ADMIN))

    @app.post("/v1/environments/{name}/declare-dead")
    async def declare_dead(
        name: str, request: Request, dry_run: DryRun = False, principal: Principal = admin
    ) -> Outcome:
        order = await read_order(request, dry_run=dry_run)
        return await declarations.declare_dead(service.core, name, principal.name, order.reason, dry_run=dry_run)

    @app.get("/v1/expiry")
    async def hold(_: Principal = viewer) -> dict[str, Any]:
        async with service.database.transaction(readonly=True) as tx:
            return await declarations.show_hold(service.core, tx)

    @app.post("/v1/expiry/lift")
    async def lift(request: Request, dry_run: DryRun = False, principal: Principal = admin) -> Outcome:
        order = await read_order(request, dry_run=dry_run)
        return await declarations.lift_hold(service.core, principal.name, order.reason, dry_run=dry_run)


def _operations(app: FastAPI, service: "CoordinatorService") -> None:
    operator = Depends(service.auth.require(Role.OPERATOR))

    @app.post("/v1/operations/{operation}/override")
    async def override(
        operation: UUID, request: Request, dry_run: DryRun = False, principal: Principal = operator
    ) -> Outcome:
        order = await read_order(request, dry_run=dry_run)
        return await declarations.override(service.core, str(operation), principal, order.reason, dry_run=dry_run)

    @app.post("/v1/operations/{operation}/move")
    async def move(
        operation: UUID, request: Request, dry_run: DryRun = False, principal: Principal = operator
    ) -> Outcome:
        order = await read_order(request, dry_run=dry_run)
        return await declarations.move(service.core, str(operation), principal, order, dry_run=dry_run)

    @app.post("/v1/operations/{operation}/queue")
    async def requeue(
        operation: UUID, request: Request, dry_run: DryRun = False, principal: Principal = operator
    ) -> Outcome:
        order = await read_order(request, dry_run=dry_run)
        return await requeueing.requeue(service.core, str(operation), principal, order, dry_run=dry_run)


def _quarantine(app: FastAPI, service: "CoordinatorService") -> None:
    operator = Depends(service.auth.require(Role.OPERATOR))
    admin = Depends(service.auth.require(Role.ADMIN))

    @app.get("/v1/quarantine")
    async def listed(everything: Annotated[bool, Query(alias="all")] = False, _: Principal = operator) -> Outcome:
        async with service.database.transaction(readonly=True) as tx:
            return {"items": await quarantine.entries(tx, everything=everything)}

    @app.post("/v1/quarantine/{environment}/{operation}/{epoch}/{decision}")
    async def decide(
        environment: str,
        operation: str,
        epoch: str,
        decision: str,
        request: Request,
        dry_run: DryRun = False,
        principal: Principal = admin,
    ) -> Outcome:
        deciding = {"adopt": unknown_work.adopt, "stop": unknown_work.stop}.get(decision)
        if deciding is None:
            raise ProblemError(404, "Not found", f"expected adopt or stop, found {decision!r}")
        order = await read_order(request, dry_run=dry_run)
        key = (environment, operation, _epoch(epoch))
        return await deciding(service.core, key, principal.name, order.reason, dry_run=dry_run)


def _recovery(app: FastAPI, service: "CoordinatorService") -> None:
    admin = Depends(service.auth.require(Role.ADMIN))

    @app.get("/v1/recovery")
    async def diagnosis(_: Principal = admin) -> dict[str, Any]:
        return await diagnosing.diagnose(service)

    @app.post("/v1/recovery/generation")
    async def generation(request: Request, dry_run: DryRun = False, principal: Principal = admin) -> Outcome:
        order = await read_order(request, dry_run=dry_run)
        return await diagnosing.begin_next(service, principal.name, order, dry_run=dry_run)


def _epoch(text: str) -> Epoch:
    try:
        return parse_epoch(text)
    except ValueError as error:
        raise ProblemError(422, "Invalid request", str(error)) from error


async def _reconciliation(service: "CoordinatorService", name: str) -> dict[str, Any]:
    """Return what the latest comparison found, with those before it as `earlier`, the newest first."""
    async with service.database.transaction(readonly=True) as tx:
        rows = await tx.fetch(
            """select term, incarnation, restored, at, outcome from reconciliation where environment = $1
               union select term, incarnation, restored, at, outcome from reconciliation_past where environment = $1
               order by term desc""",
            name,
        )
    if not rows:
        raise ProblemError(404, "Not found", f"environment {name} was never reconciled")
    latest, *earlier = [
        {
            "term": row["term"],
            "incarnation": row["incarnation"],
            "restored": row["restored"],
            "at": row["at"].isoformat(),
            **json.loads(row["outcome"]),
        }
        for row in rows
    ]
    return {"environment": name, **latest, "earlier": earlier}
