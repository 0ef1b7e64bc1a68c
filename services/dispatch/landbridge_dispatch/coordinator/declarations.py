"""What only people can say: an environment is off, work moves although it may still run, silence is real.

Each is one transaction with its audit row; each can be previewed.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from landbridge.bus.envelope import Outbound
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import OWNED
from landbridge.domain.ownership.centre_move import why_not_move
from landbridge.domain.ownership.leases_centre import Link, RaiseTerm
from landbridge.runtime import logs
from landbridge.runtime.auth import Principal, Role, check
from landbridge.runtime.problems import ProblemError
from landbridge.store import Tx
from landbridge_dispatch.coordinator import audit, environments, rows
from landbridge_dispatch.coordinator.acting import Order, Outcome, act, changes
from landbridge_dispatch.coordinator.core import Core
from landbridge_dispatch.coordinator.inventory import recover
from landbridge_dispatch.coordinator.lost import environment_view

log = logs.get(__name__)


async def declare_dead(core: Core, name: str, by: str, reason: str, *, dry_run: bool) -> Outcome:
    """Free all that an environment holds: a named person attests that it is off."""

    async def work(tx: Tx) -> tuple[Outcome, list[Outbound]]:
        leases = await environments.lock(tx, [name])
        if name not in leases:
            raise ProblemError(404, "Not found", f"environment {name} was never heard")
        session = core.session(tx)
        await session.load_active(name)
        before = session.states()
        for operation in before:
            session.decide(operation, model.DeclaredDead(name, by, reason))
        await audit.record(tx, "declare-dead", by, reason, environment=name)
        if core.recovering:
            await recover(core, session)
        listed = await changes(tx, before, session.states())
        count = sum(
            1 for operation, state in session.states().items() if operation in before and state is not before[operation]
        )
        events = await session.finish()
        if session.raised:
            await core.tell_lease(tx, leases[name], RaiseTerm(), events)
        link = leases[name].link
        text = [f"Environment {name} is declared off: {count} operation(s) there are freed; its old grants are void."]
        if link is not Link.LOST:
            text.append(
                f"Careful: it is {link.value} now. If it is not off, freed work may run twice until it stops it."
            )
        return {"environment": name, "operations": count, "link": link.value, "changes": listed, "text": text}, events

    outcome = await act(core, work, "declare-dead", dry_run=dry_run)
    if not dry_run:
        log.warning(
            "environment_declared_dead", environment=name, by=by, reason=reason, operations=outcome["operations"]
        )
    return outcome


async def owned(core: Core, tx: Tx, operation: str, principal: Principal) -> tuple[Any, Any]:
    """Lock the environment, then the operation, of somebody who may act on it. Raises ProblemError 404 or 403."""
    where = await tx.fetchrow("select environment, project from operation where id = $1::uuid", operation)
    if where is None or not principal.sees(where["project"]):
        raise ProblemError(404, "Not found", f"operation {operation} is not known")
    check(principal, Role.OPERATOR, where["project"])
    leases = await environments.lock(tx, [where["environment"]])
    session = core.session(tx)
    await session.load([operation])
    return session, leases


async def override(core: Core, operation: str, principal: Principal, reason: str, *, dry_run: bool) -> Outcome:
    """Free one operation although its old placement may still run."""

    async def work(tx: Tx) -> tuple[Outcome, Sequence[Outbound]]:
        session, leases = await owned(core, tx, operation, principal)
        before = session.state(operation)
        if before.placement not in OWNED:
            detail = f"operation {operation} is {before.phase.value}: no environment holds it, there is nothing to free"
            raise ProblemError(409, "Nothing to free", detail)
        session.decide(operation, model.Override(principal.name, reason))
        listed = await changes(tx, {operation: before}, session.states())
        events = await session.finish()
        for environment in sorted(session.raised):
            await core.tell_lease(tx, leases[environment], RaiseTerm(), events)
        await audit.record(
            tx,
            "override",
            principal.name,
            reason,
            environment=before.environment,
            operation=operation,
            epoch=str(before.epoch),
            possible_overlap=True,
        )
        text = [
            f"Epoch {before.epoch} may still run in {before.environment}: the operation may overlap with itself.",
            "The old environment is told to stop it; whatever the old attempt reports is a record and changes nothing.",
        ]
        return {
            "operation": operation,
            "phase": session.state(operation).phase.value,
            "possibleOverlap": True,
            "changes": listed,
            "text": text,
        }, events

    outcome = await act(core, work, "override", dry_run=dry_run)
    if not dry_run:
        log.warning("emergency_override", operation=operation, by=principal.name, reason=reason)
    return outcome


async def move(core: Core, operation: str, principal: Principal, order: Order, *, dry_run: bool) -> Outcome:
    """Have one operation stopped where it is, with a checkpoint, and placed in one named environment by the rules."""
    to = order.environment
    if to and not core.verdicts.is_registered(to):
        known = ", ".join(sorted(core.verdicts.names())) or "none"
        raise ProblemError(404, "Not found", f"no environment {to!r} is registered; there are: {known}")

    async def work(tx: Tx) -> tuple[Outcome, Sequence[Outbound]]:
        session, leases = await owned(core, tx, operation, principal)
        before = session.state(operation)
        why = why_not_move(before, to) or await _not_allowed(tx, operation, to)
        if why:
            raise ProblemError(409, "Cannot be moved", f"operation {operation}: {why}")
        session.decide(operation, model.MoveRequested(to, principal.name, order.reason))
        listed = await changes(tx, {operation: before}, session.states())
        events = await session.finish()
        await audit.record(
            tx, "move", principal.name, order.reason, environment=to, operation=operation, left=before.environment
        )
        text = _move_text(before, to)
        lease = leases.get(before.environment)
        if before.placement in OWNED and lease is not None and lease.link is not Link.CONNECTED:
            text.append(f"Environment {before.environment} is not heard just now: it stops the work when it returns.")
        return {"operation": operation, "to": to, "changes": listed, "text": text}, events

    outcome = await act(core, work, "move", dry_run=dry_run)
    if not dry_run:
        log.info("move_requested", operation=operation, to=to, by=principal.name, reason=order.reason)
    return outcome


class _Choice(msgspec.Struct, frozen=True):
    allow: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()


class _Constraints(msgspec.Struct, frozen=True):
    environments: _Choice = _Choice()


class _Spec(msgspec.Struct, frozen=True):
    constraints: _Constraints = _Constraints()


class _Document(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


async def _not_allowed(tx: Tx, operation: str, to: str) -> str:
    """Say why its own specification excludes the target, before anything is stopped for it; empty = it does not."""
    body = await tx.fetchval(
        "select c.body from operation o join content c on c.sha256 = o.spec_sha256 where o.id = $1::uuid", operation
    )
    choice = msgspec.json.decode(body, type=_Document).spec.constraints.environments
    if to and ((choice.allow and to not in choice.allow) or to in choice.forbid):
        return f"its specification does not allow {to} (constraints.environments)"
    return ""


def _move_text(before: model.OperationState, to: str) -> list[str]:
    where = f"in {to} only" if to else "wherever it may run"
    rules = "Every constraint is judged again; residency, licences and the rest cannot be overridden."
    if before.placement in OWNED:
        return [
            f"{before.environment} is asked to seal a checkpoint if it declares them, to stop, and to give it back.",
            f"Then it is judged and placed {where}, from its latest sealed checkpoint if there is one. {rules}",
        ]
    return [f"It is judged and placed {where}. {rules}"]


async def show_hold(core: Core, tx: Tx) -> dict[str, Any]:
    """Return whether the centre doubts its own hearing, and what waits for that."""
    centre: Any = await tx.fetchrow("select held_since, lifted from centre")
    leases = await environments.all_leases(tx)
    silent = sorted(name for name, lease in leases.items() if lease.link is Link.LOST)
    views = [await environment_view(core, tx, name) for name in silent]
    waiting = [
        {**row, "environment": view["environment"]}
        for view in views
        if view is not None
        for row in view["operations"]
        if row["prospect"] == "held"
    ]
    since = centre["held_since"].isoformat() if centre["held_since"] else ""
    text = [
        f"Held since {since}: more than half of the environments fell silent together, so the centre doubts its own "
        "hearing. Nothing is placed again until one of them returns or an administrator lifts the hold."
        if since
        else "Not held: the centre trusts its hearing."
    ]
    return {
        "held": bool(since),
        "since": since,
        "silent": silent,
        "heard": sorted(name for name, lease in leases.items() if lease.link is Link.CONNECTED),
        "waiting": waiting,
        "lifted": centre["lifted"],
        "text": text,
    }


async def lift_hold(core: Core, by: str, reason: str, *, dry_run: bool) -> Outcome:
    """Let time free what it may: a person has looked, and the silence is real."""

    async def work(tx: Tx) -> tuple[Outcome, list[Outbound]]:
        shown = await show_hold(core, tx)
        await tx.execute("update centre set lifted = lifted + 1, held_since = null")
        await audit.record(tx, "lift-hold", by, reason, silent=shown["silent"], waiting=len(shown["waiting"]))
        count = len(shown["waiting"])
        text = [
            *shown["text"],
            f"Lifting lets {count} operation(s) be placed again once their time is over.",
        ]
        return {"lifted": True, "held": shown["held"], "silent": shown["silent"], "text": text}, []

    outcome = await act(core, work, "lift-hold", dry_run=dry_run)
    if not dry_run:
        log.warning("expiry_hold_lifted", by=by, reason=reason)
    return outcome


async def operation_for(tx: Tx, operation: str, principal: Principal) -> model.OperationState:
    """Return an operation for showing. Raises ProblemError 404."""
    state = await rows.peek(tx, operation)
    if state is None or not principal.sees(state.project):
        raise ProblemError(404, "Not found", f"operation {operation} is not known")
    return state
