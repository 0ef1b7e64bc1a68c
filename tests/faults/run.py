"""One run: load and faults in rounds, recovery measured for each, then everything comes to rest and is audited."""

import asyncio
import contextlib
import json
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.instance import ROOT
from benchmarks.measure import percentile
from landbridge.client import HttpClient
from landbridge.store import StoreError
from landbridge_lineage.replay import compare, compare_with_stream

from . import audit as auditing
from . import plan, truth
from .audit import Findings, Frozen
from .injector import Injector
from .load import CANARY, Diary, Load
from .recovery import Healed, Recoveries, boot, recoveries, summary, wall
from .world import PROCESS_SITES, PROJECT, SERVERS, SIMULATED_SITES, World

RECOVERY_S = 15.0
RECOVERY_MAX_S = 60.0
_REST_S = 240.0
_DRAIN_S = 120.0


@dataclass(frozen=True)
class Options:
    """What a run does. `folder` keeps everything that is needed to go on and to look at it afterwards."""

    seed: int
    operations: int
    faults: int
    folder: Path
    ttl_s: float = 3.0
    say: Callable[[str], None] = print


@dataclass
class Progress:
    """What was done so far, in a file: a run that was interrupted goes on behind it."""

    file: Path
    rounds: int = 0
    recoveries: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    frozen: list[list[Any]] = field(default_factory=list)
    seconds: float = 0.0
    sessions: int = 0
    left_at: float = 0.0
    """When the instance was last stopped, on the boot clock."""

    @classmethod
    def load(cls, file: Path) -> "Progress":
        return cls(file, **json.loads(file.read_text())) if file.exists() else cls(file)

    def save(self) -> None:
        content = {name: value for name, value in vars(self).items() if name != "file"}
        temporary = self.file.with_suffix(".new")
        temporary.write_text(json.dumps(content))
        temporary.replace(self.file)


