"""`env diff` and `env compare`."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.deciding import contract_document
from support.fake_api import FakeApi
from unit.cli.conftest import Run


def an_environment(
    api: FakeApi, name: str, *versions: dict[str, Any], claims: list[dict[str, Any]] | None = None
) -> None:
    listed = [
        {"version": number, "phase": "active", "document": json.dumps(contract_document(name, number, **spec))}
        for number, spec in enumerate(versions, 1)
    ]
    body = {"environment": name, "versions": listed, "claims": claims or [], "evidenceContractVersion": len(listed)}
    api["GET", f"/v1/environments/{name}"] = (200, body)


def proven(claim: str) -> dict[str, Any]:
    at = datetime.now(UTC)
    times = {"at": at.isoformat(), "expires": (at + timedelta(hours=1)).isoformat()}
    return {"claim": claim, "result": "proven", "probe": "p@1", **times}


def test_the_newest_version_is_compared_with_the_one_before(api: FakeApi, run: Run) -> None:
    an_environment(api, "onprem-a", {}, {"classes": {"cpu-general": {"cpu": "32"}}}, {"workloads": ["job", "service"]})
    ran = run("env", "diff", "onprem-a", "1", "2")
    assert ran.code == 0
    assert ran.out.splitlines()[1].split() == ["classes.cpu-general.cpu", "64", "32"]
    assert "To be proven again: classes.cpu-general" in ran.out
    ran = run("env", "diff", "onprem-a")
    assert "classes.cpu-general.cpu" in ran.out
    assert "workloads" in ran.out
    found = json.loads(run("env", "diff", "onprem-a", "2", "3", "-o", "json").out)
    assert (found["was"], found["becomes"]) == ("version 2", "version 3")


def test_versions_that_there_are_not_are_named_with_those_that_there_are(api: FakeApi, run: Run) -> None:
    an_environment(api, "onprem-a", {})
    ran = run("env", "diff", "onprem-a", "1", "7")
    assert ran.code == 2
    assert "has the versions 1; expected one of them, found 7" in ran.err
    assert "nothing to compare 1 with" in run("env", "diff", "onprem-a").err


def test_a_contract_is_compared_before_it_is_registered(api: FakeApi, run: Run, tmp_path: Path) -> None:
    an_environment(api, "onprem-a", {})
    path = tmp_path / "contract.yaml"
    text = Path(__file__).parents[3].joinpath("examples/environments/onprem-a.yaml").read_text()
    path.write_text(text)
    ran = run("env", "diff", "onprem-a", "--file", str(path))
    assert ran.code == 0
    assert "connections.models" in ran.out
    path.write_text(text.replace("name: onprem-a", "name: other"))
    assert "expected the EnvironmentContract of onprem-a" in run("env", "diff", "onprem-a", "--file", str(path)).err


@pytest.fixture
def pair(api: FakeApi) -> None:
    strict = {"boundaries": {"network": {"default": "deny"}}}
    an_environment(api, "onprem-a", strict, claims=[proven("boundaries.network"), proven("runtime")])
    an_environment(api, "cloud-b", {**strict, "location": {"jurisdictions": ["US"]}}, claims=[proven("runtime")])


def test_controls_are_compared_one_by_one_with_what_is_proven(run: Run, pair: None) -> None:
    ran = run("env", "compare", "onprem-a", "cloud-b")
    assert ran.code == 0
    [line] = [line for line in ran.out.splitlines() if line.startswith("default-deny-egress")]
    assert "in force, proven (until" in line
    assert line.endswith("in force, not probed  differs")
    assert "jurisdictions" in ran.out
    assert "executor" not in ran.out
    assert "--all shows them" in ran.out
    assert "executor" in run("env", "compare", "onprem-a", "cloud-b", "--all").out


def test_programs_get_every_row(run: Run, pair: None) -> None:
    found = json.loads(run("env", "compare", "onprem-a", "cloud-b", "-o", "json").out)
    assert found["same"] is False
    row = next(row for row in found["rows"] if row["name"] == "default-deny-egress")
    assert [side["proof"] for side in row["sides"]] == ["proven", "not probed"]
