"""Slots in environments that no operation here accounts for: kept, told, and left alone until a person decides.

They are never deleted. While one is undecided, an operation of its id that becomes known is not placed anew: it may
run there.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import PlacementState
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases_centre import EnvironmentLease
from landbridge.store import Tx
from landbridge_dispatch.coordinator import wire
from landbridge_dispatch.coordinator.session import Session

Items = list[tuple[str, model.InventoryItem]]
Unknown = tuple[str, model.InventoryItem, str]
"""Operation, slot, and why it is unknown."""

STOP_REASON = "quarantined"
GRACE_MS = 30_000
_OVER = frozenset({"finished", "relinquished", "failed-to-start"})
_NOTE = """
insert into quarantine (environment, operation, generation, counter, why, slot, term, final, outcome, exit_code, reason,
    message, checkpoint, report)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
on conflict (environment, operation, generation, counter) do update set slot = excluded.slot, term = excluded.term,
    final = excluded.final, outcome = excluded.outcome, exit_code = excluded.exit_code, reason = excluded.reason,
    message = excluded.message, checkpoint = excluded.checkpoint, report = excluded.report, seen_at = now(),
    state = case when quarantine.state = 'gone' then 'open' else quarantine.state end
returning state
"""
OPEN = "select count(*) from quarantine where environment = $1 and state = 'open'"
FIELDS = """environment, operation, generation, counter, why, slot, term, final, outcome, exit_code, reason, message,
    checkpoint, report, state, found_at, seen_at, decided_by, decided_at"""


async def note(
    session: Session, lease: EnvironmentLease, items: Items, unknown: Sequence[Unknown], *, recovering: bool
) -> int:
    """Keep what an inventory shows of unknown work; return how much of it waits for a decision.

    What had ended and is gone needs none any more. What had not ended and is not shown waits on: its record is lost.
    """
    tx, environment = session.tx, lease.environment
    for operation, item, why in unknown:
        report = bytes(item.report) if isinstance(item.report, msgspec.Raw) else b""
        state = await tx.fetchval(
            _NOTE, environment, operation, item.epoch.generation, item.epoch.counter, why, item.slot.value, item.term,
            item.final, item.outcome, item.exit_code, item.reason, item.message, item.checkpoint, report,
        )  # fmt: skip
        if state == "stopping":
            session.command(operation, model.SendStop(environment, item.epoch, STOP_REASON, GRACE_MS))
    listed = [f"{operation} {item.epoch}" for operation, item in items]
    gone = await tx.fetch(
        f"""update quarantine set state = 'gone' where environment = $1 and state in ('open', 'stopping')
            and slot in ('finished', 'tombstone')
            and not (operation || ' ' || generation || '.' || counter = any($2)) returning {FIELDS}""",  # noqa: S608
        environment,
        listed,
    )
    await session.load(row["operation"] for row in gone)
    for row in gone:
        await _release(session, row["operation"], item_of(row), recovering=recovering)
    return int(await tx.fetchval(OPEN, environment))


async def held_there(tx: Tx, environment: str) -> set[tuple[str, Epoch]]:
    """Return what of unknown work in an environment waits for a decision or for its stop to be proven."""
    found = await tx.fetch(
        """select operation, generation, counter from quarantine
           where environment = $1 and state in ('open', 'stopping')""",
        environment,
    )
    return {(row[0], Epoch(row[1], row[2])) for row in found}


async def undecided(tx: Tx, operations: Iterable[str]) -> set[str]:
    """Return those operations of which a slot waits for a decision or for its stop to be proven.

    The rows stay as they are until `tx` ends: whoever settles one of them meanwhile sees what was decided by it, and
    lets the operation go on.
    """
    found = await tx.fetch(
        "select operation from quarantine where operation = any($1) and state in ('open', 'stopping') for share",
        list(operations),
    )
    return {row[0] for row in found}


async def _release(session: Session, operation: str, item: model.InventoryItem, *, recovering: bool) -> None:
    """Let an operation that waited for a decision go on with what is known of its slot; a recovery decides alone."""
    state = session.state(operation)
    held = state is not None and state.placement is PlacementState.RECOVERING
    if held and not recovering and not await undecided(session.tx, [operation]):
        session.decide(operation, model.Recovered(item))


async def hear(
    session: Session, heads: Iterable[tuple[str, wire.ReportHead, msgspec.Raw]], *, recovering: bool
) -> None:
    """Take note that unknown work which was asked to stop is over, and let its operation be placed, if there is one.

    While the centre recovers nothing is settled: its slot must still be there when all inventories are compared.
    """
    if recovering:
        return
    for environment, head, _ in heads:
        if not _is_over(head) or not _concerns(session.state(head.operation)):
            continue
        epoch = Epoch(head.epoch.generation, head.epoch.counter)
        row = await session.tx.fetchrow(
            f"""update quarantine set state = 'stopped', seen_at = now() where environment = $1 and operation = $2
                and generation = $3 and counter = $4 and state = 'stopping' returning {FIELDS}""",  # noqa: S608
            environment,
            head.operation,
            epoch.generation,
            epoch.counter,
        )
        if row is None:
            continue
        session.command(head.operation, model.SendSettle(environment, epoch))
        over = msgspec.structs.replace(item_of(row), slot=SlotPhase.TOMBSTONE, final="relinquished")
        await _release(session, head.operation, over, recovering=recovering)


async def close(tx: Tx, operations: Sequence[str]) -> None:
    """Take what a recovery has adopted out of quarantine."""
    await tx.execute(
        """update quarantine set state = 'adopted', decided_by = 'recovery', decided_at = now()
           where operation = any($1) and state = 'open'""",
        list(operations),
    )


def _is_over(head: wire.ReportHead) -> bool:
    """Whether a report proves that nothing of its epoch runs there, nor will: an end, or that it is out of date."""
    return head.state in _OVER or (head.state == "refused" and head.reason == "stale-epoch")


def _concerns(state: model.OperationState | None) -> bool:
    return state is None or state.placement is PlacementState.RECOVERING


def item_of(row: Any) -> model.InventoryItem:
    """Return the slot that a row tells of, as the inventory showed it."""
    return model.InventoryItem(
        environment=row["environment"],
        epoch=Epoch(row["generation"], row["counter"]),
        term=row["term"],
        environment_term=row["term"],
        slot=SlotPhase(row["slot"]),
        reason=row["reason"],
        message=row["message"],
        checkpoint=row["checkpoint"],
        report=msgspec.Raw(row["report"]) if row["report"] else None,
        final=row["final"],
        outcome=row["outcome"],
        exit_code=row["exit_code"],
    )


async def entries(tx: Tx, *, everything: bool) -> list[dict[str, Any]]:
    """Return what is in quarantine for people; `everything`: also what was decided."""
    rows = await tx.fetch(
        f"""select {FIELDS}, exists (select 1 from operation o where o.id::text = q.operation) as known
            from quarantine q where $1 or state in ('open', 'stopping')
            order by found_at, environment, operation limit 1000""",  # noqa: S608 - our own columns
        everything,
    )
    return [
        {
            "environment": row["environment"],
            "operation": row["operation"],
            "epoch": f"{row['generation']}.{row['counter']}",
            "slot": row["slot"],
            "why": row["why"],
            "state": row["state"],
            "known": row["known"],
            "foundAt": row["found_at"].isoformat(),
            "seenAt": row["seen_at"].isoformat(),
            "decidedBy": row["decided_by"],
        }
        for row in rows
    ]
