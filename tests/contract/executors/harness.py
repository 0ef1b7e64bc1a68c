"""What the contract suite needs of an executor under test: a site, work that behaves in a known way, a lease."""

import asyncio
import contextlib
import hashlib
import json
import sys
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from landbridge.domain.ownership.environment_model import FINAL, SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases import HeldLease
from landbridge_dispatch.executors.bindings import load_bindings
from landbridge_dispatch.executors.kubernetes.executor import KubernetesExecutor
from landbridge_dispatch.executors.local import slots
from landbridge_dispatch.executors.local.executor import LocalExecutor
from landbridge_dispatch.executors.local.store import name_of
from landbridge_dispatch.executors.protocol import Executor, SlotKey, SlotView, StopOrder, Work
from landbridge_dispatch.executors.simulated.executor import SimulatedExecutor
from landbridge_dispatch.specification import disconnection_of, read_operation
from support.wait import wait_until

TERM = 3
IMAGE = {"registry": "tools", "name": "python", "digest": "sha256:" + "ab" * 32}
"""Only containers look at it."""


@dataclass(frozen=True)
class Behaviour:
    """What a workload does, in words that every executor's harness translates."""

    seconds: float = 0.0
    exit_code: int = 0
    signal: int = 0
    out_of_memory: bool = False
    ignore_term: bool = False
    log: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    writes_outputs: bool = True
    seals_after: float | None = None


class Harness(Protocol):
    """One executor under test in a site of its own."""

    name: str
    real: bool
    """Whether processes run, so that what they did can be looked at."""
    slowness: float
    """How much longer than a process of this machine a start takes."""
    home: Path
    executor: Executor

    def command(self, behaviour: Behaviour) -> list[str]: ...

    def around(self) -> contextlib.AbstractAsyncContextManager[None]:
        """What stands around the executor while it is tried."""

    def directory(self, key: SlotKey) -> Path:
        """Where a real workload has its working directory."""


