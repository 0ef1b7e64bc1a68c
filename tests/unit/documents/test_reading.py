"""Good documents are read with their bytes untouched; all that is wrong is told at once, with place and suggestion."""

from pathlib import Path

import pytest

from landbridge.domain.documents import Document, Refusal, canonical_json, read_document, read_documents
from landbridge.domain.errors import RefusedError, render_problems
from unit.documents.documents import GOOD, a_document, as_json

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(
    path
    for path in (ROOT / "examples").rglob("*.yaml")
    if path.parent.name in ("operations", "projects", "environments") and not path.name.endswith("bindings.yaml")
)

# Typos at three depths, a duplicate key, a wrong unit, no GPUs, an unknown version, YAML's own traps: all in one file.
_DEBUG = (
    "operation.yaml:7:16 spec.env.DEBUG: no is text to some YAML readers and false to others; "
    'write "no" if text is meant, false otherwise'
)
_CPU = (
    'operation.yaml:9:21 spec.resources.requests.cpu: expected processors such as "8" or 500m, found "8 cores"; '
    'write "8"'
)
_COUNT = (
    "operation.yaml:10:43 spec.resources.accelerator.count: expected at least 1; remove accelerator if none is wanted"
)
WRONG = b"""apiVersion: landbridge/v2
kind: Operation
metadata: {name: churn-train, project: retail-eu, lables: {team: churn}}
spec:
  comand: [python, train.py]
  image: {registry: images, name: churn/train}
  env: {DEBUG: no, LR: 0.1}
  resources:
    requests: {cpu: 8 cores, memory: 64Gi}
    accelerator: {class: gpu-80gb, count: 0}
  lifecycle:
    timeout: 8h
    retries: {limit: 2, backof: 1m}
    timeout: 9h
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_a_good_document(path: Path) -> None:
    for read in read_documents(path.read_bytes()):
        assert isinstance(read, Document), read.text(path.name)


@pytest.mark.parametrize("base", sorted(GOOD))
def test_every_kind_is_read_from_yaml_and_json_alike(base: str) -> None:
    import yaml

    from_json, from_yaml = read_document(as_json(GOOD[base])), read_document(yaml.safe_dump(GOOD[base]).encode())

    assert isinstance(from_json, Document)
    assert isinstance(from_yaml, Document)
    assert from_json.canonical == from_yaml.canonical
    assert from_json.name == GOOD[base]["metadata"]["name"]


def test_the_bytes_of_a_document_are_kept_as_written() -> None:
    body = b"# mine\n" + as_json(GOOD["operation"]) + b"\n"
    read = read_document(body)

    assert isinstance(read, Document)
    assert read.body == body


def test_numbers_where_a_quantity_is_meant_become_text() -> None:
    read = read_document(as_json(a_document(put={"spec.resources": {"requests": {"cpu": 8}}})))

    assert isinstance(read, Document)
    assert read.value["spec"]["resources"]["requests"]["cpu"] == "8"


def test_all_that_is_wrong_is_told_at_once_with_place_and_suggestion() -> None:
    read = read_document(WRONG)

    assert isinstance(read, Refusal)
    assert read.text("operation.yaml").splitlines() == [
        'operation.yaml:1:13 apiVersion: expected landbridge/v1, found "landbridge/v2"; write landbridge/v1',
        'operation.yaml:3:51 metadata.lables: unknown field; did you mean "labels"?',
        'operation.yaml:5:3 spec.comand: unknown field; did you mean "command"?',
        'operation.yaml:6:10 spec.image: an image is pinned by digest; add digest: "sha256:..." (64 digits)',
        _DEBUG,
        'operation.yaml:7:24 spec.env.LR: expected text, found the number 0.1; write it in quotes: "0.1"',
        _CPU,
        _COUNT,
        'operation.yaml:13:25 spec.lifecycle.retries.backof: unknown field; did you mean "backoff"?',
        'operation.yaml:14:5 spec.lifecycle.timeout: duplicate key "timeout", first given in line 12; keep one of them',
    ]


def test_the_exception_and_the_refusal_tell_the_same_text() -> None:
    read = read_document(WRONG)

    assert isinstance(read, Refusal)
    assert str(RefusedError(read.problems)) == read.text() == render_problems(read.problems)


def test_a_stream_is_read_document_by_document_with_places_in_the_whole_text() -> None:
    good = canonical_json(GOOD["queue"])
    stream = b"# several\n---\n" + good + b"\n---\nkind: Queue\nmetadta: {}\n...\n---\n" + good + b"\n"
    first, second, third = read_documents(stream)

    assert isinstance(first, Document)
    assert isinstance(second, Refusal)
    assert isinstance(third, Document)
    assert {(p.line, p.path) for p in second.problems} >= {(6, "metadta")}


def test_a_marker_inside_a_block_text_does_not_cut_unless_it_begins_a_line() -> None:
    body = b"""apiVersion: landbridge/v1
