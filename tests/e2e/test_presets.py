"""Presets, components and imports as a user meets them, on a real instance with real processes."""

import json
from pathlib import Path

import pytest

from fixtures.instance import Instance

pytestmark = pytest.mark.xdist_group("instance")

CATALOGUE = """\
apiVersion: landbridge/v1
kind: Preset
metadata: {name: caches, version: 1}
spec:
  patch: {env: {CACHE: everywhere, MODE: night}, lifecycle: {timeout: 5m}}
  environments:
    onprem-a: {env: {CACHE: on-prem, OWN: never}}
    cloud-b: {env: {CACHE: cloud}}
---
apiVersion: landbridge/v1
kind: Component
metadata: {name: teller, version: 2}
spec:
  parameters: {word: {choices: [hello, bye]}}
  operation: {command: [bash, -c, 'echo "$(parameters.word)|$CACHE|$MODE|$OWN"']}
"""
OPERATION = """\
apiVersion: landbridge/v1
kind: Operation
metadata: {name: told, project: analytics}
spec:
  component: teller
  presets: [caches]
  parameters: {word: hello}
  env: {OWN: mine}
  resources: {requests: {cpu: 100m, memory: 64Mi}}
"""


def test_what_is_shown_is_what_runs_in_each_environment(instance: Instance, tmp_path: Path) -> None:
    catalogue, operation = tmp_path / "catalogue.yaml", tmp_path / "operation.yaml"
    catalogue.write_text(CATALOGUE)
    operation.write_text(OPERATION)
    instance.run("apply", str(catalogue))

    for environment, cache in (("onprem-a", "on-prem"), ("cloud-b", "cloud")):
        only = ("--environment", environment)
        shown = instance.json("render", str(operation), *only, "--at", environment)
        done = instance.run("submit", str(operation), *only, "--wait", "-o", "json")
        log = instance.run("logs", json.loads(done.stdout)["operation"]).stdout

        env = shown["effective"]["spec"]["env"]
        assert env == {"OWN": "mine", "CACHE": cache, "MODE": "night"}
        assert shown["provenance"]["spec.env.CACHE"] == f"preset caches@1 at {environment}"
        assert shown["provenance"]["spec.command"] == "component teller@2"
        assert f"hello|{env['CACHE']}|{env['MODE']}|{env['OWN']}" in log


def test_a_value_that_does_not_suit_is_refused_with_its_line_by_render_and_by_submit(
    instance: Instance, tmp_path: Path
) -> None:
    catalogue, operation = tmp_path / "catalogue.yaml", tmp_path / "operation.yaml"
    catalogue.write_text(CATALOGUE)
    operation.write_text(OPERATION.replace("word: hello", "word: helo"))
    instance.run("apply", str(catalogue))
    told = f'{operation}:7:22 spec.parameters.word: expected one of hello, bye, found "helo"; did you mean "hello"?'

    assert told in instance.run("render", str(operation), check=2).stderr
    assert 'did you mean "hello"?' in instance.run("submit", str(operation), check=2).stderr


def test_an_imported_task_runs(instance: Instance, tmp_path: Path) -> None:
    task, operation = tmp_path / "task.yaml", tmp_path / "operation.yaml"
    task.write_text("name: brought_in\nresources: {cpus: 1}\nenvs: {WORD: hello}\nrun: |\n  echo $(echo $WORD) $$\n")
    instance.run(
        "import", str(task), "--project", "analytics", "--set", "resources.requests.cpu=100m", "--out", str(operation)
    )
    done = instance.run("submit", str(operation), "--wait", "-o", "json")
    word, process = instance.run("logs", json.loads(done.stdout)["operation"]).stdout.split()[-2:]

    assert word == "hello"
    assert process.isdigit(), "the shell's own $$ came through"
