"""What people decide through HTTP: a reason that is kept with it, and a preview that leaves no trace."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from fastapi import Request

from landbridge.runtime.problems import ProblemError
from landbridge.store import Database, Tx

REASON_MAX = 2000


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The body of what a person decides: why, in words. Services add what else can be said."""

    reason: str = ""


K = TypeVar("K", bound=Order)
T = TypeVar("T")


class _RolledBackError(Exception):
    """Ends the transaction of a preview."""


async def read_order(request: Request, kind: type[K], *, dry_run: bool) -> K:
    """Read a body. Raises ProblemError 422 where the reason is missing and it is meant."""
    try:
        order = msgspec.json.decode(await request.body() or b"{}", type=kind)
    except msgspec.MsgspecError as error:
        raise ProblemError(422, "Invalid request", f'expected {{"reason": "why, in words"}}: {error}') from error
    if not order.reason.strip() and not dry_run:
        raise ProblemError(422, "Invalid request", "a reason is needed: it is kept with what it concerns")
    if len(order.reason) > REASON_MAX:
        raise ProblemError(422, "Invalid request", f"reason: expected at most {REASON_MAX} characters")
    return msgspec.structs.replace(order, reason=order.reason.strip() or "preview")


async def preview(database: Database, work: Callable[[Tx], Awaitable[T]]) -> T:
    """Run `work` in a transaction, roll it back, and return its result: what would have happened at that moment."""
    result: list[T] = []
    try:
        async with database.transaction() as tx:
            result.append(await work(tx))
            raise _RolledBackError
    except _RolledBackError:
        return result[0]
