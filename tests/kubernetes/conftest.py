"""A real cluster whose pods run, one namespace for the tests of a file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.kubernetes_pods import Pods, real_pods


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster") / "site"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pods(site: Path) -> AsyncIterator[Pods]:
    async with real_pods(site) as found:
        yield found
