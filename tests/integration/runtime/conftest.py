"""The world in which the runtime is tested."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from landbridge_embedded.nats import NatsServer
from support.world import World, make_world


@pytest.fixture
async def world(nats_server: NatsServer, postgres_dsn: str, tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(nats_server, postgres_dsn, tmp_path) as made:
        yield made
