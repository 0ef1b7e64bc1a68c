"""Small instruments: percentiles, processor time and memory of processes, the disk's synchronisation time."""

import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

PERCENTILES = (50, 95, 99)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of an ascending sequence; 0 for none."""
    if not ordered:
        return 0.0
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]


def summary_ms(seconds: Iterable[float]) -> dict[str, float]:
    """Return count and percentiles in milliseconds."""
    ordered = sorted(seconds)
    figures = {f"p{percent}": round(percentile(ordered, percent) * 1000, 3) for percent in PERCENTILES}
    return {"count": len(ordered), **figures}


_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds and resident megabytes (shared pages counted once for each process)."""

    cpu_s: float
    rss_mb: float


def usage(pid: int) -> Usage:
    """Return what a process and all its descendants used so far, ended children included; zeros if it is gone."""
    cpu = rss = 0.0
    for member in tree_of(pid):
        try:
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            pages = int(Path(f"/proc/{member}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        # utime, stime, and those of children that ended and were waited for
        cpu += sum(int(field) for field in fields[11:15]) / _TICKS
        rss += pages * _PAGE / 1e6
    return Usage(cpu, rss)


def tree_of(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found, waiting = [], [pid]
    while waiting:
        member = waiting.pop()
        found.append(member)
        for children in Path(f"/proc/{member}/task").glob("*/children"):
            try:
                waiting += [int(child) for child in children.read_text().split()]
            except OSError:
                continue
    return found


def fdatasync_ms(folder: Path, *, writes: int = 200, size: int = 512) -> dict[str, float]:
    """Append `size` bytes and synchronise, `writes` times; return count and percentiles in milliseconds."""
    taken: list[float] = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        block = os.urandom(size)
        for _ in range(writes):
            os.write(file.fileno(), block)
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - started)
    return summary_ms(taken)
