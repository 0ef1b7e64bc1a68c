"""Failpoints: parsed strictly, silent unless asked for."""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from landbridge.runtime import failpoints
from landbridge.runtime.failpoints import InjectedError, enable, failpoint, parse


@pytest.fixture(autouse=True)
def _off_again() -> Iterator[None]:
    yield
    enable("")


def test_without_the_variable_nothing_happens() -> None:
    enable("")
    failpoint("loop.after-commit")


def test_an_error_comes_at_the_named_visit_only() -> None:
    enable("here=error@2")
    failpoint("here")
    with pytest.raises(InjectedError, match="visit 2"):
        failpoint("here")
    failpoint("here")
    failpoint("elsewhere")


def test_a_pause_holds_the_process() -> None:
    enable("here=pause:30ms")
    started = time.perf_counter()
    failpoint("here")
    assert time.perf_counter() - started >= 0.03


def test_kill_ends_the_process_at_the_named_visit() -> None:
    code = (
        "from landbridge.runtime.failpoints import failpoint\nfor n in range(9): print(n, flush=True); failpoint('x')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={failpoints.VARIABLE: "x=kill@3"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (-9, ["0", "1", "2"])


@pytest.mark.parametrize(
    "text", ["here", "here=", "here=explode", "here=pause", "here=kill:3ms", "=kill", "here=kill@0"]
)
def test_what_is_not_understood_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="LANDBRIDGE_FAILPOINTS"):
        parse(text)
