"""What people decided: who, what, when and why. Rows are only ever added."""

from typing import Any

import msgspec

from landbridge.store import Tx


async def record(
    tx: Tx,
    action: str,
    by: str,
    reason: str,
    *,
    environment: str = "",
    operation: str = "",
    **details: object,
) -> None:
    """Keep one decision in the transaction that carries it out."""
    await tx.execute(
        """insert into audit (action, by, reason, environment, operation, details)
           values ($1, $2, $3, $4, $5, $6::jsonb)""",
        action,
        by,
        reason,
        environment,
        operation,
        msgspec.json.encode(details).decode(),
    )


async def latest(tx: Tx, *, limit: int, operation: str = "", environment: str = "") -> list[dict[str, Any]]:
    """Return decisions, the newest first."""
    rows = await tx.fetch(
        """select at, action, by, reason, environment, operation, details from audit
           where ($2 = '' or operation = $2) and ($3 = '' or environment = $3) order by id desc limit $1""",
        limit,
        operation,
        environment,
    )
    return [
        {
            "at": row["at"].isoformat(),
            "action": row["action"],
            "by": row["by"],
            "reason": row["reason"],
            "environment": row["environment"],
            "operation": row["operation"],
            "details": msgspec.json.decode(row["details"]),
        }
        for row in rows
    ]
