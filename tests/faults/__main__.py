"""`python -m faults --seed 1 --operations 10000 --faults 500` (with tests/ on the path: see the Makefile).

State and results lie in build/faults/seed-N; a run that was interrupted goes on there. The report of the latest run is
build/faults/report.json. Exit code 0 only if nothing was lost, doubled or out of order and recovery was fast enough.
"""

import argparse
import asyncio
import json
import shutil
import sys
from pathlib import Path

from benchmarks.instance import ROOT

from .run import FaultRun, Options

FOLDER = ROOT / "build" / "faults"
_INTERRUPTED = 130


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--ttl", type=float, default=3.0, help="time to live of a lease in seconds")
    parser.add_argument("--again", action="store_true", help="begin from nothing, even if a run was interrupted")
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    folder = asked.folder or FOLDER / f"seed-{asked.seed}-{asked.operations}-{asked.faults}"
    if asked.again or (folder / "report.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
    options = Options(asked.seed, asked.operations, asked.faults, folder, asked.ttl, say=_say)
    try:
        report = asyncio.run(FaultRun(options).run())
    except KeyboardInterrupt:
        _say("interrupted; the same command goes on with the round that was under way, --again begins from nothing")
        return _INTERRUPTED
    text = json.dumps(report, indent=2) + "\n"
    for place in (folder / "report.json", FOLDER / "report.json"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    sys.stdout.write(text)
    return 0 if report["good"] else 1


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
