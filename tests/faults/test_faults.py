"""The short form of the fault suite: every kind of fault on a real instance, nothing lost, nothing doubled."""

import json
from pathlib import Path

import pytest

from .run import FaultRun, Options

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("faults")]

# A machine that runs other tests beside this one is slow; the figure itself is checked by `make test-faults`.
_BUSY_RECOVERY_S = 60.0


async def test_nothing_is_lost_or_doubled_whatever_is_killed_paused_cut_or_repeated(tmp_path: Path) -> None:
    options = Options(seed=20, operations=300, faults=30, folder=tmp_path / "run", ttl_s=3.0, round_s=2.0)
    report = await FaultRun(options).run()
    told = json.dumps(report, indent=2)
    assert report["faults"] == 30, told
    assert report["operations"] >= 300, told
    wrong = [name for name, value in report.items() if name in _ZERO and value]
    assert not wrong, told
    assert report["recovery_p95_s"] <= _BUSY_RECOVERY_S, told


_ZERO = frozenset(
    {
        *("lost", "double_owned", "double_committed", "unexplained_overlap", "started_after_end"),
        *("committed_without_run", "out_of_order", "never_stopped", "contradictions", "projection"),
    }
)
