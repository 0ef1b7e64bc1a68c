"""A link is cut, with and without a NATS of the site's own: no gap, no effect twice, all reconciled soon."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from .cut import CutOptions, CutRun

pytestmark = pytest.mark.xdist_group("faults")

RECONCILED_S = 30.0
AFTER_RESTART_S = 60.0  # the broker begins to source again late after a restart of either side
CUT_S = float(os.environ.get("CUT", "300"))
FULL = 5000


async def judged(options: CutOptions, within_s: float) -> dict[str, Any]:
    report = await CutRun(options).run()
    told = json.dumps(report, indent=2)
    print(told)
    if folder := os.environ.get("LANDBRIDGE_TEST_REPORTS"):
        kind = "leaf" if options.leaf else "direct"
        Path(folder, f"cut-{kind}-{options.count}{options.restart and '-' + options.restart}.json").write_text(told)
    assert report["good"], told
    assert report["counts"]["ended_completed"] == options.count, told
    assert report["counts"]["ended_cancelled"] == options.count, told
    assert report["counts"]["runs"] == 2 * options.count, told
    assert report["reports_queued"] >= options.count, told
    assert report["commands_queued"] >= options.count, told
    assert report["reconciled_after_s"] <= within_s, told
    return report


@pytest.mark.timeout(240)
@pytest.mark.parametrize("leaf", [True, False], ids=["own-nats", "direct"])
async def test_a_cut_of_fifteen_seconds_leaves_no_gap_and_doubles_nothing(tmp_path: Path, leaf: bool) -> None:
    await judged(CutOptions(tmp_path, cut_s=15.0, count=500, ends_s=10.0, leaf=leaf), RECONCILED_S)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("leaf", [True, False], ids=["own-nats", "direct"])
async def test_five_thousand_orders_and_reports_wait_out_a_long_cut(tmp_path: Path, leaf: bool) -> None:
    ends_s = min(90.0, CUT_S * 0.8)
    await judged(CutOptions(tmp_path, cut_s=CUT_S, count=FULL, ends_s=ends_s, leaf=leaf), RECONCILED_S)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("restart", ["centre", "site"])
async def test_a_restart_during_the_cut_loses_nothing_either(tmp_path: Path, restart: str) -> None:
    cut_s = min(CUT_S, 120.0)
    options = CutOptions(tmp_path, cut_s=cut_s, count=FULL, ends_s=cut_s * 0.75, leaf=True, restart=restart)
    await judged(options, AFTER_RESTART_S)
