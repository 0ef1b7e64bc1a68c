"""The link is cut and returns: work goes on by its policy, nothing starts, and everything is told afterwards."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from integration.dispatcher.centre import Centre
from integration.dispatcher.link import Link
from integration.dispatcher.site import Site
from integration.dispatcher.work import work
from landbridge.domain.ownership.leases_centre import Link as LinkState
from landbridge.schema.wire.command_v1 import Offers
from landbridge.schema.wire.report_v1 import AttemptOutcome, AttemptState
from landbridge_embedded.nats import NatsServer
from support.wait import wait_until


@pytest.fixture
async def link(nats_server: NatsServer, site: Site) -> AsyncIterator[Link]:
    wire = Link(int(nats_server.url.rsplit(":", 1)[1]))
    await wire.open()
    site.url = wire.url
    yield wire
    await wire.close()


async def usable(site: Site) -> bool:
    return bool((await site.ask(do="status"))["lease"]["mayStart"])


async def unusable(site: Site) -> bool:
    return bool((await site.ask(do="status"))["lease"]["remainingSeconds"] == 0)


async def test_work_that_ends_while_the_link_is_cut_is_reported_when_it_returns(
    centre: Centre, link: Link, site: Site
) -> None:
    centre.ttl_ms = 3000
    await site.start()
    await centre.until_connected()
    offer = await centre.offer(work(site, seconds=2))
    await centre.until(offer, AttemptState.STARTED)
    link.cut()
    await wait_until(lambda: unusable(site), "the lease has run out")
    centre.lose()
    assert centre.row.link is LinkState.LOST

    async def ended() -> bool:
        found = await site.ask(do="operations", all=True)
        return bool(found["operations"][0]["state"] == "finished")

    await wait_until(ended, "it has ended, seen on site without the centre")
    centre.may_start = False
    link.restore()
    await centre.until_connected(timeout_s=40)

    finished = await centre.until(offer, AttemptState.FINISHED)
    assert finished.outcome is AttemptOutcome.COMPLETED
    assert len({each.finished_at for each in centre.of(offer, AttemptState.FINISHED)}) == 1
    assert centre.row.held_term == 2


async def test_commands_sent_during_the_cut_are_carried_out_afterwards(centre: Centre, link: Link, site: Site) -> None:
    centre.ttl_ms = 3000
    await site.start()
    await centre.until_connected()
    running = await centre.offer(work(site, seconds=60))
    await centre.until(running, AttemptState.STARTED)
    link.cut()
    await wait_until(lambda: unusable(site), "the lease has run out")
    centre.lose()
    centre.may_start = False

    await centre.stop(running)
    offered = await centre.offer(work(site))
    link.restore()

    await centre.until_connected(timeout_s=40)
    cancelled = await centre.until(running, AttemptState.FINISHED)
    assert cancelled.outcome is AttemptOutcome.CANCELLED
    await centre.until(offered, AttemptState.FINISHED)


async def test_without_a_lease_nothing_starts(centre: Centre, simulated_site: Site) -> None:
    centre.ttl_ms = 3000
    await simulated_site.start()
    await centre.until_connected()
    centre.deaf = True
    await wait_until(lambda: unusable(simulated_site), "the lease has run out")

    offer = await centre.offer(work(simulated_site))
    absent = centre.an_offer(work(simulated_site))
    await centre.stop(absent)
    await centre.until(absent, AttemptState.RELINQUISHED)

    assert centre.claims == []
    assert centre.of(offer) == []


async def test_an_offer_that_came_without_a_lease_is_claimed_when_the_same_lease_is_renewed(
    centre: Centre, simulated_site: Site
) -> None:
    centre.ttl_ms = 3000
    await simulated_site.start()
    await centre.until_connected()
    centre.deaf = True
    await wait_until(lambda: unusable(simulated_site), "the lease has run out")
    offer = await centre.offer(work(simulated_site))
    later = centre.an_offer(work(simulated_site))
    await centre.stop(later)
    await centre.until(later, AttemptState.RELINQUISHED)  # so the offer has been read as well
    assert centre.claims == []

    centre.deaf = False

    await centre.until(offer, AttemptState.FINISHED)
    assert centre.row.held_term == 1


async def test_a_grant_that_was_lost_is_asked_for_again_after_the_offer_has_lapsed(
    centre: Centre, simulated_site: Site
) -> None:
    centre.ttl_ms = 3000
    await simulated_site.start()
    await centre.until_connected()
    centre.loses_grants = True
    lapses = datetime.now(UTC) + timedelta(seconds=4)
    offer = msgspec.structs.replace(centre.an_offer(work(simulated_site)), claim_by=lapses)
    await centre.send("offer", Offers(offers=(offer,)))
    await wait_until(lambda: centre.granted, "it was granted")
    centre.deaf = True
    await wait_until(lambda: unusable(simulated_site), "the lease has run out")
    await wait_until(lambda: datetime.now(UTC) > lapses, "the offer has lapsed")

    centre.loses_grants = centre.deaf = False

    await centre.until(offer, AttemptState.FINISHED)
    assert centre.row.held_term == 1


async def test_a_grant_that_arrives_after_the_lease_has_ended_starts_nothing(
    centre: Centre, process_site: Site
) -> None:
    centre.ttl_ms = 3000
    site = process_site
    await site.start(LANDBRIDGE_FAILPOINTS="dispatcher.after-occupy=pause:5s")
    await centre.until_connected()
    offer = await centre.offer(work(site))
    await wait_until(lambda: centre.granted, "it was granted")
    centre.deaf = True

    relinquished = await centre.until(offer, AttemptState.RELINQUISHED, timeout_s=40)

    assert relinquished.reason == "no-lease"
    assert not (site.home / "audit.jsonl").exists() or '"start"' not in (site.home / "audit.jsonl").read_text()


async def test_self_stopping_work_stops_itself_while_cut_off_and_is_given_back(
    centre: Centre, link: Link, site: Site
) -> None:
    centre.ttl_ms = 3000
    await site.start()
    await centre.until_connected()
    offer = await centre.offer(
        work(site, seconds=120), lifecycle={"disconnection": {"policy": "stop-after-grace", "grace": "1s"}}
    )
    await centre.until(offer, AttemptState.STARTED)
    link.cut()

    async def stopped() -> bool:
        found = await site.ask(do="operations", all=True)
        return bool(found["operations"][0]["reason"] == "self-stopped")

    await wait_until(stopped, "it has stopped itself")
    centre.lose()
    centre.may_start = False
    link.restore()
    await centre.until_connected(timeout_s=40)

    relinquished = await centre.until(offer, AttemptState.RELINQUISHED)
    assert relinquished.reason == "self-stopped"


async def test_the_site_can_see_and_stop_its_work_without_the_centre(centre: Centre, link: Link, site: Site) -> None:
    await site.start()
    await centre.until_connected()
    offer = await centre.offer(work(site, seconds=60, log="seen on site"))
    await centre.until(offer, AttemptState.STARTED)
    link.cut()

    listed = await site.ask(do="operations")

    async def log_is_seen() -> bool:
        log = await site.ask(do="logs", operation=offer.operation[:8])
        return "seen on site" in str(log["text"])

    await wait_until(log_is_seen, "its log is seen")
    await site.ask(do="stop", operation=offer.operation[:8], graceSeconds=1)

    assert [each["operation"] for each in listed["operations"]] == [offer.operation]

    async def ended() -> bool:
        found = await site.ask(do="operations", all=True)
        return bool(found["operations"][0]["state"] == "finished")

    await wait_until(ended, "it has ended")
    link.restore()
    finished = await centre.until(offer, AttemptState.FINISHED, timeout_s=40)
    assert (finished.outcome, finished.reason) == (AttemptOutcome.CANCELLED, "stopped-on-site")


async def test_a_site_starts_and_answers_although_there_is_no_centre_at_all(process_site: Site) -> None:
    process_site.url = "nats://127.0.0.1:9"
    await process_site.start()
    await process_site.until_started()

    status = await process_site.ask(do="status")
    doctor = await process_site.ask(do="doctor")

    assert (status["connected"], status["lease"]["mayStart"]) == (False, False)
    assert not doctor["healthy"]
    assert {check["name"]: check["state"] for check in doctor["checks"]}["nats"] == "failed"
    assert await process_site.terminate() == 0


async def test_the_broker_may_restart_at_any_time(centre: Centre, process_site: Site, nats_server: NatsServer) -> None:
    await process_site.start()
    await centre.until_connected()
    offer = await centre.offer(work(process_site, seconds=2))
    await centre.until(offer, AttemptState.STARTED)

    await nats_server.stop()
    await nats_server.start()

    await centre.until(offer, AttemptState.FINISHED, timeout_s=40)
    other = await centre.offer(work(process_site))
    await centre.until(other, AttemptState.FINISHED, timeout_s=40)


async def test_logs_are_json_without_secrets(centre: Centre, simulated_site: Site) -> None:
    await simulated_site.start()
    await centre.until_connected()
    await simulated_site.terminate()

    lines = [json.loads(line) for line in simulated_site.log().splitlines()]

    assert {line["event"] for line in lines} >= {"started", "lease_granted", "inventory_sent", "stopped"}
