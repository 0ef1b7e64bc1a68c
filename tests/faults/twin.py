"""A second copy of a service of the centre, as a rolling upgrade or an impatient operator makes one."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping

from landbridge_embedded.process import die_with_parent
from landbridge_embedded.services import SERVICES, Addresses, service_environ

from .world import World

_RUN_MAIN = "import importlib, sys; sys.exit(importlib.import_module(sys.argv[1]).main())"
_DRAIN_S = 20.0


async def second_copy(world: World, name: str, lasts_s: float, *, killed: bool) -> str:
    """Run a second `name` beside the first for a while, then kill it or let it drain. It has a port of its own."""
    spec = next(each for each in SERVICES if each.name == name)
    log = world.data.logs / f"twin-{name}.log"
    parent = os.getpid()
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _RUN_MAIN, spec.module),
            env=_environ(world, name),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            preexec_fn=lambda: die_with_parent(signal.SIGKILL, parent),
        )
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(lasts_s):
                return f"twin {process.pid} ended by itself with {await process.wait()}"
    finally:
        await _end(process, signal.SIGKILL if killed else signal.SIGTERM)
    return f"twin {process.pid} {'killed' if killed else 'drained'} after {lasts_s:.2f} s"


async def _end(process: asyncio.subprocess.Process, signum: signal.Signals) -> None:
    for each in (signum, signal.SIGKILL):
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(each)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_S):
                    await process.wait()


def _environ(world: World, name: str) -> Mapping[str, str]:
    state = world.state
    ports = {each: int(row["port"]) for each, row in state["services"].items()}
    spec = next(each for each in SERVICES if each.name == name)
    settings = {key: value for key, value in world.environ().items() if key.startswith("LANDBRIDGE_")}
    addresses = Addresses(str(state["natsUrl"]), world.dsn, "", ports)
    environ = {**os.environ, **service_environ(spec, addresses, world.data), **settings}
    return {**environ, "LANDBRIDGE_HTTP_PORT": "0"}
