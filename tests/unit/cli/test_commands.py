"""What commands print and how they end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.fake_api import FakeApi
from unit.cli.samples import OPERATION, PROJECT, QUEUE, row

from .conftest import Run

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
