"""`make test-deep`: thousands of seeds on all cores, then every rule switched off, with progress and a way back in.

What is done is kept in `build/simulation/` and skipped when the same code runs again, so that Ctrl-C loses a block at
most. A violation names seed and plan; `python -m simulation.replay SEED PLAN` shows the whole run again.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simulation.met import ROWS, UNREACHABLE, met, thin
from simulation.mutations import BOUND, RULES, Catch, first_catch, table
from simulation.plans import PLANS, plans_of
from simulation.world.coverage import table as coverage_table
from simulation.world.coverage import write
from simulation.world.truth_centre import Violated
from simulation.world.world import run

ROOT = Path(__file__).parents[2]
HOME = ROOT / "build" / "simulation"
BLOCK = 25
OFTEN = 20
"""How often each fault must have met each state that it can meet, from `OFTEN_FROM` seeds on."""
OFTEN_FROM = 2_000

Told = dict[str, Any]


def seeds_block(block: int) -> Told:
    """Run one block of seeds; return what was covered and what broke."""
    covered: Counter[tuple[str, str]] = Counter()
    broken = []
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        for plan in plans_of(seed):
            try:
                covered.update(met(run(seed, plan=PLANS[plan]()).truth.covered))
            except Violated as violated:
                broken.append([seed, plan, str(violated).split("\n", 1)[0]])
    cells = [[fault, state, count] for (fault, state), count in sorted(covered.items())]
    return {"covered": cells, "broken": broken}


def mutation(rule: str) -> Told:
    """Search for the first seed that misses one rule."""
    found = first_catch(rule)
    return {"caught": None if found is None else asdict(found)}


def code_hash() -> str:
    """Name the code that the results are of: the protocol and the simulation around it."""
    digest = hashlib.sha256()
    for folder in (ROOT / "libs/landbridge/domain", Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Ledger:
    """What is done already, one line each, of this code only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.done: dict[str, Told] = {}
        code = code_hash()
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if lines and lines[0] == code:
            for line in lines[1:]:
                try:
                    entry = json.loads(line)
                except ValueError:
                    break  # the line that was being written at the interruption
                self.done[entry["key"]] = entry["told"]
        path.write_text("\n".join([code, *(self._line(key) for key in self.done), ""]), encoding="utf-8")

    def _line(self, key: str) -> str:
        return json.dumps({"key": key, "told": self.done[key]})

    def add(self, key: str, told: Told) -> None:
        self.done[key] = told
        with self._path.open("a", encoding="utf-8") as file:
            file.write(self._line(key) + "\n")


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _call(job: tuple[str, Callable[[Any], Told], Any]) -> tuple[str, Told]:
    key, work, argument = job
    return key, work(argument)


def carry_out(
    title: str, jobs: Iterable[tuple[str, Callable[[Any], Told], Any]], ledger: Ledger, workers: int
) -> float:
    """Do what is not done yet; return the seconds it took."""
    everything = list(jobs)
    waiting = [job for job in everything if job[0] not in ledger.done]
    print(f"{title}: {len(everything)} to do, {len(everything) - len(waiting)} of them done before", flush=True)
    began = told_at = time.monotonic()
    with multiprocessing.Pool(workers, initializer=_ignore_interrupts) as pool:
        for number, (key, told) in enumerate(pool.imap_unordered(_call, waiting), start=1):
            ledger.add(key, told)
            for seed, plan, text in told.get("broken", ()):
                print(f"  VIOLATED {text}\n    python -m simulation.replay {seed} {plan}", flush=True)
            now = time.monotonic()
            if now - told_at > 10 or number == len(waiting):
                told_at = now
                left = (now - began) / number * (len(waiting) - number)
                print(f"  {number} of {len(waiting)}, about {left:.0f} s left", flush=True)
    return time.monotonic() - began


def judge_seeds(seeds: int, ledger: Ledger) -> bool:
    """Write the coverage, and tell whether all seeds held and every fault met every state that it can meet."""
    told = [ledger.done[f"seeds {block}"] for block in range(_blocks(seeds))]
    counts: Counter[tuple[str, str]] = Counter()
    for entry in told:
        for fault, state, count in entry["covered"]:
            counts[fault, state] += count
    write(coverage_table(counts, ROWS, UNREACHABLE, seeds), HOME / "coverage.md")
    broken = [text for entry in told for _, _, text in entry["broken"]]
    empty = thin(counts, OFTEN if seeds >= OFTEN_FROM else 1)
    print(f"{seeds} seeds: {len(broken)} violations; coverage in {HOME.relative_to(ROOT)}/coverage.md")
    if empty:
        print(f"  faults that met a state too seldom: {empty}")
    return not broken and not empty


def judge_mutations(ledger: Ledger) -> bool:
    """Write and print the table of rules; tell whether each one is missed when it is switched off."""
    caught: dict[str, Catch | None] = {}
    for rule in RULES:
        found = ledger.done[f"rule {rule}"]["caught"]
        caught[rule] = None if found is None else Catch(**found)
    page = table(caught)
    write(f"# Rules switched off\n\nThe first of {BOUND} seeds that breaks without each rule.\n\n{page}",
          HOME / "mutations.md")  # fmt: skip
    print(page, end="")
    return None not in caught.values()


def _blocks(seeds: int) -> int:
    return -(-seeds // BLOCK)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation.deep", description=__doc__)
    parser.add_argument("--seeds", type=int, default=OFTEN_FROM)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-mutations", action="store_true")
    given = parser.parse_args()
    ledger = Ledger(HOME / "progress.jsonl")
    try:
        jobs = [(f"seeds {block}", seeds_block, block) for block in range(_blocks(given.seeds))]
        seconds = carry_out(f"Seeds, in blocks of {BLOCK}", jobs, ledger, given.workers)
        held = judge_seeds(given.seeds, ledger)
        print(f"  took {seconds:.0f} s on {given.workers} workers")
        if not given.no_mutations:
            seconds = carry_out("Rules", [(f"rule {rule}", mutation, rule) for rule in RULES], ledger, given.workers)
            held = judge_mutations(ledger) and held
            print(f"  took {seconds:.0f} s on {given.workers} workers")
    except KeyboardInterrupt:
        print("\nInterrupted. The same command goes on where this one stopped.", file=sys.stderr)
        return 130
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
