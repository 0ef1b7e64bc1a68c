"""The short form of the fault suite: every kind of fault on a real instance, nothing lost, nothing doubled."""

import asyncio
import json
from pathlib import Path

import pytest

from support.wait import wait_until

from .run import FaultRun, Options

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("faults")]

# A machine that runs other tests beside this one is slow; the figure itself is checked by `make test-faults`.
_BUSY_RECOVERY_S = 60.0


async def test_nothing_is_lost_or_doubled_whatever_is_killed_paused_cut_or_repeated(tmp_path: Path) -> None:
    options = Options(seed=20, operations=300, faults=30, folder=tmp_path / "run")
    report = await FaultRun(options).run()
    told = json.dumps(report, indent=2)
    assert report["faults"] == 30, told
    assert report["operations"] >= 300, told
    assert not [name for name in _ZERO if report[name]], told
    assert report["recovery_p95_s"] <= _BUSY_RECOVERY_S, told


async def test_an_interrupted_run_goes_on_with_the_round_that_was_under_way(tmp_path: Path) -> None:
    options = Options(seed=2, operations=60, faults=9, folder=tmp_path / "run")
    first = FaultRun(options)
    running = asyncio.create_task(first.run())
    await wait_until(
        lambda: first.progress.rounds >= 1 or running.done(), "a round is over", timeout_s=240, every_s=0.05
    )
    await asyncio.sleep(1.0)  # into the next one
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    done = first.progress.rounds

    second = FaultRun(options)
    assert second.progress.rounds == done
    report = await second.run()

    told = json.dumps(report, indent=2)
    assert report["sessions"] == 2, told
    assert report["faults"] == 9, told
    assert report["operations"] >= 60, told
    assert not [name for name in _ZERO if report[name]], told


_ZERO = frozenset(
    {
        *("lost", "double_owned", "double_committed", "unexplained_overlap", "started_after_end"),
        *("committed_without_run", "out_of_order", "never_stopped", "contradictions", "projection"),
        *("unrecorded_starts", "dead_letters"),
    }
)
