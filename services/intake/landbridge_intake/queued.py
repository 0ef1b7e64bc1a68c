"""How many operations of a project wait to be placed for the first time, where the project limits that.

Only operations of projects with `limits.queued` are counted, from the moment that the limit is there. Accepting and
counting are one transaction that locks the project, so replicas together never accept more.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.domain.errors import Problem
from landbridge.runtime.failures import PermanentFailure
from landbridge.store import Tx

CODE: Final = "too-many-queued"
EVENTS: Final = ("decided", "failed", "cancelled")


class _Named(msgspec.Struct):
    """One operation of a decision, or one that has ended."""

    operation: str


class _Decided(msgspec.Struct):
    operations: tuple[_Named, ...] = ()


_read_decided = msgspec.json.Decoder(_Decided).decode
_read_ended = msgspec.json.Decoder(_Named).decode


async def room(tx: Tx, limits: Mapping[str, int]) -> dict[str, int]:
    """Return how many more each project may have wait; nobody else accepts for these projects until the commit."""
    for project in sorted(limits):  # every replica locks in one order
        await tx.execute("select pg_advisory_xact_lock(hashtextextended('landbridge queued ' || $1, 0))", project)
    rows = await tx.fetch(
        "select project, count(*) from queued where project = any($1) group by project", sorted(limits)
    )
    waiting = {row[0]: row[1] for row in rows}
    return {project: max(limit - waiting.get(project, 0), 0) for project, limit in limits.items()}


async def begin(tx: Tx, operations: Iterable[tuple[str, str]]) -> None:
    """Count operations, given with their projects."""
    ordered = sorted(operations)
    if ordered:
        await tx.execute(
            """insert into queued (operation, project) select * from unnest($1::uuid[], $2::text[])
               on conflict do nothing""",
            [operation for operation, _ in ordered],
            [project for _, project in ordered],
        )


def full(project: str, limit: int) -> Problem:
    """Return what is told of an operation that is one too many."""
    message = f"project {project} has {limit} operations waiting, which is as many as it may have"
    return Problem("metadata.project", CODE, message, "send it again once some were placed, or raise limits.queued")


class QueuedHandler:
    """Counts no longer what was placed or has ended."""

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        done = {operation for message in batch for operation in _operations(message)}
        if done and await tx.fetchval("select exists (select from queued)"):
            await tx.execute("delete from queued where operation = any($1::uuid[])", sorted(done))
        return ()


def _operations(message: Inbound) -> Iterable[str]:
    try:
        if subjects.token(message.subject, 3) == "decided":
            return [item.operation for item in _read_decided(message.body).operations]
        return [_read_ended(message.body).operation]
    except msgspec.MsgspecError as error:
        raise PermanentFailure(f"not an event of an operation: {error}", offenders=[message.id]) from error
