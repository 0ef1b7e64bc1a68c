"""A site with its own NATS: what does not pass the link, whoever owns that NATS."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from fixtures.bus import SecuredNats
from integration.bus.test_accounts import command
from integration.bus.test_confinement import X, Y, ask, count, ignore, refused
from integration.leaf.conftest import registered
from landbridge.bus import accounts, streams, subjects
from landbridge.bus.connection import Bus, frame
from landbridge.bus.declare import api
from landbridge.bus.errors import Unavailable
from landbridge.bus.publish import publish_batch
from landbridge.bus.streams import SITE_COMMANDS, SITE_REPORTS, environment_durable
from support.own_nats import SiteNats
from support.proxy import Proxy
from support.wait import wait_until


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
