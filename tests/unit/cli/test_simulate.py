"""`landbridge simulate` on the example that comes with the project."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from landbridge.cli.main import app

EXAMPLE = Path(__file__).parents[3] / "examples" / "simulation" / "two-sites" / "scenario.yaml"
POLICIES = ["as-declared", "cheapest", "first-fit", "random"]


def test_the_example_is_compared_in_tables(tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"
    found = CliRunner().invoke(app, ["simulate", str(EXAMPLE), "--plot", str(picture)])
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[2].split()[:4] == ["POLICY", "PLACED", "WAIT", "MEAN"]
    assert [line.split()[0] for line in lines[3:7]] == POLICIES
    assert picture.read_text().startswith("<svg")


def test_json_has_every_figure(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["simulate", str(EXAMPLE), "-o", "json"])
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert [policy["name"] for policy in answer["policies"]] == POLICIES
    for policy in answer["policies"]:
        assert policy["placed"] == policy["ended"] == answer["operations"]
        assert policy["limitsExceeded"] == []
        assert set(policy["waitSecondsByQueue"]) == {"batch", "training"}


def test_what_is_wrong_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text("kind: Scenario\n")
    found = CliRunner().invoke(app, ["simulate", str(file)])
    assert found.exit_code != 0
    from landbridge.cli.exits import CliError

    assert isinstance(found.exception, CliError)
    assert found.exception.code == 2
    assert "spec" in str(found.exception)
