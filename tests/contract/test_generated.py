"""The contracts are clean, compatible with what was published, and everything generated from them is current."""

import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

import generate_schema
from schemagen.model import Packages, read
from support.goldens import JSON_SCHEMAS, ROOT

BUF = Path(sys.executable).parent / "buf"


@pytest.fixture(scope="module")
def packages() -> Packages:
    return read(ROOT, BUF)


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_contracts_have_no_lint_findings() -> None:
    assert run(str(BUF), "lint").stdout == ""


def test_the_contracts_are_formatted() -> None:
    assert run(str(BUF), "format", "--diff").stdout == ""


def test_no_contract_breaks_what_is_on_main() -> None:
    if run("git", "cat-file", "-e", "main:proto/landbridge").returncode:
        pytest.skip("no earlier commit with contracts to compare with")
    done = run(str(BUF), "breaking", "--against", ".git#branch=main")
    assert done.stdout + done.stderr == ""


def test_a_breaking_change_is_noticed(tmp_path: Path) -> None:
    for name, field in (("old", "string kind = 1;"), ("new", "string sort = 1;")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "buf.yaml").write_text((ROOT / "buf.yaml").read_text().replace("path: proto", "path: ."))
        (tmp_path / name / "a.proto").write_text(f'syntax = "proto3";\npackage a.v1;\nmessage M {{ {field} }}\n')
    done = run(str(BUF), "breaking", "new", "--against", "old", cwd=tmp_path)
    assert done.returncode != 0
    assert "kind" in done.stdout


def test_generating_again_changes_nothing(packages: Packages) -> None:
    assert generate_schema.stale(generate_schema.outputs(packages), ROOT) == []


def test_something_stale_is_named(packages: Packages, tmp_path: Path) -> None:
    files = generate_schema.outputs(packages)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "docs/reference/events.md").write_text("old\n")
    (tmp_path / "libs/landbridge/schema/json/gone.json").write_text("{}\n")
    (tmp_path / "libs/landbridge/schema/wire/event_v1.py").unlink()
    found = generate_schema.stale(files, tmp_path)
    assert [line.partition(":")[0].rpartition("/")[2] for line in found] == ["gone.json", "events.md", "event_v1.py"]


@pytest.mark.parametrize("path", sorted(JSON_SCHEMAS.glob("*.json")), ids=lambda path: str(path.name))
def test_every_json_schema_is_a_schema(path: Path) -> None:
    import json

    Draft202012Validator.check_schema(json.loads(path.read_text()))


def test_every_rule_of_a_message_and_field_is_documented(packages: Packages) -> None:
    bare = [
        f"{package.name}.{message.name}.{field.name}"
        for package in packages.values()
        for message in package.messages.values()
        for field in message.fields
        if not field.comment
    ]
    assert bare == []
