"""`submit`: what is sent, what the command line changes, how waiting ends."""

import json
from typing import Any

import pytest

from support.fake_api import Asked, FakeApi
from unit.cli.samples import ID, OPERATION, accepting, row

from .conftest import Run


def test_submit_sends_the_bytes_of_the_file_and_prints_id_and_key(run: Run, api: FakeApi, document: str) -> None:
    accepting(api)
    ran = run("submit", document, "--idempotency-key", "k-1")
    [asked] = api.asked
    assert asked.body == OPERATION.encode()
    assert asked.headers["idempotency-key"] == "k-1"
    assert asked.headers["authorization"] == "Bearer token-of-a-test"
    assert (ran.code, ran.out) == (0, f"{ID}  accepted, idempotency key k-1\n")


def test_the_command_line_wins_over_the_file(run: Run, api: FakeApi, document: str) -> None:
    accepting(api)
    ran = run(
        *("submit", document, "--project", "retail", "--queue", "training", "--preset", "overnight@2"),
        *("--set", "LR=0.5", "--set", "resources.requests.cpu=4", "--set", "lifecycle.retries.limit=3"),
        *("--environment", "onprem-a"),
    )
    assert ran.code == 0, ran.err
    sent = api.asked[0].json
    assert sent["metadata"]["project"] == "retail"
    spec = sent["spec"]
    assert (spec["queue"], spec["presets"]) == ("training", ["overnight@2"])
    assert spec["env"] == {"LR": "0.5"}
    assert spec["resources"]["requests"]["memory"] == "256Mi"
    assert spec["lifecycle"]["retries"] == {"limit": 3}
    assert spec["constraints"]["environments"]["allow"] == ["onprem-a"]


@pytest.mark.parametrize(
    ("setting", "told"),
    [("LR", "expected KEY=VALUE"), ("resource.cpu=1", "spec has no field 'resource'"), ("a-b=1", "a variable's name")],
)
def test_a_setting_that_means_nothing_is_refused(
    run: Run, api: FakeApi, document: str, setting: str, told: str
) -> None:
    ran = run("submit", document, "--set", setting)
    assert ran.code == 2
    assert told in ran.err
    assert api.asked == []


def test_one_key_does_not_fit_two_operations(run: Run, api: FakeApi, document: str) -> None:
    ran = run("submit", document, document, "--idempotency-key", "k")
    assert ran.code == 2
    assert "expected one operation, found 2" in ran.err


@pytest.mark.parametrize(
    ("final", "code", "told"),
    [
        (row("completed"), 0, "completed in onprem-a"),
        (row("failed", reason="exit-code", message="it ended with 7"), 1, "exit-code: it ended with 7"),
        (row("cancelled"), 4, "cancelled"),
        (row("queued", environment="", conditions=[{"type": "unplaceable"}]), 3, "landbridge explain 6f1c2d3e"),
    ],
    ids=["completed", "failed", "cancelled", "unplaceable"],
)
def test_waiting_ends_with_the_code_of_the_outcome(
    run: Run, api: FakeApi, document: str, final: dict[str, Any], code: int, told: str
) -> None:
    accepting(api, final)
    ran = run("submit", document, "--wait")
    assert ran.code == code
    assert told in ran.out


def test_waiting_too_long_is_code_5(run: Run, api: FakeApi, document: str) -> None:
    accepting(api, row("running"))
    ran = run("submit", document, "--wait", "--timeout", "200ms")
    assert ran.code == 5
    assert "still running after 0.2 s; it goes on" in ran.err


def test_a_refused_submission_is_code_2_with_every_problem(run: Run, api: FakeApi, document: str) -> None:
    problem = {"path": "spec.queue", "code": "unknown", "message": "no queue batch", "suggestion": "there is training"}
    api["POST", "/v1/operations"] = (422, {"title": "Refused", "problems": [problem]})
    ran = run("submit", document)
    assert ran.code == 2
    assert "spec.queue: no queue batch; there is training" in ran.err


def test_an_instance_that_does_not_answer_is_code_6(run: Run, document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("landbridge.cli.running.RETRY_S", 0.1)
    ran = run("submit", document)
    assert ran.code == 6
    assert "http://127.0.0.1:1: no answer" in ran.err


def test_several_are_submitted_together(run: Run, api: FakeApi, document: str) -> None:
    def bulk(asked: Asked) -> tuple[int, Any]:
        first, _ = asked.json["items"]
        assert first["document"] == OPERATION
        refused = {"status": 422, "title": "Refused", "problems": [{"path": "spec", "message": "no"}]}
        return 200, {"items": [{"operation": ID, "phase": "accepted", "status": 201}, refused]}

    api["POST", "/v1/operations:bulk"] = bulk
    ran = run("submit", document, document)
    assert ran.code == 2
    assert ID in ran.out
    assert "refused: Refused\n  spec: no" in ran.err


def test_json_of_several_submissions_is_one_list(run: Run, api: FakeApi, document: str) -> None:
    accepting(api, row("completed"))
    item = {"operation": ID, "phase": "accepted", "status": 201}
    api["POST", "/v1/operations:bulk"] = (200, {"items": [item, item]})
    ran = run("submit", document, document, "--wait", "-o", "json")
    assert [found["phase"] for found in json.loads(ran.out)] == ["completed", "completed"]


def test_json_of_a_submission_is_one_value(run: Run, api: FakeApi, document: str) -> None:
    accepting(api, row("completed"))
    ran = run("submit", document, "--wait", "-o", "json")
    assert json.loads(ran.out)["phase"] == "completed"
    assert ran.err == ""