class ProcessHarness:
    name = "process"
    real = True
    slowness = 1.0

    @contextlib.asynccontextmanager
    async def around(self) -> AsyncIterator[None]:
        yield

    def directory(self, key: SlotKey) -> Path:
        return self.home / slots.SLOTS / name_of(key) / slots.WORK

    def __init__(self, home: Path, **executor: Any) -> None:
        self.home = home
        self.executor: Executor
        write_bindings(home, {"name": "process", "cgroup": "off", "startWait": "500ms", **executor})

    def command(self, behaviour: Behaviour) -> list[str]:
        lines = ["import json, os, signal, sys, time"]
        if behaviour.ignore_term:
            lines.append("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
        if behaviour.log:
            lines.append(f"print({behaviour.log!r}, flush=True)")
        for name, value in behaviour.metrics.items():
            entry = json.dumps({"name": name, "value": value})
            lines.append(f"open(os.environ['LANDBRIDGE_METRICS'], 'a').write({entry!r} + chr(10))")
        if behaviour.writes_outputs:
            lines += [
                "for key, place in os.environ.items():",
                "    if key.startswith('LANDBRIDGE_OUTPUT_'): open(place + '/result.txt', 'w').write('result')",
            ]
        lines.append("open('ready', 'w').close()")
        if behaviour.out_of_memory:
            lines.append("hog = [bytearray(1 << 20) for _ in range(1 << 12)]")
        if behaviour.seals_after is not None:
            lines += [
                f"time.sleep({behaviour.seals_after})",
                "place = os.environ['LANDBRIDGE_CHECKPOINT_DIR'] + '/'",
                "os.mkdir(place + '.sealing-1')",
                "open(place + '.sealing-1/manifest.json', 'w').write('{\"files\": {}}')",
                "os.rename(place + '.sealing-1', place + 'sealed-1')",
            ]
        lines.append(f"time.sleep({behaviour.seconds})")
        if behaviour.signal:
            lines.append(f"os.kill(os.getpid(), {behaviour.signal})")
        lines.append(f"sys.exit({behaviour.exit_code})")
        return [sys.executable, "-S", "-c", "\n".join(lines)]


class SimulatedHarness:
    name = "simulated"
    real = False
    slowness = 1.0

    @contextlib.asynccontextmanager
    async def around(self) -> AsyncIterator[None]:
        yield

    def directory(self, key: SlotKey) -> Path:
        raise AssertionError("simulated work has no directory")

    def __init__(self, home: Path) -> None:
        self.home = home
        self.executor: Executor
        write_bindings(home, {"name": "simulated", "startWait": "500ms"})

    def command(self, behaviour: Behaviour) -> list[str]:
        words = [f"duration={round(behaviour.seconds * 1000)}ms", f"exit={behaviour.exit_code}"]
        words += [f"metric.{name}={value}" for name, value in behaviour.metrics.items()]
        optional = {
            f"signal={behaviour.signal}": behaviour.signal,
            "out-of-memory=true": behaviour.out_of_memory,
            "ignore-term=true": behaviour.ignore_term,
            f"log={behaviour.log}": behaviour.log,
            "missing=model": not behaviour.writes_outputs,
        }
        words += [word for word, wanted in optional.items() if wanted]
        if behaviour.seals_after is not None:
            words.append(f"checkpoint-after={round(behaviour.seals_after * 1000)}ms")
        return ["simulate", *words]


def write_bindings(home: Path, executor: Any, **more: Any) -> None:
    (home / "data/events").mkdir(parents=True)
    (home / "data/events/part.csv").write_text("a,b\n")
    bindings: dict[str, Any] = {
        "executor": executor,
        "connections": {
            "events": {"directory": "data/events"},
            "models": {"directory": "data/models", "access": "read-write"},
            "checkpoints": {"directory": "data/checkpoints", "access": "read-write"},
        },
        "accepts": {"projects": ["retail-eu"]},
    }
    bindings["connections"].update(more.pop("connections", {}))
    bindings.update(more)
    (home / "bindings.yaml").write_text(yaml.safe_dump(bindings))


def make_executor(home: Path) -> Executor:
    """The executor that the site's bindings name."""
    bindings = load_bindings(home / "bindings.yaml")
    makers: dict[str, Any] = {"simulated": SimulatedExecutor, "kubernetes": KubernetesExecutor}
    if bindings.executor.name in makers:
        made: Executor = makers[bindings.executor.name](bindings)
        return made
    return LocalExecutor(bindings, resync_s=0.5)


def a_work(command: list[str], *, operation: str = "", term: int = TERM, counter: int = 1, **spec: Any) -> Work:
    """Granted work; keyword arguments are fields of the operation's spec."""
    document = {
        "apiVersion": "landbridge/v1",
        "kind": "Operation",
        "metadata": {"name": "tried", "project": "retail-eu"},
        "spec": {"type": "job", "image": IMAGE, "command": command, **spec},
    }
    body = json.dumps(document).encode()
    view = read_operation(body)
    return Work(
        operation=operation or str(uuid.uuid4()),
        epoch=Epoch(1, counter),
        project="retail-eu",
        attempt=counter,
        term=term,
        spec=body,
        spec_sha256=hashlib.sha256(body).hexdigest(),
        view=view,
        policy=disconnection_of(view.spec.lifecycle),
    )


def boot_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def a_lease(*, seconds: float = 60.0, term: int = TERM, may_start: bool = True) -> HeldLease:
    return HeldLease(term=term, n=1, valid_until=boot_ms() + round(seconds * 1000), may_start=may_start)


class Watcher:
    """Collects everything that the executor lets be observed."""

    def __init__(self, executor: Executor) -> None:
        self.views: list[SlotView] = []
        self._task = asyncio.create_task(self._watch(executor))

    async def _watch(self, executor: Executor) -> None:
        async for changed in executor.observe():
            self.views += changed

    def of(self, key: SlotKey) -> list[SlotView]:
        return [view for view in self.views if view.key == key]

    def phases(self, key: SlotKey) -> list[SlotPhase]:
        return [view.phase for view in self.of(key)]

    async def until(self, key: SlotKey, *phases: SlotPhase, timeout_s: float = 15.0) -> SlotView:
        def found() -> SlotView | None:
            return next((view for view in self.of(key) if view.phase in phases), None)

        view: SlotView = await wait_until(found, f"{key} is {' or '.join(phases)}", timeout_s=timeout_s)
        return view

    async def end(self, key: SlotKey, timeout_s: float = 15.0) -> SlotView:
        return await self.until(key, *FINAL, timeout_s=timeout_s)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def run(executor: Executor, *works: Work) -> None:
    """Occupy and start."""
    assert await executor.occupy(works) == [None] * len(works)
    await executor.start([work.key for work in works])


async def stop(executor: Executor, work: Work, **order: Any) -> None:
    await executor.stop([StopOrder(work.key, **{"reason": "cancelled", "grace_ms": 5000, **order})])
