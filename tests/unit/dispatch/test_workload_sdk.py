"""What a program that runs under Landbridge calls."""

import json
import math
from pathlib import Path

import pytest

from landbridge.client import workload
from landbridge_dispatch.executors.local import evidence


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LANDBRIDGE_CHECKPOINT_DIR", str(tmp_path))
    monkeypatch.setenv("LANDBRIDGE_METRICS", str(tmp_path / "metrics.jsonl"))
    monkeypatch.setenv("LANDBRIDGE_ATTEMPT", "2")
    return tmp_path


def test_a_logged_metric_is_what_the_environment_reads(place: Path) -> None:
    workload.log_metric("auc", 0.5, step=1)
    workload.log_metric("auc", 0.75, step=2)
    assert evidence.read_metrics(place / "metrics.jsonl") == {"auc": 0.75}


def test_a_metric_that_is_no_number_is_refused(place: Path) -> None:
    with pytest.raises(ValueError, match="finite"):
        workload.log_metric("auc", math.nan)


def test_a_sealed_checkpoint_holds_its_files_and_is_what_the_environment_finds(place: Path) -> None:
    (place / "weights").write_text("abc")
    sealed = workload.seal_checkpoint(["weights"], step=20)
    assert sealed is not None
    (place / "weights").write_text("the next ones")
    assert (sealed / "weights").read_text() == "abc"
    manifest = json.loads((sealed / "manifest.json").read_text())
    assert manifest["files"]["weights"]["bytes"] == 3
    assert (manifest["attempt"], manifest["step"]) == (2, 20)
    newest = evidence.newest_checkpoint(place)
    assert newest is not None
    assert newest[0] == sealed.name


def test_only_the_newest_checkpoints_are_kept(place: Path) -> None:
    made = []
    for step in range(4):
        (place / "weights").write_text(str(step))
        made.append(workload.seal_checkpoint(["weights"], step=step))
    assert [path.exists() for path in made if path] == [False, False, True, True]


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", ""])
def test_nothing_outside_the_directory_is_sealed(place: Path, name: str) -> None:
    with pytest.raises(ValueError, match="below"):
        workload.seal_checkpoint([name])
    assert not list(place.glob("sealed-*"))


def test_a_missing_file_seals_nothing(place: Path) -> None:
    with pytest.raises(OSError, match="absent"):
        workload.seal_checkpoint(["absent"])
    assert evidence.newest_checkpoint(place) is None


def test_outside_landbridge_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("METRICS", "CHECKPOINT_DIR", "CHECKPOINT_REQUEST", "RESUME_FROM"):
        monkeypatch.delenv(f"LANDBRIDGE_{name}", raising=False)
    workload.log_metric("auc", 1.0)
    assert workload.seal_checkpoint(["weights"]) is None
    assert workload.resume_directory() is None
    assert not workload.checkpoint_requested()
