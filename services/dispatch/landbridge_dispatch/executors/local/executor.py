"""Plain processes of this machine, each under a guardian that outlives the dispatcher."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence

from msgspec.structs import replace

from landbridge.domain import features, probe_kinds
from landbridge.domain.contract import Contract
from landbridge.domain.ownership.environment_model import FINAL, FinalReport, SlotPhase
from landbridge.domain.ownership.leases import HeldLease
from landbridge.schema.wire.command_v1 import Probe
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.local import procfs, slots
from landbridge_dispatch.executors.local.build import order_for
from landbridge_dispatch.executors.local.canary import run_to_its_end, stop_by_itself
from landbridge_dispatch.executors.local.changes import Changes
from landbridge_dispatch.executors.local.client import LauncherClient
from landbridge_dispatch.executors.local.lease import Lease, write_lease
from landbridge_dispatch.executors.local.store import SlotStore, name_of
from landbridge_dispatch.executors.protocol import (
    Burial,
    Capacity,
    Chunk,
    Finding,
    OutputFile,
    RefusedError,
    SlotKey,
    SlotView,
    StopOrder,
    Work,
)

RESYNC_S = 5.0
_MS_NS = 1_000_000


class LocalExecutor:
    """The executor `process`. State is in the slots; what is kept in memory can be read again at any time."""

    name = "process"
    features = (*features.PROCESS_FEATURES, features.type_feature("distributed-job"))

    def __init__(self, bindings: Bindings, *, resync_s: float = RESYNC_S) -> None:
        self._home = bindings.home
        self._bindings = bindings
        self._boot = procfs.boot_id()
        self._store = SlotStore(bindings, self._boot)
        self._launcher = LauncherClient(bindings.home, bindings.executor.cgroup)
        self._changes = Changes(bindings.home)
        self._resync_s = resync_s
        self._active: dict[str, SlotKey] = {}
        self._shown: dict[str, tuple[object, ...]] = {}

    async def open(self) -> None:
        await asyncio.to_thread(self._store.prepare)
        self._changes.open()
        await self._launcher.ask({"do": "ping"})
        for view in await self.inventory():
            if view.phase not in FINAL:
                self._active[name_of(view.key)] = view.key

    async def close(self) -> None:
        self._changes.close()
        await self._launcher.close()

    def hold_lease(self, lease: HeldLease) -> None:
        """Write the lease file. `valid_until` is on this machine's boot clock."""
        write_lease(self._home, Lease(lease.term, lease.valid_until * _MS_NS, self._boot, lease.may_start))

    async def check(self, works: Sequence[Work]) -> list[RefusedError | None]:
        return await asyncio.to_thread(lambda: [self._check(work) for work in works])

    def _check(self, work: Work) -> RefusedError | None:
        try:
            order_for(self._bindings, name_of(work.key), work)
        except RefusedError as refusal:
            return refusal
        return None

    async def occupy(self, works: Sequence[Work]) -> list[SlotView | RefusedError | None]:
        results = await asyncio.to_thread(self._store.occupy, works)
        for work, result in zip(works, results, strict=True):
            if result is None or (isinstance(result, SlotView) and result.phase not in FINAL):
                self._active[name_of(work.key)] = work.key
        return results

    async def regrant(self, key: SlotKey, term: int) -> None:
        await asyncio.to_thread(slots.regrant, self._home / slots.SLOTS / name_of(key), term)

    async def start(self, keys: Sequence[SlotKey]) -> None:
        """Have a guardian forked for each slot; one that has a guardian already is left alone by the new one."""
        names = [name_of(key) for key in keys]
        secrets = await asyncio.to_thread(self._store.secrets, names)
        items = [{"slot": name, "secrets": secrets[name]} for name in names]
        await self._launcher.ask({"do": "start", "slots": items})

    async def observe(self) -> AsyncIterator[list[SlotView]]:
        next_resync = time.monotonic() + self._resync_s
        while True:
            names = await self._changes.take(max(0.0, next_resync - time.monotonic()))
            if time.monotonic() >= next_resync:
                # Hints can be lost, and who was killed gives none.
                names |= set(self._active)
                await asyncio.to_thread(self._store.close_lost, list(self._active))
                next_resync = time.monotonic() + self._resync_s
            views = await asyncio.to_thread(self._store.views, sorted(names))
            await self._end_removed([name for name, view in views if view is None and name in self._active])
            changed = [news for name, view in views if (news := self._news(name, view)) is not None]
            if changed:
                yield changed

    async def _end_removed(self, names: list[str]) -> None:
        """End what still runs of slots that somebody removed by hand, before it is said that nothing does."""
        for name in names:
            await asyncio.to_thread(slots.kill_marked, name)

    def _news(self, name: str, view: SlotView | None) -> SlotView | None:
        """Return the view if it says something new about a slot of ours."""
        if view is None:
            key = self._active.pop(name, None)
            self._shown.pop(name, None)
            return (
                None
                if key is None
                else SlotView(operation=key.operation, epoch=key.epoch, phase=SlotPhase.EMPTY, term=0)
            )
        checkpoint = view.report.checkpoint if view.report is not None else None
        shows = (view.phase, view.ended, checkpoint)
        if self._shown.get(name) == shows or view.phase is SlotPhase.CREATED:
            return None
        self._shown[name] = shows
        if view.phase in FINAL:
            self._active.pop(name, None)
        return view

    async def inventory(self) -> list[SlotView]:
        return await asyncio.to_thread(self._store.inventory)

    async def look(self, key: SlotKey) -> SlotView | None:
        return await asyncio.to_thread(self._store.view, key)

    async def stop(self, orders: Sequence[StopOrder]) -> None:
        await asyncio.to_thread(self._store.stop, orders)

    async def bury(self, burials: Sequence[Burial]) -> None:
        await asyncio.to_thread(self._store.bury, burials)
        for burial in burials:
            self._active.pop(name_of(burial.key), None)

    async def record(self, answers: Sequence[tuple[SlotKey, FinalReport]]) -> None:
        await asyncio.to_thread(self._store.record, answers)

    async def settle(self, settled: Sequence[tuple[SlotKey, int]]) -> None:
        await asyncio.to_thread(self._store.settle, settled)

    async def remove(self, keys: Sequence[SlotKey]) -> None:
        for key in keys:
            self._shown.pop(name_of(key), None)
        await asyncio.to_thread(self._store.remove, keys)

    async def logs(self, key: SlotKey, *, offset: int = 0, limit: int = 65_536, tail: int = 0) -> Chunk | None:
        return await asyncio.to_thread(self._store.logs, key, offset, limit, tail)

    async def outputs(self, key: SlotKey) -> dict[str, list[OutputFile]] | None:
        return await asyncio.to_thread(self._store.outputs, key)

    async def output_chunk(self, key: SlotKey, name: str, *, offset: int = 0, limit: int = 65_536) -> Chunk | None:
        return await asyncio.to_thread(self._store.output_chunk, key, name, offset, limit)

    def capacity(self) -> Capacity:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        processors = len(os.sched_getaffinity(0)) * 1000
        return Capacity(self._bindings.executor.slots, len(self._active), processors, memory)

    def know(self, contract: Contract) -> None:
        roles = contract.boundaries.identity.roles if contract.boundaries.identity is not None else {}
        self._bindings = replace(self._bindings, roles=frozenset(roles))
        self._store.bindings = self._bindings

    async def probe(self, probe: Probe) -> Finding | None:
        """Run a canary through launcher and guardian, as any workload runs."""
        canaries = {probe_kinds.WORKLOAD: run_to_its_end, probe_kinds.SELF_STOP: stop_by_itself}
        canary = canaries.get(probe.kind)
        return None if canary is None else await canary(self._home, self._boot, self._launcher)

    async def shut_down(self, *, keep_workloads: bool, grace_ms: int = 10_000) -> int:
        """End the launcher, and all workloads unless they are kept. Return how many would not end."""
        answer = await self._launcher.ask({"do": "quit", "keepWorkloads": keep_workloads, "graceMs": grace_ms})
        return int(answer["left"])
