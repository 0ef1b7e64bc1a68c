"""How soon what a fault hit works again: measured for each fault by itself, from its end.

It works again when the parts that the fault hit are ready and an operation submitted after its end has run to its own
end: at the site that the fault hit, or at one that no fault holds where it hit the centre. Faults overlap; the clock of
one begins at the end of the last fault that was in its way, and it counts as recovered no sooner than that one.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from landbridge.client import HttpClient, LandbridgeError
from landbridge_embedded.process import http_ok

from . import work
from .load import Diary, patiently
from .plan import Fault
from .world import SERVERS, SERVICES, SITES, World

GIVEN_UP_S = 90.0
"""What is not well by then does not come back by itself."""
_SLOW_S = 8.0
_PART_POLL_S = 0.1
_CANARY_POLL_S = 0.15


@dataclass(frozen=True, slots=True)
class Healed:
    """One fault on the boot clock: when it began and was over, and when what it hit worked again."""

    number: int
    site: str
    begun: float
    over: float
    ready: float
    moved: float
    blocks: bool = True
    """Whether it can keep others from recovering."""

    @property
    def done(self) -> float:
        return max(self.ready, self.moved)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def site_of(fault: Fault) -> str:
    """Return the site that a fault is confined to; empty for the centre."""
    for prefix in ("dispatcher-", "launcher-"):
        if fault.target.startswith(prefix):
            return fault.target.removeprefix(prefix)
    return ""


def blocks(fault: Fault) -> bool:
    """Tell whether a fault can keep others from recovering."""
    return fault.kind not in {"rewind", "repeat", "twin", "cancel-storm"} and fault.target != "redis"


def recoveries(healed: Iterable[Healed]) -> dict[int, float]:
    """Return the seconds to recovery by fault, for the faults of one round."""
    ordered = sorted(healed, key=lambda each: each.over, reverse=True)
    found: dict[int, float] = {}
    for each in ordered:  # from the last to the first: what was in the way has its own figure already
        last = next((other for other in ordered if _in_the_way(other, each)), None)
        own = each.done - (last.over if last else each.over)
        found[each.number] = round(max(own, found[last.number] if last else 0.0), 3)
    return found


def _in_the_way(other: Healed, each: Healed) -> bool:
    """Tell whether `other` ended after `each` and before `each` had recovered, and could keep it from that."""
    near = not other.site or other.site == each.site
    return other.blocks and near and each.over < other.over < each.done


class Recoveries:
    """`await of(fault, ...)` returns when what it hit works again, or was given up."""

    def __init__(self, world: World, diary: Diary, note: Callable[[str], None]) -> None:
        self._world, self._diary, self._note = world, diary, note
        self._hit: dict[str, int] = {}

    def begins(self, fault: Fault) -> None:
        if site := site_of(fault):
            self._hit[site] = self._hit.get(site, 0) + 1

    def _ends(self, fault: Fault) -> None:
        if site := site_of(fault):
            self._hit[site] -= 1

    async def of(self, client: HttpClient, fault: Fault, begun: float, over: float, key: str) -> Healed:
        """Measure. `key` is the idempotency key of the operation that must come to its end."""
        try:
            ready, moved = await asyncio.gather(self._ready(fault), self._moved(client, fault, over, key))
        finally:
            self._ends(fault)
        return Healed(fault.number, site_of(fault), begun, over, ready, moved, blocks(fault))

    async def _ready(self, fault: Fault) -> float:
        """Return when the parts that the fault hit were ready."""
        parts = self._parts(fault)
        deadline = time.monotonic() + GIVEN_UP_S
        while waiting := await self._unready(parts):
            if time.monotonic() > deadline:
                self._note(f"fault {fault.number}: not ready: {await self._world.why(waiting)}")
                break
            await asyncio.sleep(_PART_POLL_S)
        return boot()

    async def _unready(self, parts: Sequence[str]) -> list[str]:
        state = self._world.state["services"]
        servers = [part for part in parts if part in SERVERS and state[part]["state"] != "running"]
        asked = [part for part in parts if part not in SERVERS]
        answers = await asyncio.gather(*(http_ok(int(state[part]["port"]), "/readyz") for part in asked))
        return [*servers, *(part for part, good in zip(asked, answers, strict=True) if not good)]

    def _parts(self, fault: Fault) -> tuple[str, ...]:
        if site := site_of(fault):
            return (f"dispatcher-{site}",)
        if fault.target in SERVERS:
            return (*SERVICES, fault.target)
        return (fault.target,) if fault.target in SERVICES else ()

    async def _moved(self, client: HttpClient, fault: Fault, over: float, key: str) -> float:
        """Return when an operation submitted after the fault had come to its end."""
        site = site_of(fault)
        where = [site] if site else [each for each in SITES if not self._hit.get(each)] or list(SITES)
        try:
            answer = await patiently(lambda: client.submit(work.canary(key, where), idempotency_key=key))
        except (LandbridgeError, TimeoutError) as error:
            self._note(f"fault {fault.number}: nothing is accepted: {error!r}")
            return boot()
        self._diary.note("accepted", key, answer.id, existing=answer.existing)
        deadline = time.monotonic() + GIVEN_UP_S
        while time.monotonic() < deadline:
            with contextlib.suppress(LandbridgeError):
                if (await client.get(answer.id)).finished:
                    moved = boot()
                    if moved - over > _SLOW_S:
                        await self._tell(client, fault, answer.id)
                    return moved
            await asyncio.sleep(_CANARY_POLL_S)
        self._note(f"fault {fault.number}: nothing moves: {answer.id} in {where} has not ended")
        await self._tell(client, fault, answer.id)
        return boot()

    async def _tell(self, client: HttpClient, fault: Fault, operation: str) -> None:
        """Note what became of a slow one, for whoever looks for the reason."""
        with contextlib.suppress(LandbridgeError):
            steps = [f"{e.at[11:23]} {e.event} {e.environment} {e.reason}" for e in await client.events(operation)]
            self._note(f"fault {fault.number} at {wall()}: {operation}: {'; '.join(steps)}")


def summary(found: Mapping[int, float]) -> str:
    """Word the figures of one round."""
    return " ".join(f"{number}:{seconds:.1f}" for number, seconds in sorted(found.items()))


def boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wall() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
