"""Clusters in this process, and probes in them."""

from collections.abc import AsyncIterator

import pytest

from support.kubernetes import FakeCluster, fake_cluster


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with fake_cluster() as found:
        yield found
