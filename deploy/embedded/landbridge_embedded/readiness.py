"""Waiting for what was started: services by their /readyz, environments by what lineage says of them."""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping

from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.keeper import Keeper, KeptState
from landbridge_embedded.logtail import log_tail
from landbridge_embedded.process import http_body, http_ok

_POLL_S = 0.03


async def await_services(keepers: Mapping[str, Keeper], ports: Mapping[str, int], timeout_s: float) -> None:
    """Wait until every /readyz agrees. EmbeddedError that says who does not, and why."""
    deadline = time.monotonic() + timeout_s
    waiting = list(keepers)
    while waiting:
        answers = await asyncio.gather(*(http_ok(ports[name], "/readyz") for name in waiting))
        waiting = [name for name, good in zip(waiting, answers, strict=True) if not good]
        for name in waiting:
            if keepers[name].state is KeptState.CRASH_LOOP:
                raise EmbeddedError(keepers[name].complaint())
        if waiting and time.monotonic() >= deadline:
            lines = [await _why_not(keepers[name], ports[name]) for name in waiting]
            raise EmbeddedError("\n".join([f"not ready after {timeout_s:.0f} s:", *lines]))
        await asyncio.sleep(_POLL_S)


async def _why_not(keeper: Keeper, port: int) -> str:
    body = (await http_body(port, "/readyz?verbose")).strip()
    return f"{keeper.name}: {body or 'no answer'}\n  {keeper.log} says:\n{log_tail(keeper.log, 6)}"


async def await_environments(names: Iterable[str], lineage: int, token: str, timeout_s: float) -> list[str]:
    """Give environments a moment to connect and to prove something, so that a first submission finds them.

    Returns those that have not; they may come later, or never.
    """
    waiting = set(names)
    deadline = time.monotonic() + timeout_s
    while waiting and time.monotonic() < deadline:
        waiting -= in_service(await http_body(lineage, "/v1/environments", token))
        if waiting:
            await asyncio.sleep(_POLL_S)
    return sorted(waiting)


def in_service(body: str) -> set[str]:
    """Return the environments that are connected and have proven something, in lineage's list of them."""
    try:
        return {
            str(item["environment"])
            for item in json.loads(body)["items"]
            if (item.get("link") or {}).get("state") == "connected" and (item.get("evidence") or {}).get("proven")
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return set()
