"""HTTP of the contract-verifier: environments join, access is granted and revoked; environments are paused in part."""

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, FastAPI, Query, Request

from landbridge.bus import accounts
from landbridge.bus.accounts import Kind
from landbridge.bus.errors import BusError
from landbridge.bus.subjects import check_token
from landbridge.runtime import logs
from landbridge.runtime.auth import Principal, Role
from landbridge.runtime.orders import read_order
from landbridge.runtime.problems import ProblemError
from landbridge.store import Tx
from landbridge_contract_verifier import access, accounts_table, controls, holds, probe_table
from landbridge_contract_verifier.accounts_table import Account

if TYPE_CHECKING:
    from landbridge_contract_verifier.service import ContractVerifierService

log = logs.get(__name__)
T = TypeVar("T")
DryRun = Annotated[bool, Query(alias="dryRun")]


class JoinAsked(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of a join. `replace`: credentials that were given before end at once. `leaf`: for a site's own NATS."""

    replace: bool = False
    leaf: bool = False


def add_routes(app: FastAPI, service: "ContractVerifierService") -> None:
    """Add the routes."""
    admin = Depends(service.auth.require(Role.ADMIN))
    operator = Depends(service.auth.require(Role.OPERATOR))

    @app.post("/v1/environments/{name}/join")
    async def join(name: str, request: Request, principal: Principal = admin) -> dict[str, Any]:
        asked = await _body(request, JoinAsked)
        return await _join(service, name, asked, principal.name)

    @app.post("/v1/environments/{name}/control/{action}")
    async def control(
        name: str, action: str, request: Request, dry_run: DryRun = False, principal: Principal = operator
    ) -> dict[str, Any]:
        """Pause, resume or drain an environment or a part of it. With `dryRun` only tell what it would do."""
        order = await read_order(request, controls.Order, dry_run=dry_run)
        return await controls.act(service, action, name, order, principal.name, dry_run=dry_run)

    @app.get("/v1/environments/{name}/control")
    async def decided(
        name: str, limit: Annotated[int, Query(ge=1, le=500)] = 50, _: Principal = operator
    ) -> dict[str, Any]:
        """Return what people decided about an environment, the newest first."""
        async with service.database.transaction(readonly=True) as tx:
            return {"items": await holds.latest(tx, limit, name)}

    @app.get("/v1/environments/{name}/probes")
    async def probes(name: str, _: Principal = operator) -> dict[str, Any]:
        """Return the probes of an environment's live versions, each with what it found last."""
        async with service.database.transaction(readonly=True) as tx:
            found = await probe_table.read(tx, name, service.clock.wall())
        if found is None:
            raise ProblemError(404, "Not found", f"no environment {name!r} is registered")
        return found

    @app.post("/v1/access", status_code=201)
    async def create_access(request: Request, principal: Principal = admin) -> dict[str, Any]:
        asked = await _body(request, access.Asked)
        return await _create_access(service, asked, principal.name)

    @app.get("/v1/access")
    async def list_access(_: Principal = admin) -> dict[str, Any]:
        async with service.database.transaction(readonly=True) as tx:
            entries = await access.listed(tx)
        return {"items": [_shown(entry) for entry in entries]}

    @app.delete("/v1/access/{name}")
    async def delete_access(name: str, principal: Principal = admin) -> dict[str, Any]:
        await service.outbox.commit(lambda tx: access.revoke(tx, name, service.clock.wall()))
        service.provisioner.wake()
        log.info("access revoked", name=name, by=principal.name)
        return {"name": name, "revoked": True}


async def _body(request: Request, kind: type[T]) -> T:
    """Read a JSON body; an empty one is an empty object. Raises ProblemError 422."""
    try:
        return msgspec.json.decode(await request.body() or b"{}", type=kind)
    except msgspec.MsgspecError as error:
        raise ProblemError(422, "Invalid request", str(error)) from error


async def _join(service: "ContractVerifierService", name: str, asked: JoinAsked, by: str) -> dict[str, Any]:
    await _choose_way(service, name, asked)
    account = await _ready(service, "environment", name)
    user: accounts.IssuedUser | None = None
    if service.provisioner.keys is not None:
        make = accounts.leaf_user if asked.leaf else accounts.environment_user
        user = make(service.provisioner.keys, name, account.generation)
        async with service.database.transaction() as tx:
            await _issue(tx, account, user, by, service, replace=asked.replace, leaf=asked.leaf)
        service.provisioner.wake()
    log.info("environment joined", environment=name, by=by, user=user.public if user else "", leaf=asked.leaf)
    return {
        "environment": name,
        "creds": user.credentials if user else "",
        "user": user.public if user else "",
        "natsUrl": service.verifier_settings.advertised_nats_url,
        **({"leafUrl": service.verifier_settings.nats_leaf_url} if asked.leaf else {}),
    }


async def _choose_way(service: "ContractVerifierService", name: str, asked: JoinAsked) -> None:
    """Settle whether an environment's dispatcher connects, or its site's own NATS. Raises ProblemError 404 and 409."""
    if asked.leaf and (service.provisioner.keys is None or not service.verifier_settings.nats_leaf_url):
        detail = "this instance takes no sites with their own NATS: expected LANDBRIDGE_NATS_LEAF_URL, found none"
        raise ProblemError(409, "Not offered", detail)
    async with service.database.transaction() as tx:
        account = await accounts_table.locked(tx, "environment", name)
        # Also if it is there a moment later: it would be made for the other way.
        if account is None or account.state in ("ending", "ended"):
            raise _unknown(name)
        if account.leaf == asked.leaf:
            return
        if await accounts_table.has_users(tx, account) and not asked.replace:
            now, then = ("with its own NATS", "without") if account.leaf else ("without a NATS of its own", "with one")
            detail = f"{name} has joined {now}; to let it join {then}, ending the credentials given before: --replace"
            raise ProblemError(409, "Joined in another way", detail)
        await accounts_table.set_leaf(tx, account, leaf=asked.leaf)


async def _issue(
    tx: Tx,
    account: Account,
    user: accounts.IssuedUser,
    by: str,
    service: "ContractVerifierService",
    *,
    replace: bool,
    leaf: bool,
) -> None:
    now = service.clock.wall()
    current = await accounts_table.locked(tx, account.kind, account.name)
    if current is None or current.generation != account.generation or current.state != "ready":
        raise ProblemError(409, "Changed meanwhile", f"{account.name} was removed or registered anew; try again")
    if current.leaf != leaf:
        raise ProblemError(409, "Changed meanwhile", f"{account.name} was joined in another way just now; try again")
    await accounts_table.issued(tx, account, user, by, now)
    if replace and await accounts_table.revoke_users(tx, account, now, keep=user.public):
        await accounts_table.set_state(tx, account, "wanted")  # has the revocation pushed


def _unknown(name: str) -> ProblemError:
    return ProblemError(
        404, "Not found", f"no environment {name!r}; register its contract first (`landbridge env register`)"
    )


async def _ready(service: "ContractVerifierService", kind: Kind, name: str) -> Account:
    """Return a usable account. Raises ProblemError 404 for an unknown one, 503 if the broker does not play along."""
    try:
        account = await service.provisioner.ensure(kind, name)
    except BusError as error:
        detail = f"the broker did not take the account of {name}: {error}"
        raise ProblemError(503, "Try again", detail, headers={"Retry-After": "2"}) from error
    if account is None or account.state in ("ending", "ended"):
        raise _unknown(name)
    return msgspec.structs.replace(account, state="ready")


async def _create_access(service: "ContractVerifierService", asked: access.Asked, by: str) -> dict[str, Any]:
    try:
        check_token(asked.name, "name")
    except ValueError as error:
        raise ProblemError(422, "Invalid name", str(error)) from error
    access.check_asked(asked, service.projects)
    now = service.clock.wall()
    kept: list[access.Granted] = []

    async def work(tx: Tx) -> Any:
        granted, events = await access.grant(tx, asked, service.provisioner.keys, by, now)
        kept[:] = [granted]
        return events

    await service.outbox.commit(work)
    granted = kept[0]
    project = access.project_of(granted.entry)
    if granted.user is not None:
        await _ready(service, "project", project)
    service.provisioner.wake()
    log.info("access granted", name=asked.name, role=granted.entry.role, by=by)
    return {
        **_shown(granted.entry),
        "project": project,
        "token": granted.token,
        "creds": granted.user.credentials if granted.user else "",
        "natsUrl": service.verifier_settings.advertised_nats_url,
    }


def _shown(entry: access.Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "role": entry.role,
        "projects": list(entry.projects),
        "issuedBy": entry.issued_by,
        "at": entry.at.isoformat(),
    }
