"""Names that people give for what a file names physically, and what makes an import valid."""

import json
from typing import Any

import pytest

from landbridge.domain.documents import Refusal
from landbridge.domain.importing import Imported, Why, import_declarations

TASK = b"""
name: fit
resources: {accelerators: "H100:4", image_id: "docker:ghcr.io/acme/fit@sha256:DIGEST"}
file_mounts: {/data: "s3://acme/tides"}
run: |
  echo $$ $(date) $(LR)
envs: {LR: "0.1"}
""".replace(b"DIGEST", b"5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef")


def imported(body: bytes, **names: str) -> Imported:
    (found,) = import_declarations(body, names=names, change=_project)
    assert isinstance(found, Imported)
    return found


def _project(document: dict[str, Any]) -> None:
    document["metadata"]["project"] = "coast"


def test_each_answer_is_asked_for_and_with_all_of_them_the_operation_is_valid() -> None:
    asked = imported(TASK)
    answers = {each.answer for each in asked.unmapped if each.answer}
    names = {"H100": "gpu-80gb", "ghcr.io": "images", "s3://acme": "readings"}
    answered = imported(TASK, **names)

    assert answers == set(names)
    assert [each.target for each in asked.missing] == ["spec.image.registry", "spec.resources.accelerator"]
    assert answered.missing == ()
    assert answered.names_used == set(names)
    spec = answered.operation["spec"]
    assert spec["resources"]["accelerator"] == {"count": 4, "class": "gpu-80gb"}
    assert spec["inputs"] == {"data": {"connection": "readings", "path": "tides", "mountPath": "/data"}}
    assert [each for each in answered.unmapped if each.left.why.asks] == []


def test_a_script_means_to_its_shell_what_it_meant_before() -> None:
    # `$(LR)` would be the variable here and is a program to a shell; `$$` would be one dollar.
    assert imported(TASK).operation["spec"]["command"] == ["bash", "-c", "echo $$$$ $(date) $$(LR)"]


@pytest.mark.parametrize(
    ("text", "host", "name"),
    [
        ("python:3.13", "docker.io", "library/python"),
        ("acme/fit", "docker.io", "acme/fit"),
        ("ghcr.io/acme/fit:1", "ghcr.io", "acme/fit"),
        ("localhost:5000/fit:1", "localhost:5000", "fit"),
        ("registry:5000/a/b", "registry:5000", "a/b"),
    ],
)
def test_images_are_read_as_engines_read_them(text: str, host: str, name: str) -> None:
    found = imported(f"run: x\nresources: {{image_id: 'docker:{text}'}}\n".encode(), **{host: "images"})

    assert found.operation["spec"]["image"] == {"name": name, "registry": "images"}
    assert [each.target for each in found.missing if "image" in each.target] == ["spec.image"]


def test_nothing_is_invented_for_a_tag() -> None:
    found = imported(b"run: x\nresources: {image_id: 'docker:ghcr.io/acme/fit:2.1'}\n")

    assert found.operation["spec"]["image"] == {"name": "acme/fit"}
    assert [each.found for each in found.unmapped if each.left.why is Why.DECISION] == ["2.1"]


def test_streams_are_brought_in_one_by_one_and_strangers_are_refused() -> None:
    job = b"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {containers: []}}}\n"
    found = import_declarations(job + b"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n---\n" + job)

    assert [type(each).__name__ for each in found] == ["Imported", "Refusal", "Imported"]
    assert isinstance(found[1], Refusal)
    assert found[1].problems[0].code == "unknown-format"
    assert "--from" in found[1].problems[0].suggestion


def test_a_format_that_is_not_clear_can_be_said() -> None:
    (unclear,) = import_declarations(b"resources: {cpus: 4}\n")
    (told,) = import_declarations(b"resources: {cpus: 4}\n", "skypilot")

    assert isinstance(unclear, Refusal)
    assert isinstance(told, Imported)
    assert told.operation["spec"]["resources"]["requests"] == {"cpu": "4"}


def test_a_secret_in_an_address_is_not_repeated() -> None:
    body = b"""
run: x
workdir: {url: "https://robot:glpat-abcdefghij1234567890@git.acme.example/a.git", ref: main}
file_mounts: {/a: "https://robot:hunter2secretpassword@store.acme.example/data"}
"""
    found = imported(body)

    assert "glpat-" not in json.dumps(found.members())
    assert "hunter2" not in json.dumps(found.members())
    assert {each.found for each in found.unmapped if each.source[0] != "run"} >= {"(hidden)"}
