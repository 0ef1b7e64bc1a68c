"""Newer services beside these: what they say more is tolerated in events and refused in commands; nobody dies of it."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from landbridge.bus import accounts, streams, subjects
from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.permissions import Permissions, inbox
from landbridge.bus.publish import publish_batch
from landbridge.bus.scan import scan
from landbridge.runtime.ids import new_id
from landbridge_embedded.process import http_body
from landbridge_lineage.replay import compare
from support.wait import wait_until

from . import directed
from .directed import Clients
from .world import PROJECT, SERVICES, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180), pytest.mark.xdist_group("faults")]

SITE = "site-a"
_LATER = {"laterField": {"deep": [1, {"deeper": "x"}]}, "another": "y"}
_NEWER = "newer"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "run" / "data", ttl_s=10.0, sites=(SITE,))
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def clients(world: World, tmp_path: Path) -> Iterator[Clients]:
    made = Clients(world, tmp_path, SITE)
    yield made
    made.close()


@pytest.fixture
async def newer(world: World) -> AsyncIterator[Bus]:
    """The connection of a service of a later release, whose rights this release has not heard of."""
    keys = accounts.load_keys(world.data.keys)
    granted = Permissions((f"{subjects.ROOT}.>",), (inbox(_NEWER),))
    user = accounts.user_of_hub(keys, _NEWER, granted)
    bus = await connect(BusSettings(url=world.state["natsUrl"], creds_text=user.credentials), name=_NEWER)
    yield bus
    await bus.drain()


async def say(bus: Bus, stream: str, subject: str, package: str, kind: str, body: Any, about: str = "") -> None:
    message = Outbound(
        subject, event_type(package, kind), json.dumps(body).encode(), about, id=new_id(), source="/services/newer"
    )
    await publish_batch(bus, stream, [message])


async def everything(world: World, stream: str, subject: str = "") -> list[tuple[str, Any]]:
    """Return subjects and bodies of a stream."""
    bus = await world.bus("streams")
    try:
        return [(m.subject, json.loads(m.body)) async for m in scan(bus, stream, [subject] if subject else [])]
    finally:
        await bus.drain()


async def test_newer_events_are_tolerated_and_newer_commands_refused(
    world: World, clients: Clients, newer: Bus
) -> None:
    before = {name: world.pid(name) for name in world.parts}
    await clients.submit(held=1, short=1)
    model, running = clients.short[0], clients.held[0]

    # Events of types that exist, with more in them than this release knows: they count.
    accepted = next(
        body
        for subject, body in await everything(world, streams.OPERATIONS, subjects.operation("accepted", PROJECT))
        if body["operation"] == model
    )
    fresh = str(uuid.uuid4())
    subject = subjects.operation("accepted", PROJECT)
    body = {**accepted, **_LATER, "operation": fresh, "idempotencyKey": fresh}
    await say(newer, streams.OPERATIONS, subject, "operation", "OperationAccepted", body, fresh)
    await directed.until_phase(world, [fresh], "completed", timeout_s=30)

    # Events, reports, wishes and entries of kinds that nobody here has heard of: others' business.
    for stream, subject, package in (
        (streams.OPERATIONS, subjects.operation("hibernated", PROJECT), "operation"),
        (streams.ENVIRONMENTS, subjects.environment("weather", SITE), "environment"),
        (streams.REPORTS, subjects.report(SITE, "weather"), "report"),
        (streams.INTENTS, subjects.intent("teleport", PROJECT), "intent"),
        (streams.CATALOGUE, subjects.catalogue("spell", "abracadabra"), "catalogue"),
    ):
        await say(newer, stream, subject, package, "Teleported", {"operation": running, **_LATER}, running)

    # A command of a kind that the dispatcher does not know: refused, with the placements that it names.
    epoch = {"generation": 1, "counter": 1}
    command = {"items": [{"operation": running, "epoch": epoch, "to": "the moon"}]}
    await say(newer, streams.COMMANDS, subjects.command(SITE, "teleport"), "command", "Teleports", command)

    async def refused() -> list[dict[str, Any]]:
        reports = await everything(world, streams.REPORTS, subjects.report(SITE, "attempts"))
        items = [item for _, body in reports for item in body["items"]]
        return [item for item in items if item["operation"] == running and item["state"] == "refused"]

    [told] = await wait_until(refused, "the command is refused", timeout_s=20, every_s=0.3)
    assert told["reason"] == "dispatcher-too-old"
    assert "unknown kind 'teleport'" in told["message"]
    assert "update the dispatcher" in told["message"]

    # Everybody lives, everything flows, nothing was buried, and a replay still says the same.
    await clients.submit(held=0, short=2)
    assert await directed.phases(world, [running]) == {running: "running"}
    assert {name: world.pid(name) for name in world.parts} == before
    assert await world.unready() == []
    assert await everything(world, streams.DEADLETTERS) == []
    await clients.end(audit=False)  # the auditor knows no events of later releases
    database = await world.database("lineage")
    try:
        compared = await compare(database)
        assert compared.equal, compared.text()
    finally:
        await database.close()


async def test_a_service_waits_while_a_newer_release_owns_its_schema(world: World) -> None:
    """It is not started, says why, and touches nothing; back on its own schema it goes on."""
    database = await world.database("ranking")
    try:
        own = await database.fetchval("select version_num from alembic_version")
        async with directed.away(world, "ranking"):
            await database.execute("update alembic_version set version_num = '0099_later'")
        text = ""

        async def told() -> bool:
            nonlocal text
            text = await http_body(world.port("ranking"), "/startupz?verbose")
            return "newer release" in text

        await wait_until(told, "it says that its schema is newer", timeout_s=30, every_s=0.3)
        assert "0099_later" in text
        assert "start the newer release" in text
        await asyncio.sleep(1.0)
        assert "ranking" in await world.unready()
        await database.execute("update alembic_version set version_num = $1", own)
        await directed.until_ready(world, SERVICES)
    finally:
        await database.close()
