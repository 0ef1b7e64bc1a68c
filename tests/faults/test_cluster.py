"""Three NATS servers: the leader of the stream of operations is killed under load, and nothing acknowledged is lost."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from .cluster import ClusterRun

pytestmark = pytest.mark.xdist_group("faults")


def judge(report: dict[str, Any], kills: int) -> None:
    told = json.dumps(report, indent=2)
    print(told)
    if folder := os.environ.get("LANDBRIDGE_TEST_REPORTS"):
        Path(folder, f"cluster-{kills}.json").write_text(told)
    assert report["kills"] == kills, told
    assert report["acknowledged"] > 0, told
    assert report["lost"] == 0, told
    assert report["told_twice"] == [], told
    assert report["ends_told"] >= report["acknowledged"], told
    for interval in report["between_kills"]:
        assert all(interval.values()), told


@pytest.mark.timeout(300)
async def test_two_leaders_die_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    judge(await ClusterRun(tmp_path, kills=2, every_s=16.0, rate=12.0).run(), 2)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_leader_dies_every_twenty_seconds_for_three_minutes(tmp_path: Path) -> None:
    judge(await ClusterRun(tmp_path, kills=9, every_s=20.0, rate=20.0).run(), 9)
