"""Fixtures that every test may ask for, and how tests are shared out between workers."""

from typing import Any

import pytest

pytest_plugins = [
    "fixtures.postgres",
    "fixtures.redis",
    "fixtures.nats",
    "fixtures.bus",
    "fixtures.instance",
    "support.skipping",
]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a group together."""
    from support.groups import ByGroup

    return ByGroup(config, log)
