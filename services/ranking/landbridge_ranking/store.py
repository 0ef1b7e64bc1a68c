"""The tables of ranking: statements only, decisions elsewhere."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from landbridge.domain.admission import Admitted
from landbridge.domain.decision_record import DecisionRecord
from landbridge.domain.ledger import Charge
from landbridge.domain.tickets import Ticket
from landbridge.store import Tx

_record = msgspec.json.Decoder(DecisionRecord)
_amounts = msgspec.json.Decoder(dict[str, int])
_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger says of an operation. `left`: it left its environment because it was asked to."""

    round: int
    environment: str
    closed: bool
    left: bool = False


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """One operation that waits, with what people ask about."""

    ticket: Ticket
    key: str
    queue: str
    project: str
    priority: int
    reason: str


# -- who may admit -----------------------------------------------------------------------------------------------------


async def raise_fence(tx: Tx, holder: str) -> int:
    """Make the caller the admitter; return its number. Waits for transactions of the one before."""
    return int(
        await tx.fetchval("update admitter set fence = fence + 1, holder = $1, since = now() returning fence", holder)
    )


async def hold_fence(tx: Tx, silence_s: int) -> int:
    """Return the number in force, and keep it so until this transaction ends, or was silent for `silence_s` seconds.

    The limit keeps an admitter that was paused in mid-transaction from blocking its successor.
    """
    return int(
        await tx.fetchval(
            "select fence, set_config('idle_in_transaction_session_timeout', $1, true) from admitter for share",
            f"{silence_s}s",
        )
    )


# -- the ledger --------------------------------------------------------------------------------------------------------


async def known(tx: Tx, operations: Sequence[str]) -> dict[str, Known]:
    """Return what is known of operations that were placed, or ended, before."""
    rows = await tx.fetch(
        "select operation, round, environment, closed, leaving from charge where operation = any($1::uuid[])",
        sorted(operations),
    )
    return {str(row[0]): Known(row[1], row[2], row[3], row[4]) for row in rows}


async def charge(tx: Tx, admitted: Sequence[tuple[Admitted, str, bool]], at: datetime) -> None:
    """Write charges: what was admitted, by which decision, whether it had still held out for the best."""
    ordered = sorted(admitted, key=lambda item: item[0].ticket.operation)
    charges = [item[0].charge for item in ordered]
    await tx.later(
        "charge",
        """insert into charge (operation, round, environment, queue, project, amounts, decision, previous, held_out,
               priority, borrowed, evictable, ends, component, at, held, closed)
           select *, $15::timestamptz, true, false from unnest($1::uuid[], $2::int[], $3::text[], $4::text[],
               $5::text[], $6::text[], $7::text[], $8::text[], $9::boolean[], $10::int[], $11::boolean[],
               $12::boolean[], $13::timestamptz[], $14::text[])
           on conflict (operation) do update set round = excluded.round, environment = excluded.environment,
               queue = excluded.queue, project = excluded.project, amounts = excluded.amounts,
               decision = excluded.decision, previous = excluded.previous, held_out = excluded.held_out,
               priority = excluded.priority, borrowed = excluded.borrowed, evictable = excluded.evictable,
               ends = excluded.ends, component = excluded.component, at = excluded.at, held = true,
               leaving = false""",
        [found.operation for found in charges],
        [found.round for found in charges],
        [found.environment for found in charges],
        [found.queue for found in charges],
        [found.project for found in charges],
        [_text(tuple(found.amounts.items())) for found in charges],
        [decision for _, decision, _ in ordered],
        [item[0].ticket.previous for item in ordered],
        [held_out for _, _, held_out in ordered],
        [found.priority for found in charges],
        [found.borrowed for found in charges],
        [found.evictable for found in charges],
        [found.ends for found in charges],
        [found.component for found in charges],
        at,
    )


@lru_cache(maxsize=4096)
def _text(amounts: tuple[tuple[str, int], ...]) -> str:
    return _encode(dict(amounts)).decode()


async def release(tx: Tx, operations: Sequence[str]) -> None:
    """Write that charges are given back; the rows stay, so that late messages are known as late."""
    await tx.later("charge", "update charge set held = false where operation = any($1::uuid[])", sorted(operations))


async def close(tx: Tx, operations: Sequence[str], at: datetime) -> None:
    """Write that operations have ended, also those that were never placed: nothing may place them any more."""
    await tx.later(
        "charge",
        """insert into charge (operation, round, environment, queue, project, amounts, decision, previous, held_out,
               at, held, closed)
           select operation, 0, '', '', '', '{}', '', '', false, $2, false, true from unnest($1::uuid[]) as operation
           on conflict (operation) do update set held = false, closed = true""",
        sorted(operations),
        at,
    )


async def ask_to_leave(tx: Tx, operations: Sequence[str]) -> None:
    """Write that operations were asked to leave: a successor must not ask others instead."""
    await tx.later(
        "charge", "update charge set leaving = true where held and operation = any($1::uuid[])", sorted(operations)
    )


async def charges(tx: Tx) -> list[tuple[Charge, bool]]:
    """Return everything that is held, and whether it was asked to leave."""
    rows = await tx.fetch(
        """select operation, round, environment, queue, project, amounts, priority, borrowed, evictable, at, ends,
               component, leaving from charge where held order by operation"""
    )
    return [(_charge(row), row["leaving"]) for row in rows]


