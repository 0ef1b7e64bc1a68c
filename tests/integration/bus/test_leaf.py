"""A site with its own NATS: what passes the link, in both directions, and what does not."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.bus import SecuredNats
from integration.bus.test_accounts import command, take
from integration.bus.test_confinement import X, Y, ask, count, ignore, refused
from landbridge.bus import accounts, streams, subjects
from landbridge.bus.connection import Bus, frame
from landbridge.bus.consume import Consumer
from landbridge.bus.declare import ApiError, api, declare_durable
from landbridge.bus.envelope import Outbound
from landbridge.bus.errors import Unavailable
from landbridge.bus.publish import publish_batch
from landbridge.bus.requests import query
from landbridge.bus.site_streams import DURABLE, PAGE, Journal, declare_site, sourced, trim
from landbridge.bus.streams import SITE_COMMANDS, SITE_REPORTS, environment_durable, leaf_durable
from landbridge_embedded.process import free_port
from support.own_nats import SiteNats
from support.proxy import Proxy, Wire
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


def outgoing(number: int) -> Outbound:
    return Outbound(subjects.outgoing(X, "attempts"), "io.landbridge.report.v1.AttemptReports", b"%d" % number)


async def bodies(consumer: Consumer, count_: int) -> list[int]:
    return [int(message.body) for message in await take(consumer, count_)]


# -- what passes ------------------------------------------------------------------------------------------------------


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


# -- what does not ----------------------------------------------------------------------------------------------------


async def test_the_leaf_reads_no_commands_of_others(secured: SecuredNats, site: SiteNats, local: Bus) -> None:
    other = await registered(secured, Y)
    assert other
    coordinator = await secured.service("coordinator")
    spy = await whoever_owns_the_site(site)
    heard: list[str] = []

    async def hear(msg: Any) -> None:
        heard.append(msg.subject)

    for subject in ("lb.v1.command.>", f"lb.v1.leaf.{Y}.>", subjects.every("query", Y), "lb.v1.operation.>"):
        await spy.subscribe(subject, hear)
    await spy.settle()
    await publish_batch(coordinator, "COMMANDS", [command(Y, 1)])
    for name in (f"leaf-{Y}", f"env-{Y}", f"env-{X}", f"leaf-{X}"):
        for prefix in ("$JS.hub.API", f"lb.v1.js.{X}", f"lb.v1.js.{Y}"):
            assert await refused(ask(spy, f"{prefix}.CONSUMER.MSG.NEXT.COMMANDS.{name}", b"1"))
    assert await refused(ask(spy, f"lb.v1.js.{Y}.CONSUMER.RESET.COMMANDS.leaf-{Y}", b"{}"))
    assert await refused(ask(spy, f"lb.v1.js.{X}.CONSUMER.RESET.COMMANDS.leaf-{Y}", b"{}"))
    for path in ("STREAM.MSG.GET.COMMANDS", "DIRECT.GET.COMMANDS"):
        assert await refused(ask(spy, f"$JS.hub.API.{path}", b'{"seq":1}')), path
    await spy.settle()
    assert heard == []


async def test_the_leaf_forges_nothing(secured: SecuredNats, site: SiteNats, local: Bus) -> None:
    """Whoever owns the site may say there what they like: only its own reports, lease and answers pass."""
    forger = await whoever_owns_the_site(site)
    before = {spec.name: await count(secured, spec.name) for spec in streams.STREAMS}
    victims = [
        *(subjects.report(Y, "attempts"), subjects.lease(Y), subjects.claim(Y), subjects.answer(Y, "t")),
        *(subjects.command(Y, "stop"), subjects.environment("link", X), subjects.submit("retail")),
        *(subjects.operation("completed", "retail"), subjects.catalogue("access", "me"), subjects.outgoing(Y, "x")),
    ]
    for subject in victims:
        assert await refused(ask(forger, subject, b"{}")), subject
    for victim in victims:  # not through reply subjects either
        await forger.write(frame(subjects.report(X, "attempts"), victim, "", b"{}"))
    await forger.settle()
    stored = before["REPORTS"] + len(victims)
    await wait_until(lambda: _stored(secured, stored), "its own reports are stored")
    assert {name: await count(secured, name) for name in before} == {**before, "REPORTS": stored}


async def _stored(secured: SecuredNats, number: int) -> bool:
    return await count(secured, "REPORTS") == number


async def test_the_leaf_makes_nothing_at_the_centre(secured: SecuredNats, site: SiteNats, local: Bus) -> None:
    owner = await whoever_owns_the_site(site)
    config = {"stream_name": "COMMANDS", "config": {"durable_name": "spy", "filter_subject": "lb.v1.command.>"}}
    for path, body in (
        ("STREAM.CREATE.MINE", {"name": "MINE", "subjects": ["mine.>"]}),
        ("STREAM.DELETE.COMMANDS", None),
        ("STREAM.PURGE.COMMANDS", None),
        ("STREAM.INFO.COMMANDS", None),
        ("STREAM.NAMES", None),
        ("CONSUMER.CREATE.COMMANDS.spy", config),
        (f"CONSUMER.CREATE.COMMANDS.leaf-{X}.lb.v1.command.>", config),
        (f"CONSUMER.DELETE.COMMANDS.leaf-{Y}", None),
        (f"CONSUMER.DELETE.COMMANDS.leaf-{X}", None),
        ("INFO", None),
    ):
        for prefix in ("$JS.hub.API", f"lb.v1.js.{X}"):
            assert await refused(ask(owner, f"{prefix}.{path}", json.dumps(body).encode() if body else b"")), path
    for subject in ("$SYS.REQ.CLAIMS.UPDATE", "$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.ACCOUNT.PING.CONNZ"):
        assert not await from_the_centre(owner, subject), subject
    names = (await api(await secured.service("streams"), "STREAM.NAMES"))["streams"]
    assert sorted(names) == sorted(spec.name for spec in streams.STREAMS)


async def from_the_centre(owner: Bus, subject: str) -> bool:
    """Whether somebody but the site's own server answers."""
    try:
        message = await owner.request_message(subject, b"{}", 0.4)
    except Exception:
        return False
    return b'"landbridge"' in message.data


