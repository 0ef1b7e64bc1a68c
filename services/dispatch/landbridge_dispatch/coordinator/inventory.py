"""Full inventories: gathered until complete, compared, remembered for people; after a restore, the only truth."""

from collections.abc import Iterable

import msgspec

from landbridge.bus.envelope import Outbound
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import PlacementState
from landbridge.domain.ownership.leases_centre import EnvironmentLease, Reconciled
from landbridge.domain.ownership.reconcile import compare, highest_slots
from landbridge.runtime import logs
from landbridge.store import Tx
from landbridge_dispatch.coordinator import quarantine, reading, wire
from landbridge_dispatch.coordinator.core import Core
from landbridge_dispatch.coordinator.measures import alarms
from landbridge_dispatch.coordinator.quarantine import Items, Unknown
from landbridge_dispatch.coordinator.session import Session

log = logs.get(__name__)

# An environment that returns and is lost again at once would otherwise hide what its first return has shown.
_OUTCOMES_KEPT = 20
_KEEP_OUTCOME = """
with latest as (
    insert into reconciliation (environment, term, incarnation, restored, outcome) values ($1, $2, $3, $4, $5)
    on conflict (environment) do update set term = excluded.term, incarnation = excluded.incarnation,
        restored = excluded.restored, at = now(), outcome = excluded.outcome
), old as (
    delete from reconciliation_past where environment = $1 and term < (
        select term from reconciliation_past where environment = $1 order by term desc offset $6 - 2 limit 1
    )
)
insert into reconciliation_past (environment, term, incarnation, restored, outcome) values ($1, $2, $3, $4, $5)
on conflict (environment, term) do update set incarnation = excluded.incarnation, restored = excluded.restored,
    at = now(), outcome = excluded.outcome
"""
_DECLARED_DEAD = """
select environment from audit where action = 'declare-dead'
and id > coalesce((select max(id) from audit where action = 'begin-generation'), 0)
"""


async def take_inventory(
    core: Core,
    session: Session,
    environment: str,
    inventory: wire.Inventory,
    body: bytes,
    leases: dict[str, EnvironmentLease],
    events: list[Outbound],
) -> None:
    """Keep one part; once all parts of the term in force are there, compare, and let the environment start work."""
    lease = leases.get(environment)
    if lease is None or inventory.incarnation != lease.incarnation or inventory.term != lease.held_term:
        log.info("inventory_out_of_date", environment=environment, term=inventory.term)
        return
    if lease.reconciled_term == lease.held_term:
        return
    parts = await _keep_part(session.tx, environment, inventory, body)
    if parts is None:
        return
    items = [item for part in parts for item in read_items(part, environment)]
    quarantined = await _compare(session, lease, items)
    undecided = await quarantine.note(session, lease, items, quarantined, recovering=core.recovering)
    leases[environment], _ = await core.tell_lease(
        session.tx, lease, Reconciled(inventory.incarnation, inventory.term, undecided), events
    )
    await _remember(session.tx, lease, session, items, quarantined)
    if core.recovering:
        await recover(core, session)
    if not core.recovering:
        await session.tx.execute("delete from inventory_part where environment = $1", environment)


def read_items(body: bytes, environment: str) -> Items:
    """Return the slots of one part that this release understands."""
    inventory = wire.read_inventory(body)
    found = ((slot.operation, reading.slot(slot, environment, inventory.term)) for slot in inventory.slots)
    return [(operation, item) for operation, item in found if item is not None]


async def _keep_part(tx: Tx, environment: str, inventory: wire.Inventory, body: bytes) -> list[bytes] | None:
    """Store a part; return all parts if it was the last one. Parts of earlier terms go."""
    await tx.execute(
        "delete from inventory_part where environment = $1 and (incarnation <> $2 or term <> $3)",
        environment,
        inventory.incarnation,
        inventory.term,
    )
    await tx.execute(
        """insert into inventory_part (environment, part, parts, incarnation, term, body)
           values ($1, $2, $3, $4, $5, $6) on conflict (environment, part) do nothing""",
        environment,
        inventory.part,
        inventory.parts,
        inventory.incarnation,
        inventory.term,
        body,
    )
    found = await tx.fetch("select body from inventory_part where environment = $1 order by part", environment)
    return [row[0] for row in found] if len(found) >= inventory.parts else None


