"""The tables of eligibility: statements only, decisions elsewhere."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from landbridge.domain.requirements import from_class_body
from landbridge.schema.wire.event_v1 import OperationRound
from landbridge.store import Tx
from landbridge_eligibility.deciding import KnownClass

_LOCK = "hashtextextended('landbridge eligibility waiting', 0)"


async def share_lock(tx: Tx) -> None:
    """Hold off passes over what waits until this transaction ends; other batches go on."""
    await tx.execute(f"select pg_advisory_xact_lock_shared({_LOCK})")


async def own_lock(tx: Tx) -> None:
    """Wait for all transactions that let operations wait, and hold off further ones until this transaction ends."""
    await tx.execute(f"select pg_advisory_xact_lock({_LOCK})")


async def keep_classes(tx: Tx, classes: Sequence[KnownClass]) -> None:
    """Write classes that are new, and how long known ones are to be kept."""
    ordered = sorted(classes, key=lambda known: known.key)
    await tx.execute(
        """insert into requirement_class (key, project, body, announced, keep_until)
           select * from unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::timestamptz[])
           on conflict (key) do update set seen_at = now(),
               keep_until = greatest(requirement_class.keep_until, excluded.keep_until)""",
        [known.key for known in ordered],
        [known.project for known in ordered],
        [known.requirement_class.body for known in ordered],
        [known.announced for known in ordered],
        [known.keep_until for known in ordered],
    )


async def classes_since(tx: Tx, since: datetime | None) -> list[KnownClass]:
    """Return classes that were written since a moment; all that are still kept without one."""
    rows = await tx.fetch(
        """select body, announced, keep_until, seen_at from requirement_class
           where ($1::timestamptz is null or seen_at >= $1) and keep_until > now()""",
        since,
    )
    return [KnownClass(from_class_body(row[0]), row[1], row[2], row[3]) for row in rows]


async def claim_announcements(tx: Tx, announced: Sequence[tuple[str, str]]) -> set[str]:
    """Write what is announced of classes; return the keys of those of which that is new. Others told it already."""
    ordered = sorted(announced)
    rows = await tx.fetch(
        """update requirement_class as c set announced = new.announced
           from unnest($1::text[], $2::text[]) as new (key, announced)
           where c.key = new.key and c.announced <> new.announced returning c.key""",
        [key for key, _ in ordered],
        [value for _, value in ordered],
    )
    return {row[0] for row in rows}


class Cause(NamedTuple):
    """Why operations of a class wait: code, condition, and a hash of what the sentence says."""

    reason: str
    condition: str
    told: str


async def let_wait(tx: Tx, key: str, operations: Sequence[OperationRound], cause: Cause, keep_until: datetime) -> None:
    """Write operations that wait; a newer round replaces an older one."""
    ordered = sorted(operations, key=lambda item: item.operation)
    await tx.execute(
        """insert into waiting (operation, round, class, reason, condition, told, keep_until)
           select operation, round, $3, $4, $5, $6, $7 from unnest($1::uuid[], $2::int[]) as t (operation, round)
           on conflict (operation) do update set round = excluded.round, class = excluded.class,
               reason = excluded.reason, condition = excluded.condition, told = excluded.told
           where waiting.round < excluded.round""",
        [item.operation for item in ordered],
        [item.round for item in ordered],
        key,
        *cause,
        keep_until,
    )


async def drop_waiting(tx: Tx, operations: Sequence[str]) -> None:
    """Drop operations that need no place any more, or are assessed anew."""
    await tx.execute("delete from waiting where operation = any($1::uuid[])", sorted(operations))


async def waiting_classes(tx: Tx) -> set[str]:
    """Return the classes in which operations wait."""
    return {row[0] for row in await tx.fetch("select distinct class from waiting")}


async def take_waiting(tx: Tx, keys: Sequence[str]) -> dict[str, list[OperationRound]]:
    """Take operations of classes that have become eligible out of the table; in order of their waiting."""
    rows = await tx.fetch(
        "delete from waiting where class = any($1) returning class, operation, round, since", sorted(keys)
    )
    return _grouped(rows)


async def change_reason(tx: Tx, key: str, cause: Cause) -> list[OperationRound]:
    """Write why operations of a class wait now; return those for which that is new."""
    rows = await tx.fetch(
        """update waiting set reason = $2, condition = $3, told = $4
           where class = $1 and (reason, condition, told) <> ($2, $3, $4) returning class, operation, round, since""",
        key,
        *cause,
    )
    return _grouped(rows).get(key, [])


async def purge(tx: Tx) -> None:
    """Drop what nobody can be waiting for any more."""
    await tx.execute("delete from waiting where keep_until <= now()")
    await tx.execute("delete from requirement_class where keep_until <= now()")


async def count_waiting(tx: Tx) -> int:
    return int(await tx.fetchval("select count(*) from waiting"))


def _grouped(rows: Sequence[object]) -> dict[str, list[OperationRound]]:
    found: dict[str, list[OperationRound]] = {}
    for row in sorted(rows, key=lambda row: (row[3], row[1])):  # type: ignore[index]
        found.setdefault(row[0], []).append(OperationRound(operation=str(row[1]), round=row[2]))  # type: ignore[index]
    return found
