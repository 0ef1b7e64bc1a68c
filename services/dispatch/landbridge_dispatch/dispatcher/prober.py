"""The probe plan, run on its schedule, centre or no centre. Evidence goes out when it is news, or grows old."""

import asyncio
import heapq
import itertools
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from landbridge.runtime import logs
from landbridge.schema.wire.command_v1 import Probe, ProbePlan
from landbridge.schema.wire.report_v1 import Evidence, EvidenceResult
from landbridge_dispatch.dispatcher.clocks import wall
from landbridge_dispatch.dispatcher.reporting import Reporter
from landbridge_dispatch.executors.local import files
from landbridge_dispatch.executors.protocol import Finding, Voiding
from landbridge_dispatch.probes import KINDS
from landbridge_dispatch.probes.context import ProbeContext

log = logs.get(__name__)

PLAN_FILE: Final = "probe-plan.json"
AT_A_TIME: Final = 4
COALESCE_S: Final = 0.2
DEFAULT_PERIOD_S: Final = 60
DEFAULT_TIMEOUT_S: Final = 30
_plan: Final = msgspec.json.Decoder(ProbePlan)


class Prober:
    """Runs probes and keeps their latest evidence."""

    def __init__(self, context: ProbeContext, reporter: Reporter, home: Path) -> None:
        self.evidence: dict[str, Evidence] = {}
        self.plan = ProbePlan(contract_version=1)
        self._context = context
        self._reporter = reporter
        self._file = home / PLAN_FILE
        self._due: list[tuple[float, int, str]] = []
        self._numbers = itertools.count()
        self._probes: dict[str, Probe] = {}
        self._told: dict[str, Evidence] = {}
        self._news: dict[str, Evidence] = {}
        self._running: set[str] = set()
        self._changed = asyncio.Event()
        self._arrived = asyncio.Event()
        self._room = asyncio.Semaphore(AT_A_TIME)

    def load(self) -> None:
        """Go on with the plan of an earlier dispatcher: the centre may be away for long."""
        try:
            self._adopt(_plan.decode(self._file.read_bytes()))
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("probe_plan_unreadable", error=str(error))

    async def take(self, plan: ProbePlan) -> None:
        """Replace the plan. Probes that are in both keep their evidence, and their turn."""
        await asyncio.to_thread(files.write_bytes, self._file, msgspec.json.encode(plan))
        self._adopt(plan)

    def _adopt(self, plan: ProbePlan) -> None:
        before, self._probes = self._probes, {probe.name: probe for probe in plan.probes}
        self.plan = plan
        fresh = [name for name, probe in self._probes.items() if before.get(name) != probe]
        self._due = [entry for entry in self._due if entry[2] in self._probes and entry[2] not in fresh]
        heapq.heapify(self._due)
        for gone in [name for name in self.evidence if name not in self._probes]:
            del self.evidence[gone]
            self._told.pop(gone, None)
        self.verify(fresh)
        log.info("probe_plan", contract_version=plan.contract_version, probes=len(self._probes), fresh=len(fresh))

    def verify(self, names: Sequence[str] = ()) -> None:
        """Run probes now: those named, or all. Their evidence is told again even if it says the same."""
        now = asyncio.get_running_loop().time()
        for name in names or self._probes:
            if name in self._probes:
                self._told.pop(name, None)
                heapq.heappush(self._due, (now, next(self._numbers), name))
        self._changed.set()

    async def run(self) -> None:
        """Run what is due until cancelled."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tell(), name="evidence")
            if isinstance(executor := self._context.executor, Voiding):
                group.create_task(self._void(executor), name="voided-evidence")
            while True:
                wait_s = self._due[0][0] - loop.time() if self._due else None
                if wait_s is None or wait_s > 0:
                    await self._sleep(wait_s)
                    continue
                _, _, name = heapq.heappop(self._due)
                probe = self._probes.get(name)
                if probe is None or name in self._running:
                    continue
                self._running.add(name)
                await self._room.acquire()
                group.create_task(self._run_one(probe), name=f"probe-{name}")

    async def _void(self, executor: Voiding) -> None:
        """Probe at once what the executor says is no longer as it was proven."""
        async for claims in executor.voided():
            void = set(claims)
            if names := [name for name, probe in self._probes.items() if probe.claim in void]:
                log.info("evidence_void", claims=sorted(void))
                self.verify(names)

    async def _sleep(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    async def _run_one(self, probe: Probe) -> None:
        try:
            finding = await self._find(probe)
        finally:
            self._room.release()
            self._running.discard(probe.name)
        if self._probes.get(probe.name) != probe:
            return
        self._note(probe, finding)
        period_s = probe.period_seconds or DEFAULT_PERIOD_S
        if not any(entry[2] == probe.name for entry in self._due):
            due = asyncio.get_running_loop().time() + period_s
            heapq.heappush(self._due, (due, next(self._numbers), probe.name))
            self._changed.set()

    async def _find(self, probe: Probe) -> Finding:
        """Run one probe. Whatever happens is a finding."""
        timeout_s = probe.timeout_seconds or DEFAULT_TIMEOUT_S
        subject = f"boot {self._context.boot_id[:8]}"
        try:
            async with asyncio.timeout(timeout_s):
                finding = await self._context.executor.probe(probe)
                if finding is None and probe.kind in KINDS:
                    finding = await KINDS[probe.kind](probe, self._context)
        except TimeoutError:
            return Finding(EvidenceResult.FAILED, subject, f"no result within {timeout_s} s")
        except Exception as error:  # noqa: BLE001 - a probe that breaks has not proven anything
            log.warning("probe_broke", probe=probe.name, kind=probe.kind, error=str(error))
            return Finding(EvidenceResult.FAILED, subject, f"the probe broke: {type(error).__name__}")
        if finding is None:
            name = self._context.executor.name
            return Finding(EvidenceResult.UNKNOWN, subject, f"executor {name} has no probe of kind {probe.kind}")
        return finding

    def _note(self, probe: Probe, finding: Finding) -> None:
        """Keep it; tell it if it says something new, or if what was told would soon be too old."""
        at = finding.at or wall()
        evidence = Evidence(
            claim=probe.claim,
            result=finding.result,
            proven=finding.proven,
            claimed=finding.claimed,
            probe=probe.name,
            subject=finding.subject,
            at=at,
            expires=at + timedelta(seconds=probe.expiry_seconds or 3 * DEFAULT_PERIOD_S),
            detail=finding.detail,
        )
        self.evidence[probe.name] = evidence
        told = self._told.get(probe.name)
        halfway = None if told is None else told.at + (told.expires - told.at) / 2
        grows_old = halfway is None or at + timedelta(seconds=probe.period_seconds) >= halfway
        if told is None or grows_old or not _same(told, evidence):
            self._told[probe.name] = self._news[probe.name] = evidence
            self._arrived.set()

    async def _tell(self) -> None:
        """Send news together; what becomes older news while the centre is away is replaced by newer."""
        while True:
            await self._arrived.wait()
            await asyncio.sleep(COALESCE_S)
            self._arrived.clear()
            news, self._news = self._news, {}
            if news:
                await self._reporter.publish_evidence(self.plan.contract_version, list(news.values()))


def _same(one: Evidence, other: Evidence) -> bool:
    return msgspec.structs.replace(one, at=other.at, expires=other.expires) == other