async def test_a_leafs_credentials_are_for_leaf_nodes_only(secured: SecuredNats) -> None:
    creds = await registered(secured, X)
    with pytest.raises(Unavailable):
        await secured.open_text(creds, "leaf", within_s=0.7)


async def test_a_dispatchers_credentials_open_no_leaf_node(secured: SecuredNats, wire: Proxy, tmp_path: Path) -> None:
    await secured.register(X)
    node = SiteNats(tmp_path / "site", X, accounts.environment_user(secured.keys, X).credentials, wire.port)
    await node.start()
    try:
        await asyncio.sleep(1.5)
        assert not await node.linked()
    finally:
        await node.stop()


async def test_revoked_leafs_are_cut_off_and_stay_out(secured: SecuredNats, site: SiteNats, local: Bus) -> None:
    issuer = await secured.issuer()
    revoked = {"*": int(time.time()) + 1}
    await issuer.push(accounts.environment_account(secured.keys, X, leaf=True, revoked=revoked))

    async def unlinked() -> bool:
        return not await site.linked()

    await wait_until(unlinked, "the link is gone")
    await asyncio.sleep(1.5)
    assert not await site.linked()


async def test_at_the_site_the_dispatcher_may_do_its_work_and_no_more(site: SiteNats, local: Bus) -> None:
    for subject in (
        f"$JS.{site.domain}.API.STREAM.DELETE.{SITE_COMMANDS}",
        f"$JS.{site.domain}.API.STREAM.CREATE.OTHER",
        f"$JS.{site.domain}.API.STREAM.SNAPSHOT.{SITE_REPORTS}",
        subjects.lease(Y),
        subjects.outgoing(Y, "attempts"),
        subjects.command(X, "stop"),
    ):
        assert await refused(ask(local, subject, b"{}")), subject
    await local.subscribe("lb.v1.>", ignore)
    await wait_until(lambda: any("lb.v1.>" in text for text in local.denied), "it is refused")


async def whoever_owns_the_site(site: SiteNats) -> Bus:
    """Connect past the site's own allow-list, as whoever controls its machine can."""
    text = (site.root / "nats.conf").read_text()
    start, end = text.index("permissions {"), text.index("      }\n    ]\n  }\n}")
    (site.root / "nats.conf").write_text(text[:start] + text[end:])
    await site.stop()
    await site.start()
    await wait_until(site.linked, "the site is linked")
    return await site.bus("owner")


async def test_moving_to_an_own_nats_takes_the_direct_way_away(secured: SecuredNats) -> None:
    direct = await secured.register(X)
    pull = f"$JS.API.CONSUMER.MSG.NEXT.COMMANDS.{environment_durable(X).name}"
    assert not await refused(ask(direct, pull, b'{"no_wait":true}'))
    await registered(secured, X)
    assert await refused(ask(direct, pull, b'{"no_wait":true}'))
