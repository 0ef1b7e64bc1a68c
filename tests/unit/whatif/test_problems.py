"""What is wrong with a scenario is told with its place, what was expected and what was found."""

from pathlib import Path
from typing import Any

import pytest

from landbridge_ranking.whatif.problems import ScenarioError
from landbridge_ranking.whatif.simulate import simulate

from .conftest import COMMON, Write, contract, operation

GOOD = [*COMMON, contract("site"), operation("w")]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (["0,100,x"], r"work\.csv:2: operation: expected one of the documents \(w\), found 'x'"),
        (["soon,100,w"], r"work\.csv:2: at: expected seconds, or a duration such as 15m; found 'soon'"),
        (["0,100,w", "0,-1,w"], r"work\.csv:3: duration: expected a number of at least 0, found '-1'"),
        (["0,nan,w"], r"work\.csv:2: duration: expected seconds"),
        ([], r"work\.csv: expected at least one row of work, found none"),
    ],
)
def test_a_row_is_named(scenario: Write, rows: list[str], told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        simulate(scenario(GOOD, rows))


def test_a_missing_column_is_named(scenario: Write) -> None:
    with pytest.raises(ScenarioError, match=r"work\.csv:1: expected the columns duration; found at, operation"):
        simulate(scenario(GOOD, ["0,w"], header="at,operation"))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"policies": [{"name": "x", "choosing": "best"}]}, r"spec\.policies\[0\]\.choosing"),
        ({"policies": [{"name": "x"}, {"name": "x"}]}, "expected names of their own, found x twice"),
        ({"trace": {"file": "no.csv"}}, r"no\.csv: expected a file"),
        ({"polcies": []}, "polcies"),
    ],
)
def test_a_scenario_is_checked_as_every_document(scenario: Write, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        simulate(scenario(GOOD, ["0,1,w"], **changes))


def test_all_problems_of_documents_are_told_together(scenario: Write) -> None:
    broken = [contract("site", clases={}), operation("w", comand=["run"])]
    with pytest.raises(ScenarioError) as told:
        simulate(scenario([*COMMON, *broken], ["0,1,w"]))
    assert "clases" in str(told.value)
    assert "comand" in str(told.value)


def test_a_scenario_without_environments_says_so(scenario: Write) -> None:
    with pytest.raises(ScenarioError, match="expected at least one EnvironmentContract, found none"):
        simulate(scenario([*COMMON, operation("w")], ["0,1,w"]))


def test_an_operation_that_cannot_be_submitted_is_told(scenario: Write) -> None:
    lost = operation("w", presets=["nowhere"])
    with pytest.raises(ScenarioError, match=r"work\.csv:2: operation w cannot be submitted: .*nowhere"):
        simulate(scenario([*COMMON, contract("site"), lost], ["0,1,w"]))


def test_a_missing_scenario_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"gone\.yaml: expected a file"):
        simulate(tmp_path / "gone.yaml")
