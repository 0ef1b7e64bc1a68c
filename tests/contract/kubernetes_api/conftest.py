"""The fake API server and, by `make test-kubernetes`, a real one: the same tests keep the fake honest."""

from collections.abc import AsyncIterator

import pytest

from support.kubernetes.access_point import Access, fake_access, real_access, real_is_wanted


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
