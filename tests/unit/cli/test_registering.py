"""`env register`: what became of a contract version is waited for and told."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from landbridge.cli import registering
from landbridge.domain.documents import Document, read_document
from support.deciding import contract_document
from support.fake_api import Asked, FakeApi
from unit.cli.conftest import Run

DOCUMENT = contract_document("onprem-a", 2)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "contract.yaml"
    path.write_text(json.dumps(DOCUMENT))
    return str(path)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registering, "POLL_S", 0.01)
    monkeypatch.setattr(registering, "PATIENCE_S", 0.2)


def digest() -> str:
    read = read_document(json.dumps(DOCUMENT).encode())
    assert isinstance(read, Document)
    return sha256(read.canonical).hexdigest()


def an_instance(api: FakeApi, *phases: str, content: str = "", problems: list[dict[str, Any]] | None = None) -> None:
    """Version 2 is told of with one phase after the other; empty: not yet."""
    left = [*phases]

    def environment(_: Asked) -> tuple[int, Any]:
        phase = left.pop(0) if len(left) > 1 else left[0]
        new = {"version": 2, "phase": phase, "sha256": content or digest(), "document": json.dumps(DOCUMENT)}
        return 200, {
            "environment": "onprem-a",
            "versions": [{"version": 1, "phase": "active"}, *([new] if phase else [])],
        }

    api["POST", "/v1/documents"] = (202, {"kind": "environment-contract", "submission": "s-7", "forwarded": True})
    api["GET", "/v1/environments/onprem-a"] = environment
    others = {"submission": "s-6", "problems": [{"path": "spec", "message": "of somebody else"}]}
    own = [{"submission": "s-7", "problems": problems}] if problems else []
    api["GET", "/v1/refusals"] = (200, {"items": [others, *own]})


def test_a_draft_is_sent_as_one_and_told_with_what_to_look_at(api: FakeApi, run: Run, file: str) -> None:
    an_instance(api, "", "draft")
    ran = run("env", "register", file, "--draft")
    assert ran.code == 0, ran
    assert ran.out.startswith("environment onprem-a: contract version 2 is kept as a draft.")
    assert "landbridge env diff onprem-a" in ran.out
    [sent] = [each for each in api.asked if each.method == "POST"]
    assert sent.query == "draft=true"


def test_a_draft_that_is_registered_is_waited_for_until_it_is_one_no_more(api: FakeApi, run: Run, file: str) -> None:
    an_instance(api, "draft", "draft", "canary")
    ran = run("env", "register", file)
    assert "contract version 2 is a canary" in ran.out
    assert "env join onprem-a" in ran.out
    [sent] = [each for each in api.asked if each.method == "POST"]
    assert sent.query == ""


def test_a_refusal_is_told_with_the_way_on_and_exits_with_2(api: FakeApi, run: Run, file: str) -> None:
    problem = {
        "path": "metadata.version",
        "message": "onprem-a: version 2 is active already, and becomes no draft again",
        "suggestion": "register the change as version 3",
    }
    an_instance(api, "active", problems=[problem])
    ran = run("env", "register", file, "--draft")
    assert ran.code == 2
    assert ran.err.strip().endswith(
        "metadata.version: onprem-a: version 2 is active already, and becomes no draft again; "
        "register the change as version 3"
    )


def test_the_same_number_with_other_content_is_not_taken_for_it(api: FakeApi, run: Run, file: str) -> None:
    an_instance(api, "active", content="other", problems=[{"path": "metadata.version", "message": "is fixed"}])
    ran = run("env", "register", file)
    assert (ran.code, "is active" in ran.out) == (2, False)


def test_without_an_answer_people_are_told_where_to_look(api: FakeApi, run: Run, file: str) -> None:
    an_instance(api, "")
    ran = run("env", "register", file)
    assert ran.code == 0
    assert "was sent; what becomes of it: landbridge get environment onprem-a" in ran.out


def test_the_contract_in_force_is_shown_and_the_draft_is_named(api: FakeApi, run: Run) -> None:
    versions = [
        {"version": number, "phase": phase, "document": json.dumps(contract_document("onprem-a", number))}
        for number, phase in ((1, "active"), (2, "draft"))
    ]
    api["GET", "/v1/environments/onprem-a"] = (200, {"environment": "onprem-a", "versions": versions})
    ran = run("get", "contract", "onprem-a")
    assert "version: 1" in ran.out
    assert "version 2 (draft)" in ran.err
    alone = {"environment": "onprem-a", "versions": versions[1:]}
    api["GET", "/v1/environments/onprem-a"] = (200, alone)
    assert "version: 2" in run("get", "contract", "onprem-a").out