kind: Queue
metadata: {name: a}
spec:
  description: |
    above
    ---
    below
"""
    assert isinstance(read_document(body), Document)


def test_another_kind_than_the_one_asked_for_is_told() -> None:
    read = read_document(as_json(GOOD["queue"]), ("Operation",))

    assert isinstance(read, Refusal)
    assert [p.code for p in read.problems] == ["wrong-kind"]
    assert read.problems[0].suggestion == "apply it with the other documents"


def test_a_missing_kind_is_told_once_where_only_one_can_be_meant() -> None:
    read = read_document(as_json(a_document(drop=("kind",), put={"spec.retries": 1})), ("Operation",))

    assert isinstance(read, Refusal)
    assert {(p.path, p.code) for p in read.problems} == {("kind", "missing-field"), ("spec.retries", "unknown-field")}
    assert any("spec.lifecycle" in p.suggestion for p in read.problems)


def test_what_a_preset_may_add_is_not_missed_yet() -> None:
    read = read_document(as_json(a_document(drop=("spec.command",), put={"spec.presets": ["base"]})))

    assert isinstance(read, Document)


@pytest.mark.parametrize(
    "args",
    [
        ["--lr", "0.1", "--max-tokens", "512", "--pad-token", "[PAD]", "--token-limit=4096"],
        ["--config", "conf/base.large.yaml", "https://example.org/readme", "--eos-token=</s>"],
        ["$(LANDBRIDGE_INPUT_CODE)/train.py", "--password=$(DB_PASSWORD)", "--password", "${DB_PASSWORD}"],
        ["--model", "bert-large-uncased", "t5-small", "vit-b-16", "gpt-neox-20b", "x1-mini"],
        ["--sha", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
        ["echo 'a' > /data/out", "1.5", "v2.small-fixes", "m2 standard"],
    ],
)
def test_ordinary_arguments_are_not_taken_for_provider_details_or_secrets(args: list[str]) -> None:
    read = read_document(as_json(a_document(put={"spec.args": args})))

    assert isinstance(read, Document), read.text()


def test_variables_with_ordinary_values_are_not_taken_for_secrets() -> None:
    env = {
        "TOKENIZERS_PARALLELISM": "false",
        "MAX_TOKENS": "512",
        "TOKEN_LIMIT": "4096",
        "SECRET_FILE": "/run/x",
        "API_KEY": "$(FROM_IDENTITY)",
        "KEY": "value",
        "PYTHONPATH": "/data/src",
        "HOME": "/data",
    }
    read = read_document(as_json(a_document(put={"spec.env": env})))

    assert isinstance(read, Document), read.text()


def test_a_reason_may_name_the_machine_that_was_measured() -> None:
    exception = {
        "product": "NVIDIA H100",
        "reason": "2x on p5.48xlarge",
        "measuredBy": "op-1",
        "reviewBy": "2027-03-01",
    }
    put = {"spec.resources": {"accelerator": {"class": "gpu-80gb", "count": 1, "exception": exception}}}

    assert isinstance(read_document(as_json(a_document(put=put))), Document)


def test_a_contract_may_select_nodes_by_instance_type() -> None:
    via = {"nodeSelector": {"node.kubernetes.io/instance-type": "p4d.24xlarge"}}
    put = {"spec.classes": {"gpu-80gb": {"count": 8, "via": via}}}

    assert isinstance(read_document(as_json(a_document("contract", put))), Document)
