"""The command line, run in this process against an instance that is a table of answers."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from landbridge.cli.main import app
from landbridge.cli.running import guard
from support.fake_api import FakeApi, fake_api
from unit.cli.samples import OPERATION


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeApi]:
    """An instance that the environment names."""
    with fake_api() as server:
        monkeypatch.setenv("LANDBRIDGE_URL", server.url)
        monkeypatch.setenv("LANDBRIDGE_TOKEN", "token-of-a-test")
        yield server


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the user's own set-up is seen or touched."""
    for name in ("LANDBRIDGE_DATA", "LANDBRIDGE_CONTEXT", "LANDBRIDGE_URL", "LANDBRIDGE_TOKEN", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("get", "operations")`."""

    def call(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["landbridge", *arguments])
        code = guard(app)
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return call


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`on_a_terminal(80)`: standard output counts as a terminal so wide, without colour."""

    def make(width: int) -> None:
        monkeypatch.setattr("landbridge.cli.output.terminal", lambda: True)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("NO_COLOR", "1")

    return make


@pytest.fixture
def document(tmp_path: Path) -> str:
    (tmp_path / "sums.yaml").write_text(OPERATION)
    return "sums.yaml"
