"""Waiting for a condition instead of sleeping for a guess."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any


async def wait_until(
    predicate: Callable[[], Any | Awaitable[Any]], description: str, *, timeout_s: float = 15.0, every_s: float = 0.01
) -> Any:
    """Return the predicate's first true value; fail the test with `description` when it takes longer than `timeout_s`.

    `predicate` may be a plain or an async function. An exception that it raises fails the test at once.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        found = predicate()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {timeout_s:g} s in vain until {description} (last value: {found!r})")
        await asyncio.sleep(every_s)


async def happens_within(
    timeout_s: float, predicate: Callable[[], Any | Awaitable[Any]], *, every_s: float = 0.05
) -> bool:
    """Tell whether the predicate becomes true within `timeout_s`: for what must not happen, however long one looks."""
    try:
        await wait_until(predicate, "it happens", timeout_s=timeout_s, every_s=every_s)
    except AssertionError:
        return False
    return True
