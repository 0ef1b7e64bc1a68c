"""Many operations while every service is killed twice: each acknowledged one ends once, a replay equals lineage."""

import json
from pathlib import Path

import pytest

from .volume import Volume, VolumeRun

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("faults")]


async def _run(folder: Path, processes: int, simulated: int) -> None:
    report = await VolumeRun(Volume(processes, simulated, folder)).run()
    text = json.dumps(report, indent=2)
    print(text)
    assert report["good"], text
    assert set(report["kills"].values()) == {2}, text
    assert report["counts"]["ended_completed"] == processes + simulated, text


async def test_every_acknowledged_operation_ends_once_while_all_services_are_killed_twice(tmp_path: Path) -> None:
    await _run(tmp_path, 60, 600)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_volume_through_processes_and_simulated_sites_survives_kills_of_everything(tmp_path: Path) -> None:
    await _run(tmp_path, 1_000, 20_000)
