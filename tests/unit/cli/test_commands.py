"""What commands print and how they end."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.fake_api import Asked, FakeApi

from .conftest import Run

ID = "6f1c2d3e-0000-5000-8000-00000000000a"
OPERATION = """\
apiVersion: landbridge/v1
kind: Operation
metadata: {name: sums, project: analytics}
spec:
  type: job
  queue: batch
  command: [python3, sums.py]
  env: {LR: "0.1"}
  resources: {requests: {cpu: "1", memory: 256Mi}}
  lifecycle: {expectedDuration: 1m, recovery: {mode: never}}
"""
PROJECT = """\
apiVersion: landbridge/v1
kind: Project
metadata: {name: analytics}
spec: {defaultQueue: batch}
"""
QUEUE = """\
apiVersion: landbridge/v1
kind: Queue
metadata: {name: batch}
spec: {priority: 10}
"""


def row(phase: str = "running", **more: Any) -> dict[str, Any]:
    return {
        "operation": ID,
        "project": "analytics",
        "name": "sums",
        "queue": "batch",
        "phase": phase,
        "environment": "onprem-a",
        "attempt": 1,
        "acceptedAt": "2026-11-30T10:00:00Z",
        "conditions": [],
        **more,
    }


@pytest.fixture
def document(tmp_path: Path) -> str:
    (tmp_path / "sums.yaml").write_text(OPERATION)
    return "sums.yaml"


def accepting(api: FakeApi, final: dict[str, Any] | None = None) -> None:
    """The instance accepts a submission, which then stands as `final` says."""
    api["POST", "/v1/operations"] = (201, {"operation": ID, "phase": "accepted", "existing": False})
    api["GET", f"/v1/operations/{ID}"] = (200, final or row())
    events = [{"id": "1", "event": (final or row())["phase"], "opSeq": 2, "at": "2026-11-30T10:00:00Z", "data": {}}]
    api["GET", f"/v1/operations/{ID}/events"] = (200, {"items": events})


# -- starting ---------------------------------------------------------------------------------------------------------


def test_help_loads_nothing_but_the_framework() -> None:
    heavy = "{'rich', 'httpx2', 'pydantic', 'yaml', 'landbridge.domain', 'landbridge_embedded', 'nats', 'asyncio'}"
    code = f"import sys; import landbridge.cli.main; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_reading_loads_no_documents() -> None:
    code = (
        "import sys; from landbridge.cli import listing; assert listing.slug_of('operations') == 'operation'; "
        "print(sorted({'pydantic', 'landbridge.domain.documents', 'landbridge.schema'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_help_lists_every_command_with_its_purpose(run: Run) -> None:
    ran = run("--help")
    assert ran.code == 0
    for command in ("up", "down", "status", "doctor", "apply", "delete", "get", "validate", "submit", "explain"):
        assert f"\n  {command} " in ran.out
    assert "..." not in ran.out.partition("Commands:")[2]


def test_where_nothing_runs_the_way_out_is_told(run: Run) -> None:
    ran = run("get", "operations")
    assert ran.code == 6
    assert ran.out == ""
    assert "no Landbridge found" in ran.err
    assert "landbridge up" in ran.err


def test_an_unknown_kind_names_the_known_ones(run: Run, api: FakeApi) -> None:
    ran = run("get", "pods")
    assert ran.code == 2
    assert "'pods': not known" in ran.err
    assert "queue" in ran.err


# -- documents --------------------------------------------------------------------------------------------------------


def test_validate_needs_no_instance(run: Run, document: str) -> None:
    ran = run("validate", document)
    assert (ran.code, ran.out) == (0, "sums.yaml: Operation analytics/sums is valid\n")


def test_validate_tells_every_problem_with_its_place(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(OPERATION.replace("queue:", "queueu:").replace("memory: 256Mi", "memory: lots"))
    ran = run("validate", "bad.yaml")
    assert ran.code == 2
    assert "bad.yaml:6:3 spec.queueu: unknown field" in ran.err
    assert "spec.resources.requests.memory" in ran.err
    assert "2 problems found" in ran.err


def test_apply_sends_what_others_refer_to_first(run: Run, api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(f"{PROJECT}---\n{QUEUE}")
    api["POST", "/v1/documents"] = (200, {"version": 1})
    ran = run("apply", "all.yaml")
    assert ran.code == 0, ran.err
    assert [yaml.safe_load(asked.body)["kind"] for asked in api.asked] == ["Queue", "Project"]
    assert "queue batch applied, version 1\nproject analytics applied, version 1\n" in ran.out


def test_apply_sends_nothing_when_one_document_is_wrong(run: Run, api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(f"{QUEUE}---\n{PROJECT.replace('spec:', 'sepc:')}")
    ran = run("apply", "all.yaml")
    assert ran.code == 2
    assert api.asked == []


def test_apply_sends_operations_to_submit(run: Run, api: FakeApi, document: str) -> None:
    ran = run("apply", document)
    assert ran.code == 2
    assert "use `landbridge submit`" in ran.err


# -- submit -----------------------------------------------------------------------------------------------------------


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


# -- reading ----------------------------------------------------------------------------------------------------------


def test_lists_for_programs_have_whole_values_in_fixed_columns(run: Run, api: FakeApi) -> None:
    api["GET", "/v1/operations"] = (200, {"items": [row()], "cursor": ""})
    ran = run("get", "operations", "--phase", "running", "--limit", "5")
    head, line = ran.out.splitlines()
    assert head.split() == ["ID", "NAME", "PROJECT", "QUEUE", "PHASE", "ENVIRONMENT", "ATTEMPT", "AGE", "WHY"]
    assert line.split()[:7] == [ID, "sums", "analytics", "batch", "running", "onprem-a", "1"]
    assert "phase=running" in api.asked[0].query
    assert "\x1b" not in ran.out


def test_lists_as_json_are_what_the_instance_said(run: Run, api: FakeApi) -> None:
    api["GET", "/v1/operations"] = (200, {"items": [row()], "cursor": ""})
    assert json.loads(run("get", "ops", "-o", "json").out) == [row()]
    assert yaml.safe_load(run("get", "ops", "-o", "yaml").out) == [row()]


@pytest.mark.parametrize(
    ("kind", "path", "told"),
    [
        ("operations", "/v1/operations", "no operations yet; submit one"),
        ("environments", "/v1/environments", "no environments yet; register one"),
        ("presets", "/v1/documents/preset", "no preset documents yet; make one"),
    ],
)
def test_an_empty_list_says_what_to_do_beside_standard_output(
    run: Run, api: FakeApi, kind: str, path: str, told: str
) -> None:
    api["GET", path] = (200, {"items": [], "cursor": ""})
    ran = run("get", kind)
    assert (ran.code, ran.out) == (0, "")
    assert told in ran.err


EXPLANATION = {
    "operation": ID,
    "phase": "running",
    "round": 1,
    "decision": {"environment": "onprem-a", "route": "preferred", "at": "2026-11-30T10:00:00Z", "policyVersion": "3"},
    "waiting": None,
    "environments": [
        {
            "environment": "onprem-a",
            "contractVersion": 1,
            "eligible": True,
            "chosen": True,
            "score": 0.8125,
            "violations": [],
            "measurements": [
                {
                    "preference": "cost",
                    "value": 0.09,
                    "unit": "EUR/h",
                    "source": "contract",
                    "normalised": 0.5,
                    "weight": 2,
                },
                {"preference": "carbon", "value": None, "unknown": True, "normalised": 0.0, "weight": 1},
            ],
        },
        {
            "environment": "cloud-b",
            "contractVersion": 4,
            "eligible": False,
            "chosen": False,
            "score": None,
            "violations": [
                {"constraint": "jurisdictions", "kind": "never", "wanted": "EU", "found": "US"},
                {"constraint": "evidence", "kind": "misconfigured", "wanted": "proven within 1h", "found": "3h old"},
            ],
            "measurements": [],
        },
    ],
    "nearestMiss": None,
}


def explaining(api: FakeApi) -> None:
    api["GET", f"/v1/operations/{ID}/explanation"] = (200, EXPLANATION)
    api["GET", f"/v1/operations/{ID}"] = (200, row())


def test_explain_tells_each_rule_with_wanted_found_and_kind(run: Run, api: FakeApi) -> None:
    explaining(api)
    ran = run("explain", ID)
    assert ran.code == 0, ran.err
    assert "preferred: no environment ranked higher" in ran.out
    assert "jurisdictions: wanted EU, found US (never)" in ran.out
    assert "evidence: wanted proven within 1h, found 3h old (misconfigured)" in ran.out
    assert "0.812" in ran.out
    assert "0.09 EUR/h → 0.50" in ran.out
    assert "unknown → 0.00" in ran.out


@pytest.mark.parametrize("width", [80, 140])
def test_explain_fits_a_terminal(run: Run, api: FakeApi, on_a_terminal: Callable[[int], None], width: int) -> None:
    explaining(api)
    on_a_terminal(width)
    ran = run("explain", ID)
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= width
    assert sum(line.startswith("cloud-b") for line in lines) == 1
    assert "(misconfigured)" in ran.out.replace("\n", " ")


def test_events_are_listed_with_their_reasons(run: Run, api: FakeApi) -> None:
    data = {"phase": "retrying", "environment": "onprem-a", "attempt": 1, "reason": "exit-code", "message": "7"}
    items = [{"id": "1", "event": "retrying", "opSeq": 4, "at": "2026-11-30T10:00:00Z", "data": data}]
    api["GET", f"/v1/operations/{ID}/events"] = (200, {"items": items})
    ran = run("events", ID)
    assert "2026-11-30T10:00:00Z    4  retrying  onprem-a" in ran.out
    assert "exit-code: 7" in ran.out


def test_following_events_as_json_is_one_line_each(run: Run, api: FakeApi) -> None:
    items: list[dict[str, Any]] = [
        {"id": name, "event": name, "opSeq": 1, "at": "", "data": {}} for name in ("accepted", "completed")
    ]
    api["GET", f"/v1/operations/{ID}/events"] = (200, {"items": items})
    lines = run("events", ID, "--follow", "-o", "json").out.splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["accepted", "completed"]


def test_logs_are_read_to_their_end(run: Run, api: FakeApi) -> None:
    def logs(asked: Asked) -> tuple[int, Any]:
        if "offset=0" in asked.query:
            return 200, {"text": "one\n", "nextOffset": 4, "end": False}
        return 200, {"text": "two\n", "nextOffset": 8, "end": True}

    api["GET", f"/v1/operations/{ID}/logs"] = logs
    assert run("logs", ID).out == "one\ntwo\n"


def test_a_shortened_id_is_enough(run: Run, api: FakeApi) -> None:
    api["GET", "/v1/operations"] = (200, {"items": [row()], "cursor": ""})
    api["POST", f"/v1/operations/{ID}/cancel"] = (202, {})
    ran = run("cancel", "6f1c", "--reason", "wrong data")
    assert (ran.code, ran.out) == (0, f"{ID}  asked to stop\n")
    assert api.asked[-1].json == {"reason": "wrong data"}


# -- contexts ---------------------------------------------------------------------------------------------------------


def test_a_context_is_kept_private_and_used_where_nothing_else_is_named(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LANDBRIDGE_URL")
    (tmp_path / "token").write_text("remote-token\n")
    assert run("context", "add", "prod", api.url, "--token-file", "token").code == 0
    file = tmp_path / "config" / "landbridge" / "contexts.json"
    assert file.stat().st_mode & 0o777 == 0o600
    api["GET", "/v1/operations"] = (200, {"items": [row()], "cursor": ""})
    assert run("get", "operations").code == 0
    assert api.asked[-1].headers["authorization"] == "Bearer remote-token"
    listed = run("context", "list")
    assert "prod" in listed.out
    assert "remote-token" not in listed.out


def test_an_unknown_context_names_the_known_ones(run: Run) -> None:
    ran = run("get", "operations", "--context", "prod")
    assert ran.code == 2
    assert "context prod: not known (there are: none)" in ran.err


def test_a_directory_where_nothing_runs_any_more_is_told_apart(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "tokens").mkdir(parents=True)
    (data / "tokens" / "admin").write_text("t")
    (data / "state.json").write_text(json.dumps({"pid": 4711, "urls": {"dashboard": "http://127.0.0.1:1"}}))
    ran = run("get", "operations", "--data", str(data))
    assert ran.code == 6
    assert "process 4711 is gone" in ran.err
    assert f"landbridge up --data {data}" in ran.err
