"""What people asked of environments and of parts of them, as it is kept: SQL and rows."""

from datetime import datetime
from typing import Any

import msgspec

from landbridge.schema.wire.event_v1 import ControlHold
from landbridge.store import Tx


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What holds of one environment, and of parts of it."""

    paused: bool = False
    draining: bool = False
    by: str = ""
    reason: str = ""
    holds: tuple[ControlHold, ...] = ()


async def read(tx: Tx, name: str) -> State:
    """Return what holds of an environment; nothing for one that is not known."""
    row = await tx.fetchrow(
        "select paused, draining, control_by as by, control_reason as reason from environment where name = $1", name
    )
    if row is None:
        return State()
    found = await tx.fetch(
        """select capability_class, node_selector, by, reason, at from hold where environment = $1
           order by capability_class, node_selector""",
        name,
    )
    return State(**dict(row), holds=tuple(ControlHold(**dict(item)) for item in found))


async def set_whole(tx: Tx, name: str, state: State) -> None:
    """Write what holds of the environment as a whole."""
    await tx.execute(
        """update environment set paused = $2, draining = $3, control_by = $4, control_reason = $5
           where name = $1""",
        name,
        state.paused,
        state.draining,
        state.by,
        state.reason,
    )


async def add(tx: Tx, name: str, hold: ControlHold) -> None:
    await tx.execute(
        """insert into hold (environment, capability_class, node_selector, by, reason, at)
           values ($1, $2, $3, $4, $5, $6)""",
        name,
        hold.capability_class,
        hold.node_selector,
        hold.by,
        hold.reason,
        hold.at,
    )


async def take_off(tx: Tx, name: str, hold: ControlHold) -> None:
    await tx.execute(
        "delete from hold where environment = $1 and capability_class = $2 and node_selector = $3",
        name,
        hold.capability_class,
        hold.node_selector,
    )


async def forget(tx: Tx, name: str) -> None:
    """Drop all holds of an environment that is removed."""
    await tx.execute("delete from hold where environment = $1", name)


async def record(tx: Tx, action: str, name: str, part: str, by: str, reason: str, at: datetime) -> None:
    """Keep one decision in the transaction that carries it out. Rows are only ever added."""
    await tx.execute(
        "insert into audit (at, action, environment, part, by, reason) values ($1, $2, $3, $4, $5, $6)",
        at,
        action,
        name,
        part,
        by,
        reason,
    )


async def latest(tx: Tx, limit: int, name: str) -> list[dict[str, Any]]:
    """Return what people decided about an environment, the newest first."""
    rows = await tx.fetch(
        """select at, action, environment, part, by, reason from audit where environment = $2
           order by id desc limit $1""",
        limit,
        name,
    )
    return [{**dict(row), "at": row["at"].isoformat()} for row in rows]
