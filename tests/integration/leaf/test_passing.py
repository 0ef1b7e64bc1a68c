"""A site with its own NATS: what passes the link in both directions, whatever happens to either side."""

import asyncio
import shutil

import pytest

from fixtures.bus import SecuredNats
from integration.bus.test_accounts import command, take
from integration.bus.test_confinement import X, Y
from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.consume import Consumer
from landbridge.bus.declare import ApiError, api
from landbridge.bus.envelope import Outbound
from landbridge.bus.errors import Unavailable
from landbridge.bus.publish import publish_batch
from landbridge.bus.requests import query
from landbridge.bus.site_streams import DURABLE, PAGE, Journal, declare_site, sourced, trim
from landbridge.bus.streams import SITE_COMMANDS, SITE_REPORTS
from support.own_nats import SiteNats
from support.proxy import Proxy, Wire
from support.wait import wait_until


def outgoing(number: int) -> Outbound:
    return Outbound(subjects.outgoing(X, "attempts"), "io.landbridge.report.v1.AttemptReports", b"%d" % number)


async def bodies(consumer: Consumer, count_: int) -> list[int]:
    return [int(message.body) for message in await take(consumer, count_)]


async def test_commands_come_into_the_sites_own_stream_and_stay_there(secured: SecuredNats, local: Bus) -> None:
    coordinator = await secured.service("coordinator")
    sent = [command(X, number) for number in range(1200)]
    await publish_batch(coordinator, "COMMANDS", sent)
    await publish_batch(coordinator, "COMMANDS", [command(Y, -1)])

    assert await bodies(Consumer(local, SITE_COMMANDS, DURABLE.name), 1200) == list(range(1200))
    assert local.denied == []


async def test_reports_are_stored_at_the_site_and_go_on_with_the_same_ids(secured: SecuredNats, local: Bus) -> None:
    await publish_batch(local, SITE_REPORTS, [outgoing(number) for number in range(PAGE + 100)])
    journal = Journal(local, SITE_REPORTS)
    before, last = await journal.extent()
    first = await journal.page(before)
    second = await journal.page(first[-1].stream_sequence)
    assert len(first) + len(second) == PAGE + 100 == last - before

    again = [
        Outbound(subjects.report(X, "attempts"), each.type, each.body, id=each.id, source=each.source) for each in first
    ]
    await publish_batch(local, streams.REPORTS, again)
    await journal.drop(first[-1].stream_sequence)

    found = await take(Consumer(await secured.service("coordinator"), "REPORTS", "coordinator"), len(first))
    assert [message.id for message in found] == [message.id for message in first]
    assert await journal.extent() == (PAGE, PAGE + 100)
    assert await journal.page(PAGE + 100) == []


async def test_leases_claims_and_questions_pass(secured: SecuredNats, local: Bus) -> None:
    coordinator = await secured.service("coordinator")

    async def echo(subject: str, body: bytes) -> bytes:
        return subject.encode() + b" " + body

    await coordinator.respond(subjects.lease("*"), echo)
    await coordinator.respond(subjects.claim("*"), echo)
    await local.respond(subjects.every("query", X), echo)

    assert await local.request(subjects.lease(X), b"hello") == b"lb.v1.lease.onprem-a hello"
    assert await local.request(subjects.claim(X), b"mine") == b"lb.v1.claim.onprem-a mine"
    assert await query(await secured.service("lineage"), X, "logs", b"?") == b"lb.v1.query.onprem-a.logs ?"


async def test_both_sides_go_on_while_the_link_is_cut_and_nothing_is_lost_or_doubled(
    secured: SecuredNats, site: SiteNats, local: Bus, wire: Proxy
) -> None:
    coordinator = await secured.service("coordinator")
    consumer = Consumer(local, SITE_COMMANDS, DURABLE.name)
    await publish_batch(coordinator, "COMMANDS", [command(X, number) for number in range(100)])
    await wait_until(lambda: holds(local, SITE_COMMANDS, 100), "the first commands are there")
    for flap in range(1, 4):
        wire.set(Wire.BLACK_HOLE)
        await publish_batch(coordinator, "COMMANDS", [command(X, flap * 100 + number) for number in range(100)])
        await publish_batch(local, SITE_REPORTS, [outgoing(number) for number in range(100)])
        await asyncio.sleep(0.5)
        wire.heal()
        await wait_until(site.linked, "the site is linked again")
        await wait_until(lambda: holds(local, SITE_COMMANDS, 100 * (flap + 1)), "commands caught up", timeout_s=45)  # noqa: B023
    assert await bodies(consumer, 400) == list(range(400))
    assert await Journal(local, SITE_REPORTS).extent() == (0, 300)


