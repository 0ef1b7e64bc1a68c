"""A broker, a scripted centre on it, and a site whose dispatcher is a real process."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from integration.dispatcher.centre import Centre
from integration.dispatcher.site import Site
from landbridge.bus.connection import Bus
from landbridge_embedded.nats import NatsServer


@pytest.fixture
async def centre(bus: Bus) -> AsyncIterator[Centre]:
    found = Centre(bus)
    await found.open()
    yield found
    await found.close()


@pytest.fixture(params=["process", "simulated"])
async def site(
    request: pytest.FixtureRequest, nats_server: NatsServer, centre: Centre, tmp_path: Path
) -> AsyncIterator[Site]:
    """A site of each executor; its dispatcher is not started."""
    made = Site(tmp_path / "site", nats_server.url, executor=request.param)
    yield made
    await made.close()


@pytest.fixture
async def process_site(nats_server: NatsServer, centre: Centre, tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path / "site", nats_server.url)
    yield made
    await made.close()


@pytest.fixture
async def simulated_site(nats_server: NatsServer, centre: Centre, tmp_path: Path) -> AsyncIterator[Site]:
    """Where it does not matter what runs: the cheapest kind."""
    made = Site(tmp_path / "site", nats_server.url, executor="simulated")
    yield made
    await made.close()
