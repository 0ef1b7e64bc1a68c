"""The centre is gone for three leases: what goes on is adopted, what stops itself stops in time and moves only then."""

import json
from pathlib import Path

import pytest

from .outage import Outage, OutageRun

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("faults")]


async def test_an_outage_of_the_centre_loses_nothing_and_moves_only_what_has_stopped(tmp_path: Path) -> None:
    report = await OutageRun(Outage(42, tmp_path / "run", ttl_s=3.0)).run()
    assert (report["self_stopped"], report["adopted"]) == (28, 14), report


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_five_hundred_operations_survive_an_outage_of_the_centre(tmp_path: Path) -> None:
    """With leases as they are by default; run by `make test-outage`."""
    report = await OutageRun(Outage(500, tmp_path / "run", ttl_s=30.0, run_s=240.0)).run()
    print(json.dumps(report, indent=2))
    assert report["self_stopped"] + report["adopted"] == 500, report
