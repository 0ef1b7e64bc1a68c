"""The instruments of the benchmarks measure what they say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.measure import fdatasync_ms, percentile, summary_ms, tree_of, usage
from support.wait import wait_until


@pytest.mark.parametrize(("percent", "expected"), [(50, 50), (95, 95), (99, 99), (100, 100), (1, 1)])
def test_percentiles_are_nearest_ranks(percent: float, expected: float) -> None:
    assert percentile([float(n) for n in range(1, 101)], percent) == expected


def test_few_values_have_percentiles_too() -> None:
    assert percentile([], 50) == 0.0
    assert percentile([7.0], 99) == 7.0
    assert summary_ms([0.002, 0.001, 0.003]) == {"count": 3, "p50": 2.0, "p95": 3.0, "p99": 3.0}


async def test_usage_counts_descendants() -> None:
    burn = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    run = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])\n"
    code = f"{run}print('done', flush=True)\ninput()\n"
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"done\n"
        assert usage(parent.pid).cpu_s >= 0.3
        assert usage(parent.pid).rss_mb > 1
        assert parent.pid in tree_of(os.getpid())
    finally:
        parent.communicate(b"\n")
    await wait_until(lambda: usage(parent.pid).cpu_s == 0.0, "an ended process counts nothing")


def test_the_disk_is_timed(tmp_path: Path) -> None:
    found = fdatasync_ms(tmp_path, writes=5)
    assert found["count"] == 5
    assert found["p99"] >= found["p50"] > 0
