"""`render`: what is shown is what is submitted, and every value says where it comes from."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from landbridge.cli.annotated import document_text
from support.fake_api import FakeApi
from unit.cli.conftest import Run

OPERATION = """\
apiVersion: landbridge/v1
kind: Operation
metadata: {name: sweep, project: coast}
spec:
  component: fit
  presets: [night@3]
  parameters: {depth: "12"}
  env: {NOTE: "two\\nlines", TZ: CET}
"""
CATALOGUE = """\
apiVersion: landbridge/v1
kind: Project
metadata: {name: coast}
spec: {defaultQueue: batch, defaults: {presets: [base], identity: fitter}}
---
apiVersion: landbridge/v1
kind: Queue
metadata: {name: batch}
spec: {queueTimeout: 2h}
---
apiVersion: landbridge/v1
kind: Preset
metadata: {name: base, version: 1}
spec: {patch: {env: {TZ: UTC, CACHE: none}}}
---
apiVersion: landbridge/v1
kind: Preset
metadata: {name: night, version: 3}
spec: {patch: {lifecycle: {timeout: 12h}}, environments: {quay: {env: {CACHE: /var/cache, TZ: never}}}}
---
apiVersion: landbridge/v1
kind: Component
metadata: {name: fit, version: 4}
spec:
  parameters: {depth: {type: integer}}
  operation: {command: [fit, "--depth=$(parameters.depth)"]}
"""


@pytest.fixture(autouse=True)
def _files() -> None:
    Path("op.yaml").write_text(OPERATION)
    Path("catalogue.yaml").write_text(CATALOGUE)


def test_each_value_says_its_origin_and_without_the_remarks_it_is_the_operation(run: Run) -> None:
    shown = run("render", "op.yaml", "--with", "catalogue.yaml")
    told = json.loads(run("render", "op.yaml", "--with", "catalogue.yaml", "-o", "json").out)

    assert shown.code == 0
    assert yaml.safe_load(shown.out) == told["effective"]
    remarks = {
        line.split("#")[0].strip(): line.split("#")[1].strip() for line in shown.out.splitlines()[1:] if "#" in line
    }
    assert remarks == {
        "apiVersion: landbridge/v1": "operation",
        "kind: Operation": "operation",
        "name: sweep": "operation",
        "project: coast": "operation",
        "component: fit@4": "operation",
        "presets: [base@1, night@3]": "project coast and operation",
        "depth: '12'": "operation",
        "NOTE: |-": "operation",
        "TZ: CET": "operation",
        "timeout: 12h": "preset night@3",
        "queueTimeout: 2h": "queue batch",
        "command: [fit, --depth=12]": "component fit@4",
        "CACHE: none": "preset base@1",
        "identity: fitter": "project coast",
        "type: job": "default",
        "queue: batch": "project coast",
        "CACHE: /var/cache": "preset night@3",
    }
    assert told["provenance"]["environmentSettings.quay.env.CACHE"] == "preset night@3"


def test_at_an_environment_its_settings_hold_and_the_operation_s_own_variables_win(run: Run) -> None:
    told = json.loads(run("render", "op.yaml", "--with", "catalogue.yaml", "--at", "quay", "-o", "json").out)
    other = run("render", "op.yaml", "--with", "catalogue.yaml", "--at", "qay")

    assert told["effective"]["spec"]["env"] == {"NOTE": "two\nlines", "TZ": "CET", "CACHE": "/var/cache"}
    assert told["provenance"]["spec.env.CACHE"] == "preset night@3 at quay"
    assert "environmentSettings" not in told["effective"]
    assert "CACHE: none" in other.out
    assert other.err == 'presets set nothing for qay; did you mean "quay"?\n'


def test_what_the_command_line_changes_is_applied_first(run: Run) -> None:
    arguments = ("--set", "depth=7", "--set", "lifecycle.timeout=1h", "--preset", "base")
    told = json.loads(run("render", "op.yaml", "--with", "catalogue.yaml", *arguments, "-o", "json").out)

    assert told["effective"]["spec"]["command"] == ["fit", "--depth=7"]
    assert told["effective"]["spec"]["lifecycle"]["timeout"] == "1h"
    assert told["effective"]["spec"]["presets"] == ["base@1", "night@3"]


def test_problems_have_the_line_of_the_file_also_in_the_second_document(run: Run) -> None:
    bad = OPERATION.replace("night@3", "nigth").replace('"12"', "deep")
    Path("op.yaml").write_text(f"{OPERATION}---\n{bad}")
    ran = run("render", "op.yaml", "--with", "catalogue.yaml")

    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.splitlines()[1:] == [
        'op.yaml:15:13 spec.presets[0]: there is no preset nigth; did you mean "night"?',
        'op.yaml:16:23 spec.parameters.depth: expected a whole number, found "deep"; write it as 8',
    ]


def test_an_instance_is_asked_unless_files_are_named(run: Run, api: FakeApi) -> None:
    effective = {"kind": "Operation", "spec": {"env": {"A": "1"}}}
    answer: dict[str, Any] = {"effective": effective, "provenance": {"kind": "operation", "spec.env.A": "preset p@1"}}
    problem = {"path": "spec.queue", "message": "there is no queue x", "suggestion": "", "line": 6, "column": 3}
    api["POST", "/v1/validate"] = lambda asked: (
        200,
        {"problems": [problem]} if b"nightly" in asked.body else {"problems": [], **answer},
    )
    good = run("render", "op.yaml", "--set", "queue=batch")
    Path("two.yaml").write_text(f"{OPERATION}---\n{OPERATION.replace('spec:', f'spec:{chr(10)}  queue: nightly')}")
    bad = run("render", "two.yaml")  # the instance gets one document, which begins with the end of the line of ---

    assert yaml.safe_load(good.out) == effective
    assert "A: '1'" in good.out
    assert json.loads(api.asked[0].body)["spec"]["queue"] == "batch"
    assert (bad.code, bad.err.splitlines()[1]) == (2, "two.yaml:14:3 spec.queue: there is no queue x")


# What documents may hold: no control characters, and keys on one line.
WORDS = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")), max_size=40)
TEXTS = st.lists(WORDS, max_size=3).map("\n".join)
KEYS = WORDS.filter(bool)
JSON: st.SearchStrategy[Any] = st.recursive(
    TEXTS | st.booleans() | st.integers(-(2**40), 2**40) | st.just([]) | st.just({}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_any_document_is_written_so_that_it_reads_back(value: dict[str, Any]) -> None:
    assert yaml.safe_load(document_text(value) or "{}") == value