@pytest.mark.parametrize("restarted", ["site", "centre"])
async def test_a_restart_of_either_side_loses_nothing(
    secured: SecuredNats, site: SiteNats, local: Bus, restarted: str
) -> None:
    coordinator = await secured.service("coordinator")
    await publish_batch(coordinator, "COMMANDS", [command(X, number) for number in range(300)])
    await wait_until(lambda: holds(local, SITE_COMMANDS, 300), "the first commands are there")
    if restarted == "site":
        await site.kill()
        await publish_batch(coordinator, "COMMANDS", [command(X, number) for number in range(300, 600)])
        await site.start()
        await local.wait_connected(20)
    else:
        await secured.server.stop()
        await secured.server.start()
        await publish_batch(coordinator, "COMMANDS", [command(X, number) for number in range(300, 600)])
    # Sourcing resumes late after a restart: the broker waits between its tries.
    await wait_until(lambda: holds(local, SITE_COMMANDS, 600), "commands caught up", timeout_s=60, every_s=0.1)
    assert await bodies(Consumer(local, SITE_COMMANDS, DURABLE.name), 600) == list(range(600))


async def holds(local: Bus, stream: str, number: int) -> bool:
    try:
        return int((await api(local, f"STREAM.INFO.{stream}", timeout_s=2.0))["state"]["messages"]) == number
    except (Unavailable, ApiError):
        return False


async def test_the_silence_of_the_centres_commands_is_told(local: Bus, wire: Proxy) -> None:
    async def lives() -> bool:
        silent_s = await sourced(local)
        return silent_s is not None and silent_s < 3.0

    async def is_silent() -> bool:
        return (await sourced(local) or 0.0) > 4.0

    await wait_until(lives, "signs of life come although there is no command")
    wire.set(Wire.BLACK_HOLE)
    await wait_until(is_silent, "the silence is told")


async def test_commands_that_were_carried_out_make_room(secured: SecuredNats, local: Bus) -> None:
    coordinator = await secured.service("coordinator")
    await declare_site(local, X, budget_bytes=400_000)
    sent = [Outbound(subjects.command(X, "offer"), "t", bytes(1000)) for _ in range(120)]
    await publish_batch(coordinator, "COMMANDS", sent)
    await wait_until(lambda: holds(local, SITE_COMMANDS, 120), "the commands are there")
    assert await trim(local) == 0
    await take(Consumer(local, SITE_COMMANDS, DURABLE.name, batch=100, prefetch=1), 100)

    async def trimmed() -> bool:
        return await trim(local) == 99

    await wait_until(trimmed, "what was acknowledged is removed, but for the last")
    assert await holds(local, SITE_COMMANDS, 21)
    assert await trim(local) == 0
    await publish_batch(coordinator, "COMMANDS", sent)
    await wait_until(lambda: holds(local, SITE_COMMANDS, 141), "more come")


async def test_a_site_that_lost_its_disk_gets_its_orders_again(
    secured: SecuredNats, site: SiteNats, local: Bus
) -> None:
    coordinator = await secured.service("coordinator")
    await publish_batch(coordinator, "COMMANDS", [command(X, number) for number in range(50)])
    await wait_until(lambda: holds(local, SITE_COMMANDS, 50), "the first commands are there")
    await site.kill()
    shutil.rmtree(site.root / "jetstream")
    await publish_batch(coordinator, "COMMANDS", [command(X, number) for number in range(50, 100)])
    await site.start()
    await local.wait_connected(20)
    await declare_site(local, X, budget_bytes=streams.GIB)
    await wait_until(site.linked, "the site is linked again", timeout_s=30)
    await publish_batch(coordinator, "COMMANDS", [command(X, number) for number in range(100, 150)])

    await wait_until(lambda: holds(local, SITE_COMMANDS, 150), "all of them come", timeout_s=60, every_s=0.2)
    assert await bodies(Consumer(local, SITE_COMMANDS, DURABLE.name), 150) == list(range(150))