class FaultRun:
    """`await FaultRun(options).run()` returns the report."""

    def __init__(self, options: Options) -> None:
        self.options = options
        folder = options.folder
        folder.mkdir(parents=True, exist_ok=True)
        self.world = World(folder / "data", ttl_s=options.ttl_s)
        self.progress = Progress.load(folder / "progress.json")
        self.diary = Diary(folder / "clients.jsonl")
        self.load = Load(self.world, options.seed, self.diary, folder / "processes.txt")
        homes = {site: self.world.home(site) for site in SIMULATED_SITES}
        self.journals = truth.JournalKeeper(homes, folder)
        self._done: list[dict[str, Any]] = []
        self.injector = Injector(self.world, self._done.append, self.load.storm)
        self.recoveries = Recoveries(self.world, self.diary, self._note)
        self._log = (folder / "faults.log").open("a", buffering=1)

    async def run(self) -> dict[str, Any]:
        """Do what is still to be done, audit, stop the instance. Raises RuntimeError if it does not come to rest."""
        began = time.monotonic()
        before_s = self.progress.seconds
        self.progress.sessions += 1
        self.progress.save()
        await asyncio.to_thread(self._mend)
        await self.world.open()
        self._was_away()
        self.journals.start()
        try:
            await self.load.open()
            self._say(f"seed {self.options.seed}: instance ready")
            await self._rounds(lambda: before_s + time.monotonic() - began)
            await self.load.settled()
            await self._rest()
            findings = await self._audit()
        finally:
            with contextlib.suppress(Exception):  # whatever ended the run matters more
                await self.load.close()
            await self.journals.stop()
            self.diary.close()
            self.progress.left_at = boot()
            self._keep()
            await self.world.close()
            self._log.close()
        self.progress.seconds = before_s + time.monotonic() - began
        self.progress.save()
        return self._report(findings)

    def _mend(self) -> None:
        """End the faults of a session that was killed in their midst; its instance may run on."""
        data = self.world.data
        if not (data.root.exists() and data.is_held()):
            return
        for server in SERVERS:
            self.world.release(server)
        for pid in self.world.pids().values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _was_away(self) -> None:
        """Note that no simulated site ran between two sessions."""
        if self.progress.left_at:
            self.injector.frozen += [Frozen(site, self.progress.left_at, boot()) for site in SIMULATED_SITES]

    def _note(self, text: str) -> None:
        self._log.write(f"{wall()} {text}\n")

    def _say(self, text: str) -> None:
        self._note(text)
        self.options.say(text)

    # -- rounds ---------------------------------------------------------------------------------------------------

    async def _rounds(self, seconds: Callable[[], float]) -> None:
        options, progress = self.options, self.progress
        todo = plan.rounds(options.seed, options.faults, options.ttl_s)
        self.load.submitted = self._share(todo, progress.rounds)
        self.load.again()
        for number in range(progress.rounds, len(todo)):
            feeding = asyncio.create_task(
                self.load.upto(self._share(todo, number + 1), seconds=plan.lasts_s(todo[number])), name="load"
            )
            await self._round(number, todo[number])
            await feeding
            progress.rounds = number + 1
            progress.seconds = seconds()
            self._keep()

    def _keep(self) -> None:
        """Note in the file what was done, also of a round that was interrupted: its frozen sites explain overlaps."""
        progress = self.progress
        progress.frozen += [[each.site, each.start, each.stop] for each in self.injector.frozen]
        self.injector.frozen.clear()
        progress.save()

    def _share(self, todo: Sequence[Sequence[plan.Fault]], rounds: int) -> int:
        """Return how many operations are submitted by the end of so many rounds: as many for each fault."""
        return self.options.operations * sum(map(len, todo[:rounds])) // self.options.faults

    async def _round(self, number: int, faults: list[plan.Fault]) -> None:
        named = ", ".join(" ".join(filter(None, (f.kind, f.target, f.how))) for f in faults)
        self._note(f"round {number}: {named}")
        began = time.monotonic()
        async with self.world.application() as client:
            healed = await asyncio.gather(*(self._fault(client, fault) for fault in faults))
        await self.world.until_ready()
        found = recoveries(healed)
        self.progress.faults += self._done
        self.progress.recoveries += [{**each.to_json(), "recovery": found[each.number]} for each in healed]
        self._done.clear()
        took = time.monotonic() - began
        self._say(f"round {number}: {len(faults)} faults in {took:.1f} s, recovered within {summary(found)} s")

    async def _fault(self, client: HttpClient, fault: plan.Fault) -> Healed:
        """Carry one out and wait until what it hit works again."""
        await asyncio.sleep(fault.after_s)
        self.recoveries.begins(fault)
        begun, over = await self.injector.inject(fault)
        key = f"{CANARY}-{self.options.seed}-{fault.number}-{self.progress.sessions}"
        return await self.recoveries.of(client, fault, begun, over, key)

    # -- the end --------------------------------------------------------------------------------------------------

    async def _rest(self) -> None:
        """Wait until nothing is open any more, as lineage tells it; what hangs is left for the audit to name."""
        database = await self.world.database("lineage")
        deadline = time.monotonic() + _REST_S
        expected = set(self.diary.known.operations.values())
        try:
            while time.monotonic() < deadline:
                with contextlib.suppress(StoreError):
                    rows = await database.fetch(
                        "select id from operation where project = $1 and phase in ('completed', 'failed', 'cancelled')",
                        PROJECT,
                    )
                    missing = expected - {str(row[0]) for row in rows}
                    if not missing:
                        self._say(f"{len(expected)} operations have ended")
                        return
                await asyncio.sleep(0.5)
            self._say(f"{len(missing)} operations have not ended within {_REST_S:g} s: {sorted(missing)[:5]}")
        finally:
            await database.close()

    async def _audit(self) -> Findings:
        await asyncio.sleep(1.0)  # the last guardians write their lines after their reports
        world = self.world
        committed = await auditing.read_stream(world)
        files = {site: world.home(site) / truth.AUDIT for site in PROCESS_SITES}
        await asyncio.sleep(2 * 0.1)
        ran = truth.collect(files, {site: self.journals.file(site) for site in SIMULATED_SITES})
        frozen = [Frozen(*each) for each in self.progress.frozen]
        said = truth.said_by_workloads(self.options.folder / "processes.txt")
        findings = auditing.audit(self.diary.known, ran, committed, frozen, said)
        findings.not_recovered += [
            f"fault {each['number']}: {each['recovery']} s"
            for each in self.progress.recoveries
            if each["recovery"] > RECOVERY_MAX_S
        ]
        findings.projection += await self._projection()
        return findings

    async def _projection(self) -> list[str]:
        """Compare lineage with a replay of its facts, and with a replay of the stream."""
        database, bus = await self.world.database("lineage"), await self.world.bus("streams")
        try:
            await caught_up(database, bus)
            found = [await compare(database), await compare_with_stream(database, bus)]
        finally:
            await bus.drain()
            await database.close()
        return [each.text() for each in found if not each.equal]

    def _report(self, findings: Findings) -> dict[str, Any]:
        progress, options = self.progress, self.options
        seconds = sorted(float(each["recovery"]) for each in progress.recoveries)
        told = findings.to_json()
        kinds: dict[str, int] = {}
        for fault in progress.faults:
            kinds[fault["kind"]] = kinds.get(fault["kind"], 0) + 1
        p95 = percentile(seconds, 95)
        own = sorted(max(each["ready"], each["moved"]) - each["over"] for each in progress.recoveries)
        return {
            "seed": options.seed,
            "operations": findings.counts.get("acknowledged", 0),
            "faults": len(progress.faults),
            **told,
            "recovery_p50_s": percentile(seconds, 50),
            "recovery_p95_s": p95,
            "recovery_max_s": seconds[-1] if seconds else 0.0,
            "from_own_end_p50_s": round(percentile(own, 50), 3),
            "from_own_end_p95_s": round(percentile(own, 95), 3),
            "faults_by_kind": dict(sorted(kinds.items())),
            "seconds": round(progress.seconds, 1),
            "lease_ttl_s": options.ttl_s,
            "sessions": progress.sessions,
            "versions": versions(),
            "good": findings.good and p95 <= RECOVERY_S,
        }


async def caught_up(database: Any, bus: Any) -> None:
    """Wait until lineage has folded what the stream holds."""
    from landbridge.bus.declare import api

    deadline = time.monotonic() + _DRAIN_S
    while time.monotonic() < deadline:
        info = await api(bus, "CONSUMER.INFO.OPERATIONS.lineage")
        if not int(info["num_pending"]) + int(info["num_ack_pending"]):
            return
        await asyncio.sleep(0.2)


def versions() -> dict[str, str]:
    """Say what was tested, so that a report can be compared with another."""
    ask = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=False)
    return {"commit": commit.stdout.strip(), "python": platform.python_version(), "kernel": platform.release()}
