"""In CI nothing may be missing; what only root does is left out for others, and said."""

import os

import pytest

pytest_plugins = ["pytester"]

_SKIPS = """
import pytest
def test_skips(): pytest.skip("no such part here")
def test_passes(): pass
@pytest.mark.root
def test_mounts(): pass
@pytest.mark.xfail(reason="not yet")
def test_not_yet(): assert False
"""


def _run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *, ci: bool, user: int) -> pytest.RunResult:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.delenv("CI", raising=False)
    if ci:
        monkeypatch.setenv("CI", "true")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(_SKIPS)
    return pytester.runpytest_inprocess("-p", "support.skipping", "-p", "no:cacheprovider", "-rA")


def test_a_test_that_skips_itself_fails_in_ci(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    result = _run(pytester, monkeypatch, ci=True, user=0)
    result.assert_outcomes(failed=1, passed=2, xfailed=1)
    result.stdout.fnmatch_lines(["*skipped, although CI is set*no such part here*"])


def test_elsewhere_it_is_skipped(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    _run(pytester, monkeypatch, ci=False, user=0).assert_outcomes(skipped=1, passed=2, xfailed=1)


def test_what_only_root_does_is_left_out_for_others(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    _run(pytester, monkeypatch, ci=False, user=1000).assert_outcomes(skipped=1, passed=1, xfailed=1, deselected=1)
