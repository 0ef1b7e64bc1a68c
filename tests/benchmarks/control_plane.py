"""The control plane measured as a whole: `python -m tests.benchmarks.control_plane [--quick]`.

Everything runs as `landbridge up` starts it, each part a process of its own, NATS syncing always and Postgres with
fsync. Eight simulated environments (real dispatchers whose work only takes time) and one that starts real processes.
Writes build/bench/control-plane.json; every figure in it was measured in this run.
"""

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from . import decisions, phases
from .instance import ROOT, Instance
from .load import Load
from .measure import fdatasync_ms

OUTPUT = ROOT / "build" / "bench" / "control-plane.json"
SIMULATED = tuple(f"sim-{number}" for number in range(1, 9))
LOCAL = "local-1"
_FLOOR_RATE = 50.0
console = Console(stderr=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Show what is being measured, and afterwards how long it took."""
    started = time.perf_counter()
    with console.status(f"{text} …"):
        yield
    console.print(f"[dim]{time.perf_counter() - started:6.1f}s[/dim]  {text}")


def machine(folder: Path) -> dict[str, Any]:
    """Describe what it ran on, so that figures of different machines are not mixed."""
    model = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else ""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "cpu": model or platform.processor(),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "commit": commit.stdout.strip(),
        "load_before": round(os.getloadavg()[0], 2),
        "fdatasync_ms": fdatasync_ms(folder),
    }


async def measure_instance(folder: Path, sizes: phases.Sizes) -> dict[str, Any]:
    """Start an instance, measure it, stop it."""
    instance = Instance(folder)
    figures: dict[str, Any] = {}
    with step("first start on an empty directory"):
        cold = await instance.up()
    try:
        with step(f"{len(SIMULATED)} simulated environments and a local one join"):
            await instance.register(SIMULATED, executor="simulated")
            await instance.register([LOCAL], executor="process")
            await instance.grant()
        figures |= await _measure_load(instance, sizes)
    finally:
        await instance.down()
    with step("second start"):
        warm = await instance.up()
    await instance.down()
    figures["up_seconds"] = {"cold": round(cold, 2), "warm": round(warm, 2)}
    return figures


async def _measure_load(instance: Instance, sizes: phases.Sizes) -> dict[str, Any]:
    load = await Load.open(instance.state["natsUrl"], instance.creds)
    figures: dict[str, Any] = {}
    try:
        with step(f"warm-up, {sizes.warm_up} operations"):
            await phases.warm_up(load, sizes.warm_up)
        with step(f"latency at {_FLOOR_RATE:g} operations a second"):
            figures["latency_at_50"] = await phases.latencies(instance, load, _FLOOR_RATE, sizes.latency_s)
        with step(f"{sizes.sustained} operations as fast as they go"):
            found = await phases.sustained(instance, load, sizes.sustained)
            found["seconds_until_no_lag"] = round(await phases.caught_up(instance), 2)
            figures |= found
        half = max(figures["operations_per_second"] / 2, _FLOOR_RATE)
        with step(f"latency at {half:.0f} operations a second, half of the maximum"):
            figures["latency_at_half"] = await phases.latencies(instance, load, half, sizes.latency_s)
        with step(f"burst of {sizes.burst} submissions over NATS"):
            figures["submissions_per_second"] = round(await phases.burst(load, sizes.burst), 1)
        with step(f"single submissions over {sizes.http_connections} HTTP connections"):
            rate = await phases.http_singles(instance, load, sizes.http_s, sizes.http_connections)
            figures["http_single_submissions_per_second"] = round(rate, 1)
        with step(f"{sizes.processes} real processes"):
            figures["local_processes_per_second"] = round(await phases.processes(load, LOCAL, sizes.processes), 1)
        await phases.caught_up(instance)
    finally:
        await load.close()
    return figures


def measure_decisions(*, quick: bool) -> dict[str, Any]:
    """Measure the pure domain, alone on one core."""
    figures = {}
    for size in decisions.SIZES[: 2 if quick else None]:
        with step(f"decisions over {size} environments"):
            figures[str(size)] = decisions.measure(size)
    return figures


def show(figures: dict[str, Any]) -> None:
    """Print the main figures as a table."""
    table = Table(title="Control plane", show_header=False)
    for name in ("operations_per_second", "submissions_per_second", "http_single_submissions_per_second"):
        table.add_row(name, f"{figures[name]:,}")
    table.add_row("local_processes_per_second", f"{figures['local_processes_per_second']:,}")
    for at in ("latency_at_50", "latency_at_half"):
        for name in ("submit_ack_ms", "submit_to_running_ms", "submit_to_terminal_ms"):
            found = figures[at][name]
            table.add_row(f"{name} at {figures[at]['rate']:g}/s", f"{found['p50']} / {found['p95']} / {found['p99']}")
    for size, found in figures["decisions"].items():
        table.add_row(f"decisions_per_second, {size} environments", f"{found['decisions_per_second']:,}")
    table.add_row("cpu_us_per_operation", f"{figures['cpu_us_per_operation']['total']:,}")
    table.add_row("up_seconds", f"{figures['up_seconds']['cold']} cold, {figures['up_seconds']['warm']} warm")
    table.add_row("consumer_lag", str({name: lag for name, lag in figures["consumer_lag"].items() if lag} or "none"))
    Console().print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.control_plane")
    parser.add_argument("--quick", action="store_true", help="smaller load: a check that it works, not a figure")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    started = datetime.now(UTC)
    sizes = phases.QUICK if arguments.quick else phases.Sizes()
    with tempfile.TemporaryDirectory(prefix="landbridge-bench-") as folder:
        figures: dict[str, Any] = {"at": started.isoformat(timespec="seconds"), "quick": arguments.quick}
        figures["machine"] = machine(Path(folder))
        figures["decisions"] = measure_decisions(quick=arguments.quick)
        figures |= asyncio.run(measure_instance(Path(folder) / "data", sizes))
    figures["seconds"] = round((datetime.now(UTC) - started).total_seconds(), 1)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(figures, indent=2) + "\n")
    show(figures)
    console.print(f"written to {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