def _charge(row: Any) -> Charge:
    return Charge(
        str(row["operation"]),
        row["round"],
        row["environment"],
        row["queue"],
        row["project"],
        _amounts.decode(row["amounts"]),
        priority=row["priority"],
        borrowed=row["borrowed"],
        evictable=row["evictable"],
        at=row["at"],
        ends=row["ends"],
        component=row["component"],
    )


async def record(tx: Tx, action: str, by: str, reason: str, queue: str, operation: str = "") -> None:
    """Keep what a person decided, in the transaction that carries it out."""
    await tx.execute(
        "insert into audit (action, by, reason, queue, operation) values ($1, $2, $3, $4, $5)",
        action,
        by,
        reason,
        queue,
        operation,
    )


# -- what waits --------------------------------------------------------------------------------------------------------


async def let_wait(tx: Tx, rows: Sequence[WaitingRow]) -> None:
    """Write operations that wait for admission."""
    ordered = sorted(rows, key=lambda row: row.ticket.operation)
    await tx.later(
        "waiting",
        """insert into waiting (operation, round, class, queue, project, priority, position, previous, reason, since)
           select * from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::int[], $7::bigint[],
               $8::text[], $9::text[], $10::timestamptz[])
           on conflict (operation) do update set round = excluded.round, class = excluded.class,
               queue = excluded.queue, project = excluded.project, priority = excluded.priority,
               position = excluded.position, previous = excluded.previous, reason = excluded.reason,
               since = excluded.since""",
        [row.ticket.operation for row in ordered],
        [row.ticket.round for row in ordered],
        [row.key for row in ordered],
        [row.queue for row in ordered],
        [row.project for row in ordered],
        [row.priority for row in ordered],
        [row.ticket.position for row in ordered],
        [row.ticket.previous for row in ordered],
        [row.reason for row in ordered],
        [row.ticket.since for row in ordered],
    )


async def stop_waiting(tx: Tx, operations: Sequence[str]) -> None:
    await tx.later("waiting", "delete from waiting where operation = any($1::uuid[])", sorted(operations))


async def change_reason(tx: Tx, key: str, reason: str) -> None:
    await tx.later("waiting", "update waiting set reason = $2 where class = $1 and reason <> $2", key, reason)


async def waiting(tx: Tx) -> list[tuple[str, Ticket, str]]:
    """Return all that waits, in the order of arrival: class, ticket, reason last told."""
    rows = await tx.fetch(
        "select class, operation, round, position, since, previous, reason from waiting order by position"
    )
    return [(row[0], Ticket(str(row[1]), row[2], row[3], row[4], row[5]), row[6]) for row in rows]


async def keep_assessments(tx: Tx, assessments: Mapping[str, bytes]) -> None:
    """Write the newest verdicts about classes in which operations wait."""
    keys = sorted(assessments)
    await tx.later(
        "requirement_class",
        """insert into requirement_class (key, assessment) select * from unnest($1::text[], $2::bytea[])
           on conflict (key) do update set assessment = excluded.assessment""",
        keys,
        [assessments[key] for key in keys],
    )


async def assessments(tx: Tx) -> list[bytes]:
    """Return the verdicts about all classes in which operations wait; drop those of other classes."""
    await tx.execute("delete from requirement_class c where not exists (select from waiting w where w.class = c.key)")
    return [row[0] for row in await tx.fetch("select assessment from requirement_class")]


# -- decisions and observations ----------------------------------------------------------------------------------------


async def keep_decisions(tx: Tx, records: Sequence[DecisionRecord]) -> None:
    """Write decision records, equal ones once."""
    ordered = sorted(records, key=lambda record: record.id)
    await tx.later(
        "decision",
        """insert into decision (id, record, at) select * from unnest($1::text[], $2::bytea[], $3::timestamptz[])
           on conflict do nothing""",
        [record.id for record in ordered],
        [zlib.compress(msgspec.json.encode(record), 1) for record in ordered],
        [record.at for record in ordered],
    )


async def decision(tx: Tx, id_: str) -> DecisionRecord | None:
    body = await tx.fetchval("select record from decision where id = $1", id_)
    return _record.decode(zlib.decompress(body)) if body is not None else None


async def keep_observations(tx: Tx, seen: Mapping[str, bytes]) -> None:
    names = sorted(seen)
    await tx.later(
        "observation",
        """insert into observation (environment, seen) select * from unnest($1::text[], $2::bytea[])
           on conflict (environment) do update set seen = excluded.seen""",
        names,
        [seen[name] for name in names],
    )


async def observations(tx: Tx) -> dict[str, bytes]:
    return {row[0]: row[1] for row in await tx.fetch("select environment, seen from observation")}


async def purge(tx: Tx, before: datetime) -> None:
    """Drop rows of operations that ended, and decisions that were made, before a moment no message is older than."""
    await tx.execute("delete from charge where not held and at < $1", before)
    await tx.execute(
        """delete from decision d where at < $1
           and not exists (select from charge c where c.held and c.decision = d.id)""",
        before,
    )
