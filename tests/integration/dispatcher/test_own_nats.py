"""A dispatcher on the NATS of its own site: the same work; orders and reports are kept while the link is cut."""

import asyncio
import contextlib
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fixtures.bus import SecuredNats
from integration.dispatcher.centre import Centre
from integration.dispatcher.site import Site
from integration.dispatcher.test_accounts import SplitCentre
from integration.dispatcher.work import work
from landbridge.bus import accounts, streams
from landbridge.bus.declare import api, declare_durable
from landbridge.bus.streams import SITE_COMMANDS
from landbridge.schema.wire.report_v1 import AttemptOutcome, AttemptState
from landbridge_embedded.ports import free_port
from support.own_nats import SiteNats
from support.proxy import Proxy, Wire
from support.wait import wait_until

X = "onprem-a"


class OwnSite:
    """Centre, link, the site's NATS and its dispatcher."""

    def __init__(self, secured: SecuredNats, centre: Centre, wire: Proxy, nats: SiteNats, site: Site) -> None:
        self.secured, self.centre, self.wire, self.nats, self.site = secured, centre, wire, nats, site

    async def start(self) -> None:
        await self.site.start(
            LANDBRIDGE_NATS_DOMAIN=self.nats.domain,
            LANDBRIDGE_NATS_NKEY=str(self.nats.seed),
            LANDBRIDGE_SITE_BYTES=str(streams.GIB),
        )

    async def waiting(self) -> int:
        return int((await self.site.ask(do="status"))["reportsWaiting"])

    async def cut_off(self) -> None:
        """Cut the link and wait until the centre gave the lease up."""
        self.wire.set(Wire.BLACK_HOLE)

        async def over() -> bool:
            return bool((await self.site.ask(do="status"))["lease"]["remainingSeconds"] == 0)

        await wait_until(over, "the lease has run out", timeout_s=30)
        self.centre.lose()
        self.centre.may_start = False


@pytest.fixture
async def own(secured_server: SecuredNats, tmp_path: Path) -> AsyncIterator[OwnSite]:
    secured_server.server.leaf_port = free_port()
    await secured_server.server.stop()
    await secured_server.server.start()
    await secured_server.declare()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(secured_server.close)
        issuer = await secured_server.issuer()
        await issuer.push(accounts.environment_account(secured_server.keys, X, leaf=True))
        await declare_durable(await secured_server.service("contract-verifier"), streams.leaf_durable(X))
        centre = SplitCentre(await secured_server.service("coordinator"), ttl_ms=3000)
        await centre.open()
        stack.push_async_callback(centre.close)
        wire = await stack.enter_async_context(Proxy(lambda: secured_server.server.leaf_port))
        nats = SiteNats(tmp_path / "nats", X, accounts.leaf_user(secured_server.keys, X).credentials, wire.port)
        await nats.start()
        stack.push_async_callback(nats.stop)
        site = Site(tmp_path / "site", nats.url, executor={"name": "simulated", "slots": 1000})
        stack.push_async_callback(site.close)
        yield OwnSite(secured_server, centre, wire, nats, site)


async def test_the_same_dispatcher_works_on_its_sites_own_nats(own: OwnSite) -> None:
    await own.start()
    await own.centre.until_connected()
    offer = await own.centre.offer(work(own.site, seconds=0.2))

    finished = await own.centre.until(offer, AttemptState.FINISHED)
    assert finished.outcome is AttemptOutcome.COMPLETED
    own.centre.bus = await own.secured.service("lineage")
    log = await own.centre.ask("logs", offer)

    assert log.data.startswith(b"ran")
    assert "ermission" not in own.site.log()
    status = await own.site.ask(do="status")
    assert (status["connected"], status["lease"]["mayStart"]) == (True, True)
    await wait_until(lambda: nothing_waits(own), "no report waits")


async def nothing_waits(own: OwnSite) -> bool:
    return await own.waiting() == 0


