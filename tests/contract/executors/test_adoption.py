"""A dispatcher that dies takes nothing with it: whoever comes next finds all of it, running or ended."""

import json
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from contract.executors.conftest import HARNESSES, strays, working
from contract.executors.harness import Behaviour, Harness, Watcher, a_work, make_executor
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.schema.wire.report_v1 import AttemptOutcome
from landbridge_dispatch.executors.protocol import SlotKey, SlotView, StopOrder
from support.forking import Forked, fork_server
from support.wait import wait_until


class Host:
    """A dispatcher-like process of its own, and the slot that it started."""

    def __init__(self, harness: Harness, process: Forked, key: SlotKey, log: Path) -> None:
        self.harness = harness
        self.key = key
        self._process = process
        self._log = log

    async def says(self, phase: SlotPhase) -> None:
        def said() -> bool:
            text = self._log.read_text()
            assert self._process.returncode is None, f"the host ended early:\n{text}"
            return f"{phase}\n" in text

        await wait_until(said, f"the host says {phase}", timeout_s=20 * self.harness.slowness)

    async def kill(self) -> None:
        self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def host(harness: Harness, behaviour: Behaviour, lease_s: float = 60.0, **spec: Any) -> AsyncIterator[Host]:
    operation = str(uuid.uuid4())
    document = harness.home / "operation.json"
    document.write_bytes(a_work(harness.command(behaviour), **spec).spec)
    orders = {"home": str(harness.home), "operation": operation, "spec": str(document), "lease_s": lease_s}
    log = harness.home.parent / f"host-{operation}.log"
    environ = {**os.environ, "HOST_WORK": json.dumps(orders)}
    process = fork_server().start("contract.executors.host", environ, log)
    started = Host(harness, process, SlotKey(operation, Epoch(1, 1)), log)
    try:
        await started.says(SlotPhase.RUNNING)
        yield started
    finally:
        await started.kill()


@pytest.fixture(params=sorted(HARNESSES))
async def closed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Harness]:
    """A site whose executor this process has not opened yet."""
    harness = HARNESSES[request.param](tmp_path / "site")
    async with harness.around():
        yield harness
    await wait_until(lambda: not strays(harness.home), "no process of the site is left")


async def test_running_work_is_adopted_and_its_end_is_seen(closed: Harness) -> None:
    async with host(closed, Behaviour(seconds=1.5, log="once")) as first:
        await first.kill()

        async for harness in working(closed):
            watcher = Watcher(harness.executor)
            [found] = await harness.executor.inventory()
            assert (found.key, found.phase) == (first.key, SlotPhase.RUNNING)
            view = await watcher.end(first.key)
            assert view.report is not None
            assert view.report.outcome is AttemptOutcome.COMPLETED
            log = await harness.executor.logs(first.key)
            assert log is not None
            assert log.data.count(b"once") == 1
            await watcher.close()


async def test_work_that_ended_while_nobody_watched_has_ended_with_its_own_times(closed: Harness) -> None:
    async with host(closed, Behaviour(seconds=0.5, exit_code=7)) as first:
        await first.kill()
        if closed.name == "process":
            await wait_until((closed.home / "audit.jsonl").read_text().count('"start"').__bool__, "it started")
            await wait_until(lambda: '"stop"' in (closed.home / "audit.jsonl").read_text(), "it has ended")

        async for harness in working(closed):
            view = await wait_until(partial(finished, harness), "the end is in the slot")
            assert (view.report.reason, view.report.exit_code) == ("exit-code", 7)


async def finished(harness: Harness) -> SlotView | None:
    [view] = await harness.executor.inventory()
    return view if view.phase is SlotPhase.FINISHED else None


async def test_adopted_work_can_be_stopped(closed: Harness) -> None:
    async with host(closed, Behaviour(seconds=60)) as first:
        await first.kill()

        async for harness in working(closed):
            watcher = Watcher(harness.executor)
            await harness.executor.stop([StopOrder(first.key, "cancelled", grace_ms=5000)])
            view = await watcher.end(first.key)
            assert view.reason == "cancelled"
            await watcher.close()


async def test_a_second_start_after_a_restart_runs_nothing_twice(closed: Harness) -> None:
    async with host(closed, Behaviour(seconds=1, log="once")) as first:
        await first.kill()

        async for harness in working(closed):
            watcher = Watcher(harness.executor)
            await harness.executor.start([first.key])
            await watcher.end(first.key)
            log = await harness.executor.logs(first.key)
            assert log is not None
            assert log.data.count(b"once") == 1
            await watcher.close()


async def test_settled_and_buried_slots_survive_a_restart(closed: Harness) -> None:
    async with host(closed, Behaviour()) as first:
        await first.says(SlotPhase.FINISHED)
        await first.kill()
    executor = make_executor(closed.home)
    await executor.open()
    await executor.settle([(first.key, 5)])
    await executor.close()

    async for harness in working(closed):
        [view] = await harness.executor.inventory()
        assert (view.phase, view.settled_term) == (SlotPhase.FINISHED, 5)
