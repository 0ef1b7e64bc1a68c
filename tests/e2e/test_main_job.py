"""The main job as a user does it: submit, explain, get, logs, outputs, on a real instance with real processes."""

import json
from pathlib import Path

import pytest

from fixtures.instance import EXAMPLES, Instance

pytestmark = pytest.mark.xdist_group("instance")

OPERATIONS = sorted((EXAMPLES / "operations").glob("*.yaml"))
EXPECTED = {
    "churn-train": ("completed", "onprem-a"),
    "churn-evaluate": ("completed", "onprem-a"),
    "sales-summary": ("completed", "cloud-b"),
    "residents-report": ("completed", "onprem-a"),
    "foundation-train": ("unplaceable", ""),
    "flaky-import": ("completed", ""),
}


@pytest.fixture(scope="module")
def submitted(instance: Instance) -> dict[str, str]:
    """Ids by name, after all examples have come to their outcome."""
    done = instance.run("submit", *map(str, OPERATIONS), "--wait", "-o", "json", check=3)
    results = json.loads(done.stdout)
    names = {item["operation"]: instance.json("get", "operation", item["operation"])["name"] for item in results}
    for item in results:
        outcome, environment = EXPECTED[names[item["operation"]]]
        found = "unplaceable" if item["unplaceable"] else item["phase"]
        assert found == outcome, item
        assert not environment or item["environment"] == environment, item
    assert sorted(names.values()) == sorted(EXPECTED)
    return {name: operation for operation, name in names.items()}


def test_explain_names_every_environment_with_rules_and_scores(instance: Instance, submitted: dict[str, str]) -> None:
    found = instance.json("explain", submitted["residents-report"])
    by_name = {each["environment"]: each for each in found["environments"]}
    assert set(by_name) == {"onprem-a", "cloud-b"}
    assert by_name["onprem-a"]["chosen"]
    assert {item["preference"] for item in by_name["onprem-a"]["measurements"]} >= {
        "queue-delay",
        "transfer-time",
        "performance",
        "cost",
        "reliability",
        "carbon",
    }
    for item in by_name["onprem-a"]["measurements"]:
        assert item["source"]
        assert item["unit"]
        assert item["weight"] >= 0
    broken = by_name["cloud-b"]["violations"]
    assert broken
    for item in broken:
        assert item["constraint"]
        assert item["wanted"]
        assert item["found"]
        assert item["kind"] in ("never", "not-now", "misconfigured")
    assert by_name["cloud-b"]["contractVersion"] == 1
    assert found["decision"]["route"] == "preferred"


def test_unplaceable_work_says_what_is_missing_where(instance: Instance, submitted: dict[str, str]) -> None:
    found = instance.json("explain", submitted["foundation-train"])
    assert found["waiting"]["condition"] == "unplaceable"
    assert found["nearestMiss"]["violations"]
    assert not any(each["eligible"] for each in found["environments"])
    text = instance.run("explain", submitted["foundation-train"]).stdout
    assert "gpu-80gb" in text


def test_logs_and_outputs_come_from_the_environment(instance: Instance, submitted: dict[str, str]) -> None:
    assert "auc" in instance.run("logs", submitted["churn-train"]).stdout
    assert "model" in instance.run("outputs", submitted["churn-train"]).stdout


def test_retried_work_has_two_attempts_and_the_first_says_why_it_failed(
    instance: Instance, submitted: dict[str, str]
) -> None:
    found = instance.json("get", "operation", submitted["flaky-import"])
    assert [each["attempt"] for each in found["attempts"]] == [1, 2]
    assert found["attempts"][0]["exitCode"] == 1
    assert found["attempts"][1].get("exitCode", 0) == 0


def test_the_resolved_context_says_what_ran(instance: Instance, submitted: dict[str, str]) -> None:
    last = instance.json("get", "operation", submitted["churn-train"])["attempts"][-1]
    resolved = last["resolved"]
    assert resolved["principal"]
    assert resolved["host"]
    assert resolved["contractVersion"] == 1
    assert set(resolved["connections"]) >= {"workloads", "churn-events", "models"}
    assert last["metrics"]["auc"] >= 0.7
    assert all(item["met"] for item in last["acceptance"])


def test_a_misspelt_field_is_refused_with_line_and_suggestion(instance: Instance, tmp_path: Path) -> None:
    text = (EXAMPLES / "operations" / "3-sales-summary.yaml").read_text().replace("memory: 512Mi", "memroy: 512Mi")
    file = tmp_path / "broken.yaml"
    file.write_text(text)
    done = instance.run("submit", str(file), check=2)
    told = done.stdout + done.stderr
    assert "memroy" in told
    assert "memory" in told
    assert "broken.yaml:" in told


def test_an_environment_proves_all_that_it_claims_when_it_is_asked_to(instance: Instance) -> None:
    done = instance.run("env", "verify", "onprem-a", "--suite", "full", "--wait", "--timeout", "100s")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["PROBE", "RESULT", "FOUND", "HOLDS", "FOR", "COST"]
    [counted] = [line for line in lines if line.startswith("environment onprem-a: all ")]
    assert counted == f"environment onprem-a: all {len([line for line in lines if ' proven ' in line])} probes proven"
    assert any(line.startswith("lifecycle.self-stop@1") for line in lines)
