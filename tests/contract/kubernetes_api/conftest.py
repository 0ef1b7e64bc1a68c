"""The fake API server and, by `make test-kubernetes`, a real one: the same tests keep the fake honest."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from support.kubernetes.access_point import Access, fake_access, nothing_is_left, real_access, real_is_wanted


@pytest.fixture(scope="session", autouse=True)
def left_as_it_was() -> Iterator[None]:
    """A real cluster has nothing of ours in the end."""
    yield
    asyncio.run(nothing_is_left())


@pytest.fixture(params=["fake", "real"] if real_is_wanted() else ["fake"])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Access]:
    async with real_access() if request.param == "real" else fake_access() as access:
        yield access


@pytest.fixture
async def controlled(api: Access) -> Access:
    """A cluster with controllers."""
    if not api.has_controllers:
        pytest.skip("no controller manager runs in this cluster")
    return api
