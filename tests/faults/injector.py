"""Carrying out faults on a world, and noting what was done when."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

from landbridge.bus import declare, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.bus.errors import BusError
from landbridge.bus.publish import publish_batch
from landbridge.bus.scan import scan
from landbridge.bus.streams import COMMANDS, DURABLES, OPERATIONS, REPORTS, DurableSpec
from support.proxy import Proxy, Wire

from .audit import Frozen
from .plan import Fault
from .twin import second_copy
from .world import World

_REPEATED_MAX = 300
_TRIES_S = 20.0
_FLAPS = 20
_NEEDLES = {"at-lease": b" lb.v1.lease.", "at-claim": b" lb.v1.claim.", "at-report": b" lb.v1.report."}
# Who may say what on OPERATIONS: repeats go through the broker with the rights of the service that said it first.
_SPEAKERS = {
    **dict.fromkeys(("accepted", "refused"), "intake"),
    "assessed": "eligibility",
    "decided": "ranking",
}


class Injector:
    """`await inject(fault)` returns when the fault is over. `cancel` asks for the end of many operations at once."""

    def __init__(
        self, world: World, note: Callable[[dict[str, Any]], None], cancel: Callable[[float], Awaitable[int]]
    ) -> None:
        self.world, self._note, self._cancel = world, note, cancel
        self.frozen: list[Frozen] = []

    async def inject(self, fault: Fault) -> tuple[float, float]:
        """Return when it began and was over, on the boot clock."""
        begun = _boot()
        do: dict[str, Callable[[Fault], Awaitable[str]]] = {
            "kill-service": self._kill,
            "kill-dispatcher": self._kill,
            "kill-server": self._kill,
            "kill-launcher": self._kill_launcher,
            "outage": self._outage,
            "pause-service": self._pause,
            "pause-dispatcher": self._pause,
            "link": self._link,
            "rewind": self._rewind,
            "repeat": self._repeat,
            "twin": self._twin,
            "cancel-storm": self._cancel_storm,
        }
        told = await do[fault.kind](fault)
        over = _boot()
        self._note({**fault.to_json(), "begun": begun, "over": over, "wall": time.time(), "done": told})
        return begun, over

    # -- processes ------------------------------------------------------------------------------------------------

    async def _kill(self, fault: Fault) -> str:
        pid = await self._running(fault.target)
        begun = _boot()
        os.kill(pid, signal.SIGKILL)
        if fault.kind == "kill-dispatcher":
            await self._other_pid(fault.target, pid)
            self._stood(fault.target, begun)
        return f"killed {pid}"

    async def _kill_launcher(self, fault: Fault) -> str:
        pid = await self.world.launcher_pid(fault.target.removeprefix("launcher-"))
        if not pid:
            return "no launcher answered"
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return f"killed {pid}"

    async def _pause(self, fault: Fault) -> str:
        pid = await self._running(fault.target)
        begun = _boot()
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(fault.lasts_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        if fault.kind == "pause-dispatcher":
            self._stood(fault.target, begun)
        return f"stopped {pid} for {fault.lasts_s:.2f} s"

    async def _outage(self, fault: Fault) -> str:
        await asyncio.to_thread(self.world.hold, fault.target)
        try:
            await asyncio.sleep(fault.lasts_s)
        finally:
            await asyncio.to_thread(self.world.release, fault.target)
        return f"away for {fault.lasts_s:.2f} s"

    async def _running(self, name: str) -> int:
        deadline = time.monotonic() + _TRIES_S
        while not (pid := self.world.pid(name)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not run")
            await asyncio.sleep(0.02)
        return pid

    async def _other_pid(self, name: str, before: int) -> None:
        deadline = time.monotonic() + _TRIES_S
        while self.world.pid(name) in (0, before) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)

    def _stood(self, part: str, begun: float) -> None:
        self.frozen.append(Frozen(part.removeprefix("dispatcher-"), begun, _boot()))

    # -- wires ----------------------------------------------------------------------------------------------------

    async def _link(self, fault: Fault) -> str:
        wire = self.world.wires[fault.target.removeprefix("dispatcher-")]
        if fault.how == "reset":
            wire.reset()
            return "reset"
        swallowed = wire.cut_bytes
        try:
            await self._disturb(wire, fault)
        finally:
            wire.heal()
        return f"{fault.how} for {fault.lasts_s:.2f} s, {wire.cut_bytes - swallowed} bytes swallowed"

    async def _disturb(self, wire: Proxy, fault: Fault) -> None:
        if fault.how == "flap":
            for _ in range(_FLAPS):
                wire.set(Wire.BLACK_HOLE)
                await asyncio.sleep(fault.lasts_s / _FLAPS * fault.draw)
                wire.heal()
                await asyncio.sleep(fault.lasts_s / _FLAPS * (1.0 - fault.draw))
            return
        if needle := _NEEDLES.get(fault.how):  # what was said arrives, its answer does not
            wire.trip(needle, Wire.BLACK_HOLE)
        else:
            wire.set(Wire(fault.how), delay_s=0.02 + 0.3 * fault.draw)
        await asyncio.sleep(fault.lasts_s)

    # -- clients and copies ---------------------------------------------------------------------------------------

    async def _twin(self, fault: Fault) -> str:
        name = fault.target.removeprefix("twin-")
        return await second_copy(self.world, name, fault.lasts_s, killed=fault.draw < 0.5)

    async def _cancel_storm(self, fault: Fault) -> str:
        return f"{await self._cancel(fault.draw)} cancels"

    # -- duplicates -----------------------------------------------------------------------------------------------

    async def _rewind(self, fault: Fault) -> str:
        """Make a durable deliver again what it delivered long ago."""
        stream, _, name = fault.target.partition("/")
        spec = next(each for each in DURABLES if (each.stream, each.name) == (stream, name))
        return str(await self._with_bus("streams", lambda bus: rewind(bus, spec, fault.draw)))

    async def _repeat(self, fault: Fault) -> str:
        """Say old things again, with the same ids, as a publisher does that got no answer."""
        stream, draw = fault.target, random.Random(fault.draw)
        old = await self._with_bus("streams", lambda bus: sample(bus, stream, fault.draw))
        speakers: dict[str, list[Outbound]] = {}
        for message in old:
            if (speaker := speaker_of(stream, message)) is not None:
                speakers.setdefault(speaker, []).append(again(message))
        for speaker, messages in speakers.items():
            draw.shuffle(messages)

            async def say(bus: Bus, said: list[Outbound] = messages) -> str:
                for message in said:  # one by one: each is a message of its own for its readers
                    await publish_batch(bus, stream, [message])
                return ""

            await self._with_bus(speaker, say)
        return f"{sum(map(len, speakers.values()))} messages again"

    async def _with_bus(self, user: str, do: Callable[[Bus], Awaitable[Any]]) -> Any:
        """Do something with a connection; the broker may be the target of another fault, then once more."""
        deadline = time.monotonic() + _TRIES_S
        while True:
            try:
                bus = await self.world.bus(user)
                try:
                    return await do(bus)
                finally:
                    await bus.drain()
            except BusError:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.3)


async def rewind(bus: Bus, spec: DurableSpec, draw: float) -> str:
    """Replace a durable by one that begins at an earlier message."""
    state = (await declare.api(bus, f"STREAM.INFO.{spec.stream}"))["state"]
    first = int(state["first_seq"]) + int(draw * max(0, int(state["last_seq"]) - int(state["first_seq"])))
    info = await declare.api(bus, f"CONSUMER.INFO.{spec.stream}.{spec.name}")
    first = max(1, min(first, int(info["ack_floor"]["stream_seq"]) + 1))
    config = {**declare.durable_config(spec), "deliver_policy": "by_start_sequence", "opt_start_seq": first}
    await declare.delete_durable(bus, spec)
    await declare.api(bus, f"CONSUMER.CREATE.{spec.stream}.{spec.name}", {"stream_name": spec.stream, "config": config})
    return f"from {info['ack_floor']['stream_seq']} back to {first}"


async def sample(bus: Bus, stream: str, draw: float) -> list[Inbound]:
    """Return a few old messages that lie together."""
    state = (await declare.api(bus, f"STREAM.INFO.{stream}"))["state"]
    last = int(state["last_seq"])
    first = max(int(state["first_seq"]), 1 + int(draw * max(0, last - _REPEATED_MAX)))
    found: list[Inbound] = []
    if last:
        async for message in scan(bus, stream, first=first):
            found.append(message)
            if len(found) >= _REPEATED_MAX:
                break
    return found


def speaker_of(stream: str, message: Inbound) -> str | None:
    """Return whose rights a repeat needs; None for what only an environment may say."""
    kind = subjects.token(message.subject, 3)
    if stream == OPERATIONS:
        if kind == "waiting":
            return "ranking" if "ranking" in message.source else "eligibility"
        return _SPEAKERS.get(kind, "coordinator")
    if stream == COMMANDS:
        return "coordinator" if "coordinator" in message.source else "contract-verifier"
    if stream == REPORTS:
        return f"environment:{subjects.environment_of(message.subject)}"
    return None


def again(message: Inbound) -> Outbound:
    """Return the same message, to be said once more."""
    return Outbound(
        message.subject,
        message.type,
        message.body,
        about=message.about,
        id=message.id,
        source=message.source,
    )


def _boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
