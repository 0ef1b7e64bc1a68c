"""Fetching outputs: every file, compared with the digest, never outside the target."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from support.fake_api import FakeApi

from .conftest import Run

ID = "6f1c2d3e-0000-5000-8000-00000000000a"
FILES = {"a.txt": b"one", "below/b.txt": b"two"}


def digest(files: dict[str, bytes]) -> str:
    lines = "".join(f"{hashlib.sha256(body).hexdigest()}  {name}\n" for name, body in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def offering(api: FakeApi, files: dict[str, bytes], sha256: str, *, listed: list[str] | None = None) -> None:
    recorded = {"connection": "models", "path": "p", "bytes": 6, "sha256": sha256, "exists": True}
    names = listed if listed is not None else sorted(files)
    body: dict[str, Any] = {"outputs": {"model": recorded, "report": {"exists": False}}}
    body["files"] = {"model": [{"path": name, "bytes": 3} for name in names]}
    api["GET", f"/v1/operations/{ID}/outputs"] = (200, body)
    for name, content in files.items():
        api["GET", f"/v1/operations/{ID}/outputs/model/{name}"] = (200, content)


def test_every_file_is_copied_and_compared(run: Run, api: FakeApi, tmp_path: Path) -> None:
    offering(api, FILES, digest(FILES))
    ran = run("outputs", ID, "--fetch", "out")
    assert ran.code == 0, ran.err
    assert {name: (tmp_path / "out" / "model" / name).read_bytes() for name in FILES} == FILES
    assert "out/model: 2 files, 6 B, digest matches" in ran.out
    assert "output report: does not exist, nothing to fetch" in ran.err


def test_a_single_file_lies_under_the_outputs_name(run: Run, api: FakeApi, tmp_path: Path) -> None:
    offering(api, {}, hashlib.sha256(b"one").hexdigest(), listed=[""])
    api["GET", f"/v1/operations/{ID}/outputs/model"] = (200, b"one")
    assert run("outputs", ID, "--fetch", "out").code == 0
    assert (tmp_path / "out" / "model").read_bytes() == b"one"


def test_a_changed_output_is_told(run: Run, api: FakeApi) -> None:
    offering(api, FILES, digest({**FILES, "a.txt": b"other"}))
    ran = run("outputs", ID, "--fetch", "out")
    assert ran.code == 1
    assert "output model: expected digest" in ran.err


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil"])
def test_names_that_lead_outside_are_not_fetched(run: Run, api: FakeApi, tmp_path: Path, name: str) -> None:
    offering(api, {}, "", listed=[name])
    ran = run("outputs", ID, "--fetch", "out")
    assert ran.code == 1
    assert "expected a path below the output" in ran.err
    assert not (tmp_path / "evil").exists()
