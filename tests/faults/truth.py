"""What really ran, from files that the control plane never reads: the guardians' audit and the simulated journals.

Times are seconds on the machine's boot clock, so that both kinds can be compared.
"""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JOURNAL = "simulated.journal"
AUDIT = "audit.jsonl"
KEPT = "journal-{site}.jsonl"
_POLL_S = 0.1
_WORDS = 3
_STARTED, _ENDED, _BURIED = "s", "f", "t"


@dataclass(frozen=True, slots=True)
class Started:
    """One true start. `wall` is seconds since 1970."""

    site: str
    operation: str
    epoch: str
    boot: float
    wall: float


@dataclass
class Run:
    """One attempt as the site saw it. Without a stop it may still run."""

    site: str
    operation: str
    epoch: str
    start: float
    wall: float
    stop: float | None = None
    cause: str = ""
    simulated: bool = False


@dataclass
class Truth:
    """Everything that ran, by operation; and starts of an attempt that had started already."""

    runs: dict[str, list[Run]] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)

    def add(self, run: Run) -> None:
        known = self.runs.setdefault(run.operation, [])
        if any(other.epoch == run.epoch for other in known):
            self.repeated.append(f"{run.operation} {run.epoch} started again, now in {run.site}")
        known.append(run)

    def count(self) -> int:
        return sum(len(runs) for runs in self.runs.values())


def boot_offset() -> float:
    """Return what must be added to wall time to get boot time."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.time()


def collect(processes: dict[str, Path], journals: dict[str, Path]) -> Truth:
    """Read every site's record: `processes` and `journals` are files by site."""
    truth = Truth()
    for site, file in processes.items():
        for run in _process_runs(site, _lines(file)):
            truth.add(run)
    for site, file in journals.items():
        for run in _simulated_runs(site, _lines(file)):
            truth.add(run)
    return truth


def said_by_workloads(file: Path) -> Counter[str]:
    """Return how often a workload of each operation said that it runs: lines `start OPERATION ATTEMPT`."""
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter(line.split()[1] for line in lines if line.startswith("start ") and len(line.split()) == _WORDS)


def _lines(file: Path) -> Iterator[Any]:
    if not file.exists():
        return
    with file.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield json.loads(line)


def _process_runs(site: str, entries: Iterable[dict[str, Any]]) -> list[Run]:
    found: list[Run] = []
    open_: dict[str, Run] = {}
    for entry in entries:
        slot = str(entry.get("slot"))
        if entry["event"] == "start":
            run = Run(site, entry["operation"], entry["epoch"], entry["bootNs"] / 1e9, entry["at"])
            found.append(run)
            open_[slot] = run
        elif entry["event"] == "stop" and slot in open_:
            run = open_.pop(slot)
            run.stop, run.cause = entry["bootNs"] / 1e9, str(entry.get("reason", ""))
    return found


def _simulated_runs(site: str, entries: Iterable[list[Any]]) -> list[Run]:
    """Fold kept journal lines; a rewritten journal repeats lines, which then say the same."""
    offset = boot_offset()
    runs: dict[tuple[str, str, int], Run] = {}
    newest: dict[tuple[str, str], Run] = {}
    for entry in entries:
        kind, operation, epoch, facts = entry[0], entry[1], f"{entry[2]}.{entry[3]}", entry[4:]
        if kind == _STARTED:
            key = (operation, epoch, int(facts[0]))
            if key not in runs:
                runs[key] = Run(site, operation, epoch, facts[0] / 1e3, facts[1], simulated=True)
            newest[(operation, epoch)] = runs[key]
        elif kind in (_ENDED, _BURIED) and (run := newest.get((operation, epoch))) is not None and run.stop is None:
            run.stop, run.cause = facts[1] + offset, str(facts[0])
    return list(runs.values())


class JournalKeeper:
    """Copies every line that simulated sites write, because they drop what is settled when they rewrite the file.

    It holds the file open: a rewritten journal is a new file, and what was written last to the old one is still read.
    """

    def __init__(self, homes: dict[str, Path], folder: Path) -> None:
        self._homes = homes
        self._folder = folder
        self._open: dict[str, tuple[int, bytes]] = {}
        self._outs: dict[str, Any] = {}
        self._task: asyncio.Task[None] | None = None

    def file(self, site: str) -> Path:
        return self._folder / KEPT.format(site=site)

    def start(self) -> None:
        for site in self._homes:
            self._outs[site] = self.file(site).open("ab", buffering=0)
        self._task = asyncio.create_task(self._run(), name="journals")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for site in self._homes:
            self._look(site)
            self._outs[site].close()
        for descriptor, _ in self._open.values():
            os.close(descriptor)

    async def _run(self) -> None:
        while True:
            for site in self._homes:
                self._look(site)
            await asyncio.sleep(_POLL_S)

    def _look(self, site: str) -> None:
        self._drain(site)
        path = self._homes[site] / JOURNAL
        try:
            found = path.stat().st_ino
        except FileNotFoundError:
            return
        held = self._open.get(site)
        if held is not None and os.fstat(held[0]).st_ino == found:
            return
        if held is not None:
            self._drain(site)  # what came between the first look and the rewriting
            os.close(held[0])
        self._open[site] = (os.open(path, os.O_RDONLY | os.O_CLOEXEC), b"")
        self._drain(site)

    def _drain(self, site: str) -> None:
        held = self._open.get(site)
        if held is None:
            return
        descriptor, rest = held
        while chunk := os.read(descriptor, 1 << 20):
            rest += chunk
        whole, newline, rest = rest.rpartition(b"\n")
        if newline:
            self._outs[site].write(whole + newline)
        self._open[site] = (descriptor, rest)
