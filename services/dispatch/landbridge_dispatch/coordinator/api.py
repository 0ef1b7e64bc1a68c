"""HTTP of the coordinator: what reconciliation found, and the words of people that only people can say."""

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from fastapi import Depends, FastAPI, Request

from landbridge.bus.envelope import Outbound
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.leases_centre import RaiseTerm
from landbridge.runtime import logs
from landbridge.runtime.auth import Principal, Role, check
from landbridge.runtime.problems import ProblemError
from landbridge.store import Tx
from landbridge_dispatch.coordinator import environments

if TYPE_CHECKING:
    from landbridge_dispatch.coordinator.service import CoordinatorService

log = logs.get(__name__)


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of what a person declares: why, in words. It is kept with the operations it concerns."""

    reason: str


def add_routes(app: FastAPI, service: "CoordinatorService") -> None:
    """Add the routes."""
    viewer = Depends(service.auth.require(Role.VIEWER))
    operator = Depends(service.auth.require(Role.OPERATOR))
    admin = Depends(service.auth.require(Role.ADMIN))

    @app.get("/v1/environments/{name}/reconciliation")
    async def reconciliation(name: str, _: Principal = viewer) -> dict[str, Any]:
        return await _reconciliation(service, name)

    @app.post("/v1/environments/{name}/declare-dead")
    async def declare_dead(name: str, request: Request, principal: Principal = admin) -> dict[str, Any]:
        return await _declare_dead(service, name, principal.name, await _reason(request))

    @app.post("/v1/operations/{operation}/override")
    async def override(operation: UUID, request: Request, principal: Principal = operator) -> dict[str, Any]:
        return await _override(service, str(operation), principal, await _reason(request))

    @app.post("/v1/expiry/lift")
    async def lift(request: Request, principal: Principal = admin) -> dict[str, Any]:
        reason = await _reason(request)
        async with service.database.transaction() as tx:
            await tx.execute("update centre set lifted = lifted + 1, held_since = null")
        log.warning("expiry_hold_lifted", by=principal.name, reason=reason)
        return {"lifted": True}


async def _reason(request: Request) -> str:
    try:
        reason = msgspec.json.decode(await request.body(), type=Reason).reason.strip()
    except msgspec.MsgspecError as error:
        raise ProblemError(422, "Invalid request", f'expected {{"reason": "why, in words"}}: {error}') from error
    if not reason:
        raise ProblemError(422, "Invalid request", "a reason is needed: it is kept with what it concerns")
    return reason


async def _reconciliation(service: "CoordinatorService", name: str) -> dict[str, Any]:
    async with service.database.transaction(readonly=True) as tx:
        row = await tx.fetchrow(
            "select term, incarnation, restored, at, outcome from reconciliation where environment = $1", name
        )
    if row is None:
        raise ProblemError(404, "Not found", f"environment {name} was never reconciled")
    return {
        "environment": name,
        "term": row["term"],
        "incarnation": row["incarnation"],
        "restored": row["restored"],
        "at": row["at"].isoformat(),
        **json.loads(row["outcome"]),
    }


async def _declare_dead(service: "CoordinatorService", name: str, by: str, reason: str) -> dict[str, Any]:
    """Free all that an environment holds: a named person attests that it is off."""
    core = service.core

    async def work(tx: Tx) -> tuple[int, list[Outbound]]:
        leases = await environments.lock(tx, [name])
        if name not in leases:
            raise ProblemError(404, "Not found", f"environment {name} was never heard")
        session = core.session(tx)
        concerned = await session.load_active(name)
        for operation in concerned:
            session.decide(operation, model.DeclaredDead(name, by, reason))
        events = await session.finish()
        if session.raised:
            await core.tell_lease(tx, leases[name], RaiseTerm(), events)
        return len(concerned), events

    freed = await core.run(work, "declare-dead")
    log.warning("environment_declared_dead", environment=name, by=by, reason=reason, operations=freed)
    return {"environment": name, "operations": freed}


async def _override(service: "CoordinatorService", operation: str, principal: Principal, reason: str) -> dict[str, Any]:
    """Move one operation although its old placement may still run."""
    core = service.core

    async def work(tx: Tx) -> tuple[str, list[Outbound]]:
        where = await tx.fetchrow("select environment, project from operation where id = $1::uuid", operation)
        if where is None or not principal.sees(where["project"]):
            raise ProblemError(404, "Not found", f"operation {operation} is not known")
        check(principal, Role.OPERATOR, where["project"])
        leases = await environments.lock(tx, [where["environment"]])
        session = core.session(tx)
        await session.load([operation])
        session.decide(operation, model.Override(principal.name, reason))
        events = await session.finish()
        for environment in session.raised:
            await core.tell_lease(tx, leases[environment], RaiseTerm(), events)
        state = session.state(operation)
        return state.phase.value if state is not None else "", events

    phase = await core.run(work, "override")
    log.warning("emergency_override", operation=operation, by=principal.name, reason=reason)
    return {"operation": operation, "phase": phase}