async def _compare(session: Session, lease: EnvironmentLease, items: Items) -> list[Unknown]:
    environment = lease.environment
    await session.load(operation for operation, _ in items)
    await session.load_active(environment)
    listed = {operation for operation, _ in items}
    states = {
        operation: state
        for operation, state in session.states().items()
        if operation in listed or state.environment == environment
    }
    ahead = [(operation, item, "never issued here") for operation, item in items if _ahead(states.get(operation), item)]
    result = compare(environment, lease.held_term, lease.restored, states, items)
    for operation, message in result.messages:
        session.decide(operation, message)
    for operation, epoch in result.quarantined:
        alarms.labels("quarantined").inc()
        log.error("slot_of_unknown_operation", environment=environment, operation=operation, epoch=str(epoch))
    unknown = set(result.quarantined)
    strange = [(operation, item, "unknown here") for operation, item in items if (operation, item.epoch) in unknown]
    return strange + ahead


def _ahead(state: model.OperationState | None, item: model.InventoryItem) -> bool:
    """Whether a slot is of an epoch that this database has not issued: the sign of a restore of the centre."""
    return state is not None and state.placement is not PlacementState.RECOVERING and item.epoch > state.epoch


async def _remember(
    tx: Tx,
    lease: EnvironmentLease,
    session: Session,
    items: Items,
    quarantined: Iterable[Unknown],
) -> None:
    """Keep what was found, for people: adopted, ended, superseded, missing, unknown."""
    states = session.states()
    found = {(operation, item.epoch) for operation, item in items}
    owned = [s for s in states.values() if s.environment == lease.environment and s.placement in model.OWNED]
    adopted = [s.operation for s in owned if (s.operation, s.epoch) in found]
    lacking = [s.operation for s in owned if (s.operation, s.epoch) not in found]
    unknown = [{"operation": operation, "epoch": str(item.epoch)} for operation, item, _ in quarantined]
    outcome = {
        "slots": len(items),
        "adopted": len(adopted),
        "missing": sorted(lacking)[:1000],
        "settledOrStopped": len(items) - len(adopted) - len(unknown),
        "quarantined": unknown[:1000],
    }
    await tx.execute(
        _KEEP_OUTCOME,
        lease.environment,
        lease.held_term,
        lease.incarnation,
        lease.restored,
        msgspec.json.encode(outcome).decode(),
        _OUTCOMES_KEPT,
    )


async def recover(core: Core, session: Session) -> None:
    """After a restore: once every environment has shown what it holds, the highest epoch found decides.

    What a person has declared dead since the generation began is not waited for.
    """
    tx = session.tx
    # For update: of two that each complete what the other waits for, the later one must see both.
    if not await tx.fetchval("select recovering from centre for update"):
        await tx.execute("delete from inventory_part")
        tx.after_commit(lambda: _end_recovery(core))
        return
    known = {row[0] for row in await tx.fetch("select environment from environment")} | set(core.verdicts.names())
    reconciled = {
        row[0]
        for row in await tx.fetch(
            "select environment from environment where reconciled_term = held_term and held_term > 0"
        )
    }
    waiting = known - reconciled - {row[0] for row in await tx.fetch(_DECLARED_DEAD)}
    if waiting:
        log.warning("recovery_waits_for_environments", waiting=sorted(waiting))
        return
    bodies = await tx.fetch("select environment, body from inventory_part")
    best = highest_slots(item for name, body in bodies for item in read_items(body, name))
    open_ones = await tx.fetch("select id::text from operation where active and placement = 'recovering'")
    await session.load(row[0] for row in open_ones)
    for operation, state in session.states().items():
        if state.placement is PlacementState.RECOVERING:
            session.decide(operation, model.Recovered(best.get(operation)))
    await quarantine.close(tx, [operation for operation in best if session.state(operation) is not None])
    await tx.execute("update centre set recovering = false")
    await tx.execute("delete from inventory_part")
    tx.after_commit(lambda: _end_recovery(core))
    log.info("recovery_done", operations=len(open_ones))


def _end_recovery(core: Core) -> None:
    core.recovering = False
