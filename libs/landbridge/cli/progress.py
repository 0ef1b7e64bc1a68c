"""Waiting for an operation: its steps as they happen, then the exit code that tells how it ended."""

import asyncio
from typing import TYPE_CHECKING, Any

from landbridge.cli import output
from landbridge.cli.exits import Exit

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient
    from landbridge.client.models import Event, Operation

_EXITS = {"completed": Exit.DONE, "failed": Exit.FAILED, "cancelled": Exit.CANCELLED}
# What people need not see while they wait.
_QUIET = frozenset({"freed", "observed", "assessed", "waiting", "requeued", "condition"})
# Reasons that every event of the kind has.
_USUAL = {"pending": ("decided",), "running": ("started",)}


async def wait_told(
    client: "HttpClient",
    operation: str,
    timeout_s: float | None,
    *,
    tell: bool,
    to_the_end: bool = False,
    named: bool = False,
) -> "Operation":
    """Wait for the end and tell each step on standard error.

    The news that nothing can run it ends the wait, too, unless it is `to_the_end`. `named` steps say whose they are.
    """
    teller = (
        asyncio.create_task(_tell_steps(client, operation, f"{operation[:8]}  " if named else "")) if tell else None
    )
    try:
        return await client.wait(operation, timeout_s=timeout_s, stop_when_unplaceable=not to_the_end)
    finally:
        if teller is not None:
            await _finish(teller)


async def _finish(teller: "asyncio.Task[None]") -> None:
    """Give the last step a moment to be told."""
    await asyncio.wait({teller}, timeout=0.5)
    teller.cancel()
    await asyncio.gather(teller, return_exceptions=True)


async def _tell_steps(client: "HttpClient", operation: str, whose: str) -> None:
    from landbridge.client.errors import NotFoundError

    while True:
        try:
            async for event in client.follow(operation):
                if event.event not in _QUIET:
                    output.note(whose + step_line(event))
            return
        except NotFoundError:
            await asyncio.sleep(0.05)  # accepted a moment ago; the read side is behind by some milliseconds


def step_line(event: "Event") -> str:
    """Return one line about an event: time, what, where, why."""
    where = f" in {event.environment}" if event.environment else ""
    attempt = f", attempt {event.attempt}" if event.attempt > 1 and event.event == "running" else ""
    reason = why(event)
    return f"{output.clock(event.at)}  {event.event}{where}{attempt}{f' ({reason})' if reason else ''}"


def why(event: "Event") -> str:
    """Return an event's reason and message; empty where they only repeat its name."""
    if not event.message and event.reason in (event.event, *_USUAL.get(event.event, ())):
        return ""
    return ": ".join(part for part in (event.reason, event.message) if part)


def outcome(operation: "Operation") -> Exit:
    """Return the exit code for where an operation stands after waiting."""
    return Exit.UNPLACEABLE if operation.unplaceable else _EXITS.get(operation.phase, Exit.FAILED)


def summary(operation: "Operation") -> dict[str, Any]:
    """Return what a script wants to know of the outcome."""
    return {
        "operation": operation.id,
        "phase": operation.phase,
        "unplaceable": operation.unplaceable,
        "environment": operation.environment,
        "reason": operation.reason,
        "message": operation.message,
    }


def say_outcome(operation: "Operation") -> None:
    """Print how it ended, and for what did not end well the next step."""
    where = f" in {operation.environment}" if operation.environment else ""
    word = "unplaceable" if operation.unplaceable else operation.phase
    print(f"{operation.id}  {output.styled(word, output.style_of(word))}{where}")
    waiting = operation.raw.get("waiting") or {}
    message = operation.message or str(waiting.get("message") or "")
    told = ": ".join(part for part in (operation.reason, message) if part)
    if told and operation.phase != "completed":
        print(told)
    if operation.unplaceable:
        print(f"It waits in its queue. See what is missing where: landbridge explain {operation.id[:8]}")
    elif operation.phase == "failed":
        print(f"See its output: landbridge logs {operation.id[:8]}")