async def test_reports_wait_at_the_site_while_the_link_is_cut_and_arrive_once(own: OwnSite) -> None:
    await own.start()
    await own.centre.until_connected()
    placed = [await own.centre.offer(work(own.site, seconds=4)) for _ in range(5)]
    for each in placed:
        await own.centre.until(each, AttemptState.STARTED)
    await own.cut_off()

    async def kept() -> bool:
        return await own.waiting() > 0

    await wait_until(kept, "reports wait in the site's stream")
    assert (await own.site.ask(do="status"))["connected"] is False
    assert [own.centre.of(each, AttemptState.FINISHED) for each in placed] == [[]] * 5
    own.wire.heal()

    await own.centre.until_connected(timeout_s=40)
    for each in placed:
        found = await own.centre.until(each, AttemptState.FINISHED, timeout_s=40)
        assert found.outcome is AttemptOutcome.COMPLETED
    for each in placed:
        terms = [told.term for told in own.centre.of(each, AttemptState.FINISHED)]
        assert len(terms) == len(set(terms)), "each term is told once"
    await wait_until(lambda: nothing_waits(own), "no report waits")


async def test_nothing_starts_without_a_lease_although_the_sites_own_nats_has_the_order(own: OwnSite) -> None:
    await own.start()
    await own.centre.until_connected()
    own.centre.deaf = True

    async def over() -> bool:
        return bool((await own.site.ask(do="status"))["lease"]["remainingSeconds"] == 0)

    await wait_until(over, "the lease has run out")
    offer = await own.centre.offer(work(own.site))
    absent = own.centre.an_offer(work(own.site))
    await own.centre.stop(absent)
    await own.centre.until(absent, AttemptState.RELINQUISHED)

    assert own.centre.claims == []
    assert own.centre.of(offer) == []


async def test_orders_that_arrived_before_a_cut_are_carried_out_during_it(own: OwnSite) -> None:
    """They lie at the site: a dispatcher that comes back without the centre finds them there."""
    await own.start()
    await own.centre.until_connected()
    running = await own.centre.offer(work(own.site, seconds=120))
    await own.centre.until(running, AttemptState.STARTED)
    process = own.site.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    local = await own.nats.bus()

    async def commands() -> int:
        return int((await api(local, f"STREAM.INFO.{SITE_COMMANDS}"))["state"]["last_seq"])

    before = await commands()
    await own.centre.stop(running)

    async def arrived() -> bool:
        return await commands() > before

    try:
        await wait_until(arrived, "the order lies at the site")
    finally:
        await local.drain()
    own.wire.set(Wire.BLACK_HOLE)
    process.send_signal(signal.SIGCONT)

    async def stopped() -> bool:
        found = await own.site.ask(do="operations", all=True)
        return bool(found["operations"][0]["state"] == "finished")

    await wait_until(stopped, "it was stopped without the centre")
    own.wire.heal()
    cancelled = await own.centre.until(running, AttemptState.FINISHED, timeout_s=40)
    assert cancelled.outcome is AttemptOutcome.CANCELLED


async def test_commands_of_the_cut_are_carried_out_afterwards(own: OwnSite) -> None:
    await own.start()
    await own.centre.until_connected()
    running = await own.centre.offer(work(own.site, seconds=120))
    await own.centre.until(running, AttemptState.STARTED)
    await own.cut_off()
    await own.centre.stop(running)
    offered = await own.centre.offer(work(own.site))
    own.wire.heal()

    await own.centre.until_connected(timeout_s=40)
    cancelled = await own.centre.until(running, AttemptState.FINISHED, timeout_s=40)
    assert cancelled.outcome is AttemptOutcome.CANCELLED
    await own.centre.until(offered, AttemptState.FINISHED, timeout_s=40)


@pytest.mark.parametrize("what", ["dispatcher", "site nats", "site nats and its disk"])
async def test_what_waits_survives_a_crash_at_the_site(own: OwnSite, what: str) -> None:
    await own.start()
    await own.centre.until_connected()
    placed = [await own.centre.offer(work(own.site, seconds=3.5)) for _ in range(5)]
    for each in placed:
        await own.centre.until(each, AttemptState.STARTED)
    await own.cut_off()

    async def kept() -> bool:
        return await own.waiting() > 0

    await wait_until(kept, "reports wait in the site's stream")
    if what == "dispatcher":
        await own.site.kill()
        await own.start()
    else:
        await own.nats.kill()
        if what == "site nats and its disk":
            shutil.rmtree(own.nats.root / "jetstream")
        await asyncio.sleep(0.5)
        await own.nats.start()
    own.wire.heal()

    await own.centre.until_connected(timeout_s=60)
    for each in placed:
        await own.centre.until(each, AttemptState.FINISHED, timeout_s=60)
    await wait_until(lambda: nothing_waits(own), "no report waits", timeout_s=40)
    another = await own.centre.offer(work(own.site))
    await own.centre.until(another, AttemptState.FINISHED, timeout_s=60)
