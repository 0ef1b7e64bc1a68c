"""The simulated executor: everything happens in the dispatcher's process, by one timer over one heap."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from landbridge.domain import features, probe_kinds, units
from landbridge.domain.contract import Contract
from landbridge.domain.ownership.environment_model import FINAL, FinalReport, SlotPhase
from landbridge.domain.ownership.leases import NO_LEASE, HeldLease, StartVerdict, start_verdict
from landbridge.domain.ownership.policy import Disconnection
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.bindings import Binding, Bindings, Simulation
from landbridge_dispatch.executors.claimed import claimed_amount
from landbridge_dispatch.executors.local import procfs
from landbridge_dispatch.executors.local.lease import Lease, read_lease, write_lease
from landbridge_dispatch.executors.protocol import (
    Burial,
    Capacity,
    Chunk,
    Finding,
    OutputFile,
    RefusalCode,
    RefusedError,
    SlotKey,
    SlotView,
    StopOrder,
    Work,
)
from landbridge_dispatch.executors.resolution import check_acceptance
from landbridge_dispatch.executors.simulated.ending import contents_of, cut, output_bytes
from landbridge_dispatch.executors.simulated.journal import Journal
from landbridge_dispatch.executors.simulated.model import Model, Plan
from landbridge_dispatch.executors.simulated.slot import BURIED_PLAN, Slot, read_slots
from landbridge_dispatch.executors.simulated.timers import Timers

JOURNAL_FILE = "simulated.journal"
_MS_NS = 1_000_000
PLANS_MAX = 50_000
COMPACT_BYTES = 64 * 2**20
_START, _FINISH, _TIMEOUT, _KILL, _LEASE, _CHECKPOINT = range(6)


class SimulatedExecutor:
    """The executor `simulated`."""

    name = "simulated"
    features = (
        *features.PROCESS_FEATURES,
        *(features.type_feature(kind) for kind in features.WORKLOAD_TYPES[1:]),
        features.framework_feature(features.RAY),
    )

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._model = Model(bindings.simulation or Simulation())
        self._start_wait_ms = units.parse_duration(bindings.executor.start_wait)
        self._journal = Journal(Path(bindings.home) / JOURNAL_FILE)
        self._slots: dict[SlotKey, Slot] = {}
        self._plans: dict[SlotKey, Plan] = {}
        """What was found when an offer was checked, until its slot is occupied or too many have come."""
        self._timers = Timers(self._due)
        self._changed: dict[SlotKey, Slot] = {}
        self._wake = asyncio.Event()
        self._lease = NO_LEASE
        self._boot = procfs.boot_id()
        self._active = 0

    # -- life ----------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Read the journal; running work goes on as if this process had never been away."""
        self._bindings.home.mkdir(parents=True, exist_ok=True)
        kept = read_lease(self._bindings.home)
        if kept.boot == self._boot:
            self._lease = HeldLease(term=kept.term, valid_until=kept.until_ns // _MS_NS)
        self._slots = read_slots(self._journal.read())
        self._compact()
        self._active = sum(slot.phase not in FINAL for slot in self._slots.values())
        for slot in self._slots.values():
            if slot.phase is SlotPhase.RUNNING:
                self._schedule_run(slot)
                if slot.stopping:
                    self._timers.add(_now_ms(), _KILL, slot)

    async def close(self) -> None:
        self._timers.close()
        self._journal.close()

    def hold_lease(self, lease: HeldLease) -> None:
        self._lease = lease
        # For whoever comes after a kill -9: adopted work stops itself by this lease, not at once.
        kept = Lease(lease.term, lease.valid_until * _MS_NS, self._boot, lease.may_start)
        write_lease(self._bindings.home, kept)

    async def check(self, works: Sequence[Work]) -> list[RefusedError | None]:
        if len(self._plans) > PLANS_MAX:
            self._plans.clear()
        return [self._check(work) for work in works]

    def _check(self, work: Work) -> RefusedError | None:
        try:
            self._plans[work.key] = self._plan(work)
        except RefusedError as refusal:
            return refusal
        return None

    def _plan(self, work: Work) -> Plan:
        check_acceptance(self._bindings, work)
        try:
            return self._model.plan(work.operation, work.epoch, work.view.spec)
        except ValueError as error:
            raise RefusedError(RefusalCode.UNREADABLE, f"the specification cannot be used: {error}") from error

    # -- slots ---------------------------------------------------------------------------------------------------------

    async def occupy(self, works: Sequence[Work]) -> list[SlotView | RefusedError | None]:
        results = [self._occupy(work) for work in works]
        self._journal.flush()
        if self._journal.size > COMPACT_BYTES:
            self._compact()
        return results

    def _occupy(self, work: Work) -> SlotView | RefusedError | None:
        key = SlotKey(work.operation, work.epoch)
        found = self._slots.get(key)
        if found is not None:
            return found.view()
        epoch, spec = work.epoch, work.view.spec
        try:
            plan = self._plans.pop(key, None) or self._plan(work)
        except RefusedError as refusal:
            return refusal
        slot = Slot(
            key=key,
            term=work.term,
            spec_sha256=work.spec_sha256,
            project=work.project,
            policy=work.policy,
            plan=plan,
            contents=contents_of(work.operation, f"e{epoch.generation}-{epoch.counter}", spec),
            context=(work.contract_version, work.cost_per_hour, work.currency, tuple(spec.resources.told.items())),
        )
        self._slots[key] = slot
        self._active += 1
        self._journal.add(slot.occupied())
        return None

    async def regrant(self, key: SlotKey, term: int) -> None:
        slot = self._slots[key]
        slot.term = max(slot.term, term)
        self._note(slot, "g", slot.term)

    async def start(self, keys: Sequence[SlotKey]) -> None:
        now = _now_ms()
        for key in keys:
            slot = self._slots.get(key)
            if slot is not None and slot.phase is SlotPhase.CREATED and not slot.wait_until_ms:
                slot.wait_until_ms = now + slot.plan.delay_ms + self._start_wait_ms
                if slot.plan.delay_ms:
                    self._timers.add(now + slot.plan.delay_ms, _START, slot)
                else:
                    self._start(slot, now)
        self._journal.flush()

    def _start(self, slot: Slot, now: int) -> None:
        """Start it if the lease allows it at this very moment."""
        verdict = start_verdict(slot.term, self._lease, now)
        if verdict is StartVerdict.START:
            slot.phase, slot.started_ms, slot.started_at = SlotPhase.RUNNING, now, time.time()
            self._journal.add(slot.entry("s", now, slot.started_at))
            self._schedule_run(slot)
            self._announce(slot)
        elif verdict is StartVerdict.NEVER or now >= slot.wait_until_ms:
            self._entomb(slot, "no-lease")
        else:
            self._timers.add(now + 100, _START, slot)

    def _schedule_run(self, slot: Slot) -> None:
        plan, started = slot.plan, slot.started_ms
        self._timers.add(started + plan.duration_ms, _FINISH, slot)
        if plan.timeout_ms and plan.timeout_ms < plan.duration_ms:
            self._timers.add(started + plan.timeout_ms, _TIMEOUT, slot)
        if plan.checkpoint_after_ms >= 0:
            self._timers.add(started + plan.checkpoint_after_ms, _CHECKPOINT, slot)
        if slot.policy.self_stopping:
            self._timers.add(self._lease.valid_until, _LEASE, slot)

    # -- what happens by itself ----------------------------------------------------------------------------------------

    def _due(self, due: list[tuple[int, Slot]]) -> None:
        now = _now_ms()
        for kind, slot in due:
            if slot.phase not in FINAL:
                self._happen(kind, slot, now)
        self._journal.flush()

    def _happen(self, kind: int, slot: Slot, now: int) -> None:
        if kind == _FINISH:
            self._finish(slot, "")
        elif kind == _START and slot.phase is SlotPhase.CREATED:
            self._start(slot, now)
        elif kind == _TIMEOUT:
            self._finish(slot, "timeout")
        elif kind == _KILL:
            self._finish(slot, slot.stopping)
        elif kind == _CHECKPOINT:
            epoch = slot.key.epoch
            slot.checkpoint = f"{slot.key.operation}/e{epoch.generation}-{epoch.counter}/sealed-1/manifest.json"
            self._note(slot, "c", slot.checkpoint)
            self._announce(slot)
        elif kind == _LEASE:
            self._see_lease(slot, now)

    def _see_lease(self, slot: Slot, now: int) -> None:
        """Stop the work in time if the lease is not renewed; its whole patience counts from the lease's end."""
        ends = self._lease.valid_until
        if now < ends:
            self._timers.add(ends, _LEASE, slot)
        elif now < ends + slot.policy.within_ms:
            self._timers.add(min(now + 1000, ends + slot.policy.within_ms), _LEASE, slot)
        else:
            self._finish(slot, "self-stopped")

    def _finish(self, slot: Slot, cause: str) -> None:
        slot.finish(cause, time.time())
        self._active -= 1
        self._journal.add(slot.entry("f", cause, slot.ended_at))
        self._announce(slot)

    def _entomb(self, slot: Slot, reason: str) -> None:
        slot.entomb(reason, time.time(), denied=True, ended=True)
        self._active -= 1
        self._note(slot, "t", reason, slot.ended_at, True, True)
        self._announce(slot)

    def _note(self, slot: Slot, kind: str, *facts: object) -> None:
        self._journal.add(slot.entry(kind, *facts))
        self._journal.flush()

    # -- what changed --------------------------------------------------------------------------------------------------

    def _announce(self, slot: Slot) -> None:
        self._changed[slot.key] = slot
        self._wake.set()

    async def observe(self) -> AsyncIterator[list[SlotView]]:
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, {}
            yield [slot.view() for slot in changed.values()]

    async def inventory(self) -> list[SlotView]:
        return [slot.view() for slot in self._slots.values()]

    async def look(self, key: SlotKey) -> SlotView | None:
        slot = self._slots.get(key)
        return None if slot is None else slot.view()

    # -- ends ----------------------------------------------------------------------------------------------------------

    async def stop(self, orders: Sequence[StopOrder]) -> None:
        now = _now_ms()
        for order in orders:
            slot = self._slots.get(order.key)
            if slot is None or slot.phase in FINAL:
                continue
            if slot.phase is SlotPhase.CREATED:
                self._entomb(slot, order.reason)
                continue
            slot.stopping = slot.stopping or order.reason
            self._note(slot, "x", slot.stopping)
            wait_ms = order.grace_ms if slot.plan.ignore_term and not order.force else 0
            self._timers.add(now + wait_ms, _KILL, slot)

    async def bury(self, burials: Sequence[Burial]) -> None:
        for burial in burials:
            slot = self._slots.get(burial.key)
            if slot is None:
                slot = self._new_grave(burial)
            elif slot.phase not in FINAL:
                self._active -= 1
                slot.entomb(burial.report.reason, time.time(), denied=True, ended=False)
                self._note(slot, "t", slot.reason, slot.ended_at, True, False)
        await self.record([(burial.key, burial.report) for burial in burials])

    def _new_grave(self, burial: Burial) -> Slot:
        slot = Slot(
            key=burial.key,
            term=burial.term,
            spec_sha256="",
            project=burial.project,
            policy=Disconnection(),
            plan=BURIED_PLAN,
        )
        self._slots[burial.key] = slot
        self._journal.add(slot.occupied())
        slot.entomb(burial.report.reason, time.time(), denied=True, ended=False)
        self._note(slot, "t", slot.reason, slot.ended_at, True, False)
        return slot

    async def record(self, answers: Sequence[tuple[SlotKey, FinalReport]]) -> None:
        for key, report in answers:
            slot = self._slots.get(key)
            if slot is None or slot.implies(report):
                continue
            slot.final = FinalReport(report.state, report.outcome, report.reason)
            self._journal.add(slot.entry("a", report.state, report.outcome, report.reason))
        self._journal.flush()

    async def settle(self, settled: Sequence[tuple[SlotKey, int]]) -> None:
        for key, term in settled:
            slot = self._slots.get(key)
            if slot is not None:
                slot.shrink(term)
                self._journal.add(slot.entry("d", term))
        self._journal.flush()

    async def remove(self, keys: Sequence[SlotKey]) -> None:
        for key in keys:
            slot = self._slots.pop(key, None)
            if slot is not None:
                self._journal.add(slot.entry("r"))
        self._journal.flush()

    def _compact(self) -> None:
        entries: Iterable[tuple[object, ...]] = (entry for slot in self._slots.values() for entry in slot.entries())
        self._journal.rewrite(entries)

    # -- what people ask -----------------------------------------------------------------------------------------------

    async def logs(self, key: SlotKey, *, offset: int = 0, limit: int = 65_536, tail: int = 0) -> Chunk | None:
        slot = self._slots.get(key)
        return None if slot is None else cut(slot.log(), offset, limit, tail, ended=slot.ended)

    async def outputs(self, key: SlotKey) -> dict[str, list[OutputFile]] | None:
        slot = self._slots.get(key)
        if slot is None:
            return None
        remains = slot.remains.outputs if slot.remains is not None else {}
        return {name: [OutputFile("", output.bytes)] for name, output in remains.items()}

    async def output_chunk(self, key: SlotKey, name: str, *, offset: int = 0, limit: int = 65_536) -> Chunk | None:
        slot = self._slots.get(key)
        output = slot.remains.outputs.get(name) if slot is not None and slot.remains is not None else None
        return None if output is None else cut(output_bytes(output.path), offset, limit, 0, ended=True)

    def know(self, contract: Contract) -> None:
        roles = contract.boundaries.identity.roles if contract.boundaries.identity is not None else {}
        # What a connection leads to does not matter here: every one of the contract is as good as bound.
        bound = {**dict.fromkeys(contract.connections, Binding()), **self._bindings.connections}
        self._bindings = replace(self._bindings, roles=frozenset(roles), connections=bound)

    def capacity(self) -> Capacity:
        return Capacity(self._model.slots, self._active, 0, 0)

    async def probe(self, probe: Probe) -> Finding | None:
        """Answer for the declared model: there is nothing else to look at."""
        if probe.kind in (probe_kinds.CLOCK, probe_kinds.BOUNDARY, probe_kinds.CARBON):
            return None
        amount = claimed_amount(probe) if probe.kind == probe_kinds.CAPACITY else None
        detail = "declared by the model, not observed"
        return Finding(EvidenceResult.PROVEN, "simulated", detail, proven=amount, claimed=amount)


def _now_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
