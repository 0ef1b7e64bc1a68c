"""Every kept bad input is refused for exactly the reasons that are wrong with it, quickly and without its secrets."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from landbridge.domain.documents import Refusal, read_document
from unit.documents.documents import a_document, as_json

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("bad_documents.yaml").read_text(encoding="utf-8"))


def _body(case: dict[str, Any]) -> bytes:
    if "bytes" in case:
        return bytes.fromhex(case["bytes"])
    if "text" in case:
        text: str = case["text"]
        return text.encode("utf-8", "surrogatepass")
    return as_json(a_document(case.get("base", "operation"), case.get("set"), tuple(case.get("drop", ()))))


def test_the_corpus_is_large_and_has_no_doublets() -> None:
    assert len(CASES) >= 150
    assert len({case["name"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_bad_document_is_refused_for_exactly_what_is_wrong(case: dict[str, Any]) -> None:
    began = time.perf_counter()
    read = read_document(_body(case))
    took_s = time.perf_counter() - began

    assert isinstance(read, Refusal)
    found = {(problem.path, problem.code) for problem in read.problems}
    wanted = {(path, code) for path, code in case["codes"].items()}
    if "any" in case["codes"].values():
        assert {path for path, _ in found} == {path for path, _ in wanted}, read.text()
    else:
        assert found == wanted, read.text()
    assert took_s < 0.5  # a single read takes about 1 ms; the bound allows for a busy machine


@pytest.mark.parametrize(
    "case", [c for c in CASES if "credential" in c["codes"].values()], ids=lambda case: case["name"]
)
def test_a_refusal_never_repeats_the_secret(case: dict[str, Any]) -> None:
    read = read_document(_body(case))

    assert isinstance(read, Refusal)
    text = read.text() + repr(read)
    for secret in (
        "AKIAIOSFODNN7",
        "wJalrXUtn",
        "MIIE",
        "hunter2",
        "correcthorse",
        "eyJhbGci",
        "ghp_abc",
        "a8f5f167",
        "secretpw",
    ):
        assert secret not in text


@pytest.mark.parametrize("case", [c for c in CASES if "set" in c or "drop" in c], ids=lambda case: case["name"])
def test_yaml_and_json_are_judged_alike(case: dict[str, Any]) -> None:
    document = a_document(case.get("base", "operation"), case.get("set"), tuple(case.get("drop", ())))
    text = yaml.safe_dump(document, default_flow_style=False, allow_unicode=False, sort_keys=False)

    from_yaml, from_json = read_document(text.encode()), read_document(as_json(document))

    assert isinstance(from_yaml, Refusal)
    assert isinstance(from_json, Refusal)
    assert {(p.path, p.code) for p in from_yaml.problems} == {(p.path, p.code) for p in from_json.problems}
