"""One run: load and faults in rounds, recovery measured after each, then everything comes to rest and is audited."""

import asyncio
import contextlib
import json
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.instance import ROOT
from benchmarks.measure import percentile
from landbridge.client import LandbridgeError
from landbridge.store import StoreError
from landbridge_lineage.replay import compare, compare_with_stream

from . import audit as auditing
from . import plan, truth, work
from .audit import Findings, Frozen
from .injector import Injector
from .load import Diary, Load, patiently
from .world import PROCESS_SITES, PROJECT, SIMULATED_SITES, World

RECOVERY_S = 15.0
_REST_S = 240.0
_MOVES_S = 90.0
_DRAIN_S = 120.0


@dataclass(frozen=True)
class Options:
    """What a run does. `folder` keeps everything that is needed to go on and to look at it afterwards."""

    seed: int
    operations: int
    faults: int
    folder: Path
    ttl_s: float = 4.0
    round_s: float = 4.0
    """Load is spread over at least so many seconds for each round."""
    say: Callable[[str], None] = print


@dataclass
class Progress:
    """What was done so far, in a file: a run that was interrupted goes on behind it."""

    file: Path
    rounds: int = 0
    recoveries: list[float] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    frozen: list[list[Any]] = field(default_factory=list)
    seconds: float = 0.0
    sessions: int = 0

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
        self.injector = Injector(self.world, self.progress.faults.append)
        self._log = (folder / "faults.log").open("a", buffering=1)

    async def run(self) -> dict[str, Any]:
        """Do what is still to be done, audit, stop the instance. Raises RuntimeError if it does not come to rest."""
        began = time.monotonic()
        before_s = self.progress.seconds
        self.progress.sessions += 1
        await self.world.open()
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
            await self.world.close()
            self._log.close()
        self.progress.seconds = before_s + time.monotonic() - began
        self.progress.save()
        return self._report(findings)

    def _say(self, text: str) -> None:
        self._log.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text}\n")
        self.options.say(text)

    # -- rounds ---------------------------------------------------------------------------------------------------

    async def _rounds(self, seconds: Callable[[], float]) -> None:
        options, progress = self.options, self.progress
        todo = plan.rounds(options.seed, options.faults, options.ttl_s)
        self.load.submitted = 0 if progress.rounds == 0 else self._share(progress.rounds, len(todo))
        for number in range(progress.rounds, len(todo)):
            target = self._share(number + 1, len(todo))
            feeding = asyncio.create_task(self.load.upto(target, seconds=options.round_s), name="load")
            await self._round(number, todo[number])
            await feeding
            progress.rounds = number + 1
            progress.frozen += [[each.site, each.start, each.stop] for each in self.injector.frozen]
            self.injector.frozen.clear()
            progress.seconds = seconds()
            progress.save()

    def _share(self, rounds: int, of: int) -> int:
        return self.options.operations * rounds // of

    async def _round(self, number: int, faults: list[plan.Fault]) -> None:
        named = ", ".join(" ".join(filter(None, (f.kind, f.target, f.how))) for f in faults)
        self._log.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} round {number}: {named}\n")
        await asyncio.gather(*(self.injector.inject(fault) for fault in faults))
        over = time.monotonic()
        await asyncio.gather(self.world.until_ready(), self._moves(number))
        took = time.monotonic() - over
        self.progress.recoveries += [round(took, 3)] * len(faults)
        self._say(f"round {number}: {named}: recovered in {took:.2f} s")

    async def _moves(self, number: int) -> None:
        """Wait until something submitted after the faults has come to its end: progress has resumed."""
        key = f"canary-{self.options.seed}-{number}-{self.progress.sessions}"
        async with self.world.application() as client:
            answer = await patiently(lambda: client.submit(work.canary(number), idempotency_key=key))
            self.diary.note("accepted", key, answer.id, existing=answer.existing)
            deadline = time.monotonic() + _MOVES_S
            found = "unknown"
            while time.monotonic() < deadline:
                with contextlib.suppress(LandbridgeError):
                    operation = await client.get(answer.id)
                    found = operation.phase
                    if operation.finished:
                        return
                await asyncio.sleep(0.1)
        raise RuntimeError(f"round {number}: nothing moves; canary {answer.id} is {found} after {_MOVES_S:g} s")

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
        findings = auditing.audit(self.diary.known, ran, committed, frozen)
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
        recoveries = sorted(progress.recoveries)
        told = findings.to_json()
        kinds: dict[str, int] = {}
        for fault in progress.faults:
            kinds[fault["kind"]] = kinds.get(fault["kind"], 0) + 1
        p95 = percentile(recoveries, 95)
        return {
            "seed": options.seed,
            "operations": findings.counts.get("acknowledged", 0),
            "faults": len(progress.faults),
            **told,
            "recovery_p50_s": percentile(recoveries, 50),
            "recovery_p95_s": p95,
            "recovery_max_s": recoveries[-1] if recoveries else 0.0,
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
