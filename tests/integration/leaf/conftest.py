"""A centre that takes leaf nodes, a site with its own NATS, and the wire between them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fixtures.bus import SecuredNats
from integration.bus.test_confinement import X
from landbridge.bus import accounts, streams
from landbridge.bus.connection import Bus
from landbridge.bus.declare import declare_durable
from landbridge.bus.site_streams import declare_site
from landbridge.bus.streams import leaf_durable
from landbridge_embedded.ports import free_port
from support.own_nats import SiteNats
from support.proxy import Proxy
from support.wait import wait_until


@pytest.fixture
async def wire(secured_server: SecuredNats) -> AsyncIterator[Proxy]:
    """The link between centre and site."""
    async with Proxy(lambda: secured_server.server.leaf_port) as found:
        yield found


@pytest.fixture
async def secured(secured_server: SecuredNats) -> AsyncIterator[SecuredNats]:
    """A centre that takes leaf nodes."""
    secured_server.server.leaf_port = free_port()
    await secured_server.server.stop()
    await secured_server.server.start()
    await secured_server.declare()
    yield secured_server
    await secured_server.close()


async def registered(secured: SecuredNats, environment: str) -> str:
    """Make an environment whose site has its own NATS; return the leaf's credentials."""
    issuer = await secured.issuer()
    await issuer.push(accounts.environment_account(secured.keys, environment, leaf=True))
    await declare_durable(await secured.service("contract-verifier"), leaf_durable(environment))
    return accounts.leaf_user(secured.keys, environment).credentials


@pytest.fixture
async def site(secured: SecuredNats, wire: Proxy, tmp_path: Path) -> AsyncIterator[SiteNats]:
    made = SiteNats(tmp_path / "site", X, await registered(secured, X), wire.port)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def local(site: SiteNats) -> AsyncIterator[Bus]:
    """The dispatcher's connection, with its streams."""
    bus = await site.bus()
    await declare_site(bus, X, budget_bytes=streams.GIB)
    await wait_until(site.linked, "the site is linked")
    yield bus
    await bus.drain()
