"""With accounts as in production: the dispatcher gets by with exactly what its environment's user may do."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fixtures.bus import SecuredNats
from integration.dispatcher.centre import Centre
from integration.dispatcher.site import Site
from integration.dispatcher.work import work
from landbridge.bus import accounts, streams
from landbridge.bus.connection import Bus
from landbridge.bus.declare import declare_durable
from landbridge.schema.wire.report_v1 import AttemptState


class SplitCentre(Centre):
    """A centre whose services have users of their own; this one speaks as the coordinator."""

    async def open(self) -> None:
        self._verifier: Bus
        await self.respond_and_read()

    async def respond_and_read(self) -> None:
        from landbridge.bus import subjects
        from landbridge.bus.consume import Consumer

        await self.bus.respond(subjects.lease("*"), self._lease)
        await self.bus.respond(subjects.claim("*"), self._claim)
        consumer = Consumer(self.bus, streams.REPORTS, "coordinator")
        self._consumers.append(consumer)
        self._tasks.append(asyncio.create_task(self._read(consumer, self._report)))


@pytest.fixture
async def secured_centre(secured: SecuredNats) -> AsyncIterator[SplitCentre]:
    issuer = await secured.issuer()
    await issuer.push(accounts.environment_account(secured.keys, "onprem-a"))
    await declare_durable(await secured.service("contract-verifier"), streams.environment_durable("onprem-a"))
    centre = SplitCentre(await secured.service("coordinator"))
    await centre.open()
    yield centre
    await centre.close()


async def test_a_dispatcher_works_with_its_environments_credentials_alone(
    secured: SecuredNats, secured_centre: SplitCentre, tmp_path: Path
) -> None:
    creds = tmp_path / "dispatcher.creds"
    creds.write_text(accounts.environment_user(secured.keys, "onprem-a").credentials)
    site = Site(tmp_path / "site", secured.server.url, executor="simulated", creds=creds)
    try:
        await site.start()
        await secured_centre.until_connected()
        offer = await secured_centre.offer(work(site, seconds=0.2))

        await secured_centre.until(offer, AttemptState.STARTED)
        await secured_centre.until(offer, AttemptState.FINISHED)
        lineage = await secured.service("lineage")
        secured_centre.bus = lineage
        log = await secured_centre.ask("logs", offer)

        assert log.data.startswith(b"ran")
        assert "ermission" not in site.log()
    finally:
        await site.close()
