"""What a person decides about work in quarantine: take it over, or have it stopped."""

from collections.abc import Sequence
from typing import Any

import msgspec

from landbridge.bus.envelope import Outbound
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_recovery import why_not_adopt
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases_centre import EnvironmentLease, Link
from landbridge.runtime import logs
from landbridge.runtime.problems import ProblemError
from landbridge.store import Tx
from landbridge_dispatch.coordinator import audit, environments, quarantine
from landbridge_dispatch.coordinator.acting import Outcome, act, becomes
from landbridge_dispatch.coordinator.core import Core
from landbridge_dispatch.coordinator.quarantine import FIELDS, GRACE_MS, STOP_REASON, item_of
from landbridge_dispatch.coordinator.session import Session

log = logs.get(__name__)

Key = tuple[str, str, Epoch]
"""Environment, operation, epoch."""


async def adopt(core: Core, key: Key, by: str, reason: str, *, dry_run: bool) -> Outcome:
    """Make a quarantined slot the placement of its operation, which must be known by now."""
    environment, operation, epoch = key

    async def work(tx: Tx) -> tuple[Outcome, Sequence[Outbound]]:
        lease = await _lock(tx, environment)
        row = await _entry(tx, key, ("open",))
        if lease.link is not Link.CONNECTED:
            detail = f"environment {environment} is {lease.link.value}; adopt once it is connected"
            raise ProblemError(409, "Cannot be adopted", detail)
        session = core.session(tx)
        await session.load([operation])
        state = session.state(operation)
        if state is None:
            detail = (
                f"operation {operation} is not known here. Its id derives from project and idempotency key: submit it "
                "again with the same key; it then waits for this decision and is not started anew"
            )
            raise ProblemError(409, "Cannot be adopted", detail)
        why = why_not_adopt(state, epoch) or await _why_not_now(core, tx, key)
        if why:
            raise ProblemError(409, "Cannot be adopted", f"{why}; have the quarantined slot stopped instead")
        session.decide(operation, model.AdoptFound(item_of(row), by, reason))
        after = session.state(operation)
        assert after is not None
        events = await session.finish()
        await _decided(core, tx, key, "adopted", by, reason, lease, events)
        text = [f"Epoch {epoch} of operation {operation} in {environment} counts as its placement from now on."]
        return {**_shown(key), "becomes": becomes(after), "text": text}, events

    return await _act(core, work, "adopt", key, by, reason, dry_run=dry_run)


async def stop(core: Core, key: Key, by: str, reason: str, *, dry_run: bool) -> Outcome:
    """Have a quarantined slot stopped; its record stays here, and there until its term is over."""
    environment, operation, epoch = key

    async def work(tx: Tx) -> tuple[Outcome, Sequence[Outbound]]:
        lease = await _lock(tx, environment)
        await _entry(tx, key, ("open", "stopping"))
        session = Session(tx, core.specifications, core.clock.wall(), timing=core.timing)
        session.command(operation, model.SendStop(environment, epoch, STOP_REASON, GRACE_MS))
        events = await session.finish()
        await _decided(core, tx, key, "stopping", by, reason, lease, events)
        text = [f"{environment} is told to stop epoch {epoch} of operation {operation}; it is over once it says so."]
        if lease.link is not Link.CONNECTED:
            text.append(f"It is {lease.link.value} just now: it hears this when it returns.")
        return {**_shown(key), "becomes": "stopping", "text": text}, events

    return await _act(core, work, "stop", key, by, reason, dry_run=dry_run)


async def _act(core: Core, work: Any, what: str, key: Key, by: str, reason: str, *, dry_run: bool) -> Outcome:
    outcome = await act(core, work, f"quarantine-{what}", dry_run=dry_run)
    if not dry_run:
        log.warning("quarantine_decided", what=what, environment=key[0], operation=key[1], by=by, reason=reason)
    return outcome


async def _why_not_now(core: Core, tx: Tx, key: Key) -> str:
    """Say what forbids taking a slot over although its operation could take it; empty = nothing."""
    environment, operation, epoch = key
    if core.recovering:
        return "the centre recovers; the highest epoch found decides once every environment has shown what it holds"
    higher = await tx.fetchrow(
        """select environment, generation, counter from quarantine where operation = $1
           and state in ('open', 'stopping') and (generation, counter) > ($2, $3)
           order by generation desc, counter desc limit 1""",
        operation,
        epoch.generation,
        epoch.counter,
    )
    if higher is None:
        return ""
    found = Epoch(higher["generation"], higher["counter"])
    return f"{higher['environment']} holds epoch {found} of it, which supersedes {epoch} in {environment}"


async def _lock(tx: Tx, environment: str) -> EnvironmentLease:
    found = (await environments.lock(tx, [environment])).get(environment)
    if found is None:
        raise ProblemError(404, "Not found", f"environment {environment} was never heard")
    return found


async def _entry(tx: Tx, key: Key, states: tuple[str, ...]) -> Any:
    environment, operation, epoch = key
    row = await tx.fetchrow(
        f"""select {FIELDS} from quarantine where environment = $1 and operation = $2 and generation = $3
            and counter = $4 for update""",  # noqa: S608 - our own columns
        environment,
        operation,
        epoch.generation,
        epoch.counter,
    )
    if row is None:
        detail = f"nothing of operation {operation}, epoch {epoch}, is in quarantine in {environment}"
        raise ProblemError(404, "Not found", f"{detail}; list it: landbridge quarantine list")
    if row["state"] not in states:
        raise ProblemError(409, "Already decided", f"it is {row['state']}, by {row['decided_by'] or 'the environment'}")
    return row


async def _decided(
    core: Core, tx: Tx, key: Key, state: str, by: str, reason: str, lease: EnvironmentLease, events: list[Outbound]
) -> None:
    environment, operation, epoch = key
    await tx.execute(
        """update quarantine set state = $5, decided_by = $6, decided_at = now() where environment = $1
           and operation = $2 and generation = $3 and counter = $4""",
        environment,
        operation,
        epoch.generation,
        epoch.counter,
        state,
        by,
    )
    await audit.record(
        tx, f"quarantine-{state}", by, reason, environment=environment, operation=operation, epoch=str(epoch)
    )
    left = int(await tx.fetchval(quarantine.OPEN, environment))
    after = msgspec.structs.replace(lease, quarantined=left)
    await environments.save(tx, (after,))
    events.append(environments.link_event(after, core.now(), core.timing.ttl_ms))


def _shown(key: Key) -> dict[str, Any]:
    return {"environment": key[0], "operation": key[1], "epoch": str(key[2])}
