"""`import`: the operation where it is wanted, the report where people read it, an exit code that programs can use."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from unit.cli.conftest import Run

TASK = """\
name: fit
resources: {accelerators: "H100:4", region: eu-west-1, use_spot: false}
envs: {LR: 0.1}
run: python fit.py
"""
ANSWERS = ("--map", "H100=gpu-80gb", "--project", "coast", "--set", "lifecycle.timeout=2h")


@pytest.fixture(autouse=True)
def _file() -> None:
    Path("fit.yaml").write_text(TASK)


def test_the_operation_goes_to_standard_output_and_the_report_beside_it(run: Run) -> None:
    ran = run("import", "fit.yaml")

    assert ran.code == 2
    assert yaml.safe_load(ran.out)["spec"]["resources"]["accelerator"] == {"count": 4}
    lines = ran.err.splitlines()
    assert lines[0] == "fit.yaml: a SkyPilot task as operation fit"
    assert lines[1] == "4 mapped, 2 for you to look at, 1 left out; 2 to add before it is valid"
    assert "  metadata.project" in lines
    assert "      --map H100=NAME" in lines
    assert any("resources.use_spot (false)" in line for line in lines)
    assert lines[-1].startswith("Next: add what is missing")


def test_with_every_answer_it_is_valid_and_can_be_submitted(run: Run) -> None:
    ran = run("import", "fit.yaml", "--out", "op.yaml", *ANSWERS)

    assert (ran.code, ran.err) == (0, "")
    assert "; valid" in ran.out.splitlines()[1]
    assert ran.out.splitlines()[-1] == "Next: landbridge render op.yaml, then landbridge submit op.yaml"
    assert run("validate", "op.yaml").code == 0
    assert yaml.safe_load(Path("op.yaml").read_text())["spec"]["lifecycle"] == {"timeout": "2h"}


def test_programs_get_everything(run: Run) -> None:
    found = json.loads(run("import", "fit.yaml", "-o", "json", *ANSWERS).out)
    same = yaml.safe_load(run("import", "fit.yaml", "-o", "yaml", "--from", "skypilot", *ANSWERS).out)

    assert found == same
    assert found["valid"] is True
    assert {item["from"] for item in found["mapped"]} == {"name", "envs.LR", "run", "resources.accelerators"}
    assert {(item["from"], item["why"]) for item in found["unmapped"]} == {
        ("resources.region", "needs-a-decision"),
        ("resources.use_spot", "not-needed"),
    }


def test_what_cannot_be_read_is_told_with_its_place(run: Run) -> None:
    Path("bad.yaml").write_text("run: x\nrun: y\n")
    Path("unclear.yaml").write_text("a: b\n")

    assert run("import", "bad.yaml").err.splitlines()[1].startswith("bad.yaml:2:1 run: duplicate key")
    assert "--from polyaxon|skypilot|dstack|kubernetes-job" in run("import", "unclear.yaml").err
    assert run("import", "none.yaml").code == 2
    assert "expected FOUND=NAME" in run("import", "fit.yaml", "--map", "H100").err


def test_a_name_that_nothing_asks_for_is_told(run: Run) -> None:
    assert "--map H200: nothing in the file is called so" in run("import", "fit.yaml", "--map", "H200=x").err


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_report_fits_the_terminal(run: Run, on_a_terminal: Callable[[int], None], width: int) -> None:
    on_a_terminal(width)
    ran = run("import", "fit.yaml", "--out", "op.yaml")

    assert max(len(line) for line in ran.out.splitlines()) <= width
