"""A plugin of pytest: what may be left out where, and what may not."""

import os
from collections.abc import Generator

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker of tests that are left out."""
    meaning = "what only root does, such as becoming another user or mounting; left out for an ordinary user"
    config.addinivalue_line("markers", f"root: {meaning}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only root does where an ordinary user runs the tests; CI runs them as root."""
    if os.geteuid() == 0:
        return
    left_out = [item for item in items if item.get_closest_marker("root")]
    items[:] = [item for item in items if not item.get_closest_marker("root")]
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CI=true nothing may be missing: a test that skips itself has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, although CI is set: {report.longrepr}"
    return report
