"""Carrying out what a person decided, or only showing what it would do.

A preview runs the very same transaction and rolls it back: what it tells is what would have happened at that moment.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from fastapi import Request

from landbridge.bus.envelope import Outbound
from landbridge.domain.lifecycle import TERMINAL
from landbridge.domain.ownership.centre_model import OperationState, PlacementState
from landbridge.runtime import orders
from landbridge.store import Tx
from landbridge_dispatch.coordinator.core import Core

Outcome = dict[str, Any]
Work = Callable[[Tx], Awaitable[tuple[Outcome, Sequence[Outbound]]]]
LISTED = 200


class Order(orders.Order, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Why, and what else a person says of an operation, an environment or the centre."""

    environment: str = ""
    generation: int = 0
    queue: str = ""
    priority: str = ""


async def read_order(request: Request, *, dry_run: bool) -> Order:
    """Read a body. Raises ProblemError 422 where the reason is missing and it is meant."""
    return await orders.read_order(request, Order, dry_run=dry_run)


async def act(core: Core, work: Work, name: str, *, dry_run: bool, alone: bool = False) -> Outcome:
    """Run `work` and return its outcome; a dry run leaves no trace. `alone`: no replica decides meanwhile."""

    async def in_force(tx: Tx) -> tuple[Outcome, Sequence[Outbound]]:
        await core.stand(tx, alone=alone)
        return await work(tx)

    if dry_run:
        outcome, _ = await orders.preview(core.database, in_force)
    else:
        outcome = await core.run(work, name, alone=alone)
    return {**outcome, "dryRun": dry_run}


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_named = msgspec.json.Decoder(_Named)


async def names(tx: Tx, operations: Iterable[str]) -> dict[str, str]:
    """Return the names that operations were given by those who wrote them."""
    rows = await tx.fetch(
        """select o.id::text, c.body from operation o join content c on c.sha256 = o.spec_sha256
           where o.id = any($1::uuid[])""",
        list(operations),
    )
    return {row[0]: _named.decode(row[1]).metadata.name for row in rows}


async def changes(
    tx: Tx, before: Mapping[str, OperationState], after: Mapping[str, OperationState]
) -> list[dict[str, str]]:
    """Tell of each operation that changes, the first few hundred, what it is and what it becomes."""
    changed = [name for name in sorted(before) if after[name] is not before[name]][:LISTED]
    called = await names(tx, changed)
    return [
        {
            "operation": name,
            "name": called.get(name, ""),
            "environment": before[name].environment,
            "epoch": str(before[name].epoch),
            "policy": before[name].policy.policy.value,
            "phase": before[name].phase.value,
            "becomes": becomes(after[name]),
        }
        for name in changed
    ]


def becomes(state: OperationState) -> str:
    """Say in words what follows for an operation in this state."""
    if state.phase in TERMINAL:
        return f"{state.phase.value} at once"
    if state.placement is PlacementState.IDLE:
        where = f", in {state.pinned} only" if state.pinned else ""
        resumed = " from its latest sealed checkpoint" if state.checkpoint else ""
        return f"judged and placed again{where}{resumed}"
    if state.pinned and state.pinned != state.environment:
        return f"asked to stop in {state.environment}; then judged and placed again, in {state.pinned} only"
    return f"{state.phase.value} in {state.environment}"
