"""The SDK over NATS with an application's own credentials, against a real broker with accounts."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from landbridge.bus import accounts, streams, subjects
from landbridge.bus.connection import Bus, BusSettings
from landbridge.bus.connection import connect as connect_bus
from landbridge.bus.declare import declare
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.publish import publish_batch
from landbridge.client import InvalidError, LandbridgeError, NatsClient, UnreachableError, WaitTimeoutError, connect
from landbridge.domain.ids import cloud_event_key, operation_id
from landbridge_embedded.nats import NatsServer

DOCUMENT = "kind: Operation\n"


@dataclass
class Centre:
    """A broker with the centre's streams, and the centre's voice."""

    url: str
    coordinator: Bus
    intake: Bus
    creds: Path

    async def say(self, event: str, operation: str, sequence: int, **more: Any) -> None:
        at = datetime.now(UTC).isoformat()
        body = {"operation": operation, "project": "retail", "opSeq": sequence, "at": at, "phase": event, **more}
        await self.publish(event, body)

    async def publish(self, event: str, body: dict[str, Any]) -> None:
        subject = subjects.operation(event, "retail")
        message = Outbound(subject, event_type("operation", "OperationChanged"), json.dumps(body).encode())
        voice = self.intake if event in ("accepted", "refused") else self.coordinator
        await publish_batch(voice, streams.OPERATIONS, [message])


@pytest.fixture
async def centre(tmp_path: Path) -> AsyncIterator[Centre]:
    keys = accounts.load_or_create_keys(tmp_path / "keys")
    server = NatsServer(tmp_path, accounts=accounts.server_config(keys, tmp_path / "accounts"))
    await server.start()

    async def bus(user: accounts.IssuedUser) -> Bus:
        path = tmp_path / f"{user.name}.creds"
        path.write_text(user.credentials)
        return await connect_bus(BusSettings(url=server.url, creds=path), name=user.name)

    issuer, hub = await bus(accounts.issuer_user(keys)), await bus(accounts.service_user(keys, "streams"))
    coordinator, intake = [await bus(accounts.service_user(keys, name)) for name in ("coordinator", "intake")]
    await declare(hub, budget_bytes=1 << 30)
    await accounts.Issuer(issuer).push(accounts.project_account(keys, "retail"))
    creds = tmp_path / "app.creds"
    creds.write_text(accounts.application_user(keys, "retail", "app").credentials)
    yield Centre(server.url, coordinator, intake, creds)
    for item in (issuer, hub, coordinator, intake):
        await item.drain()
    await server.stop()


async def test_a_submission_is_stored_and_its_course_is_followed_to_the_end(centre: Centre) -> None:
    async with connect(centre.url, creds=centre.creds) as client:
        submitted = await client.submit(DOCUMENT, idempotency_key="k-1")
        assert submitted.id == operation_id("retail", cloud_event_key(client.source, "k-1"))
        for sequence, event in enumerate(("accepted", "pending", "running"), 1):
            await centre.say(event, submitted.id, sequence, environment="onprem-a")
        await centre.say("completed", submitted.id, 4, environment="onprem-a")
        seen = [event.event async for event in client.follow(submitted.id)]
        assert seen == ["accepted", "pending", "running", "completed"]
        final = await client.wait(submitted.id, timeout_s=5)
        assert (final.phase, final.environment) == ("completed", "onprem-a")


async def test_an_event_that_comes_twice_is_seen_once(centre: Centre) -> None:
    async with connect(centre.url, creds=centre.creds) as client:
        submitted = await client.submit(DOCUMENT)
        await centre.say("running", submitted.id, 3)
        await centre.say("running", submitted.id, 3)
        await centre.say("failed", submitted.id, 4)
        assert [event.event async for event in client.follow(submitted.id)] == ["running", "failed"]


async def test_a_refused_submission_raises_with_every_problem(centre: Centre) -> None:
    async with connect(centre.url, creds=centre.creds) as client:
        submitted = await client.submit(DOCUMENT, idempotency_key="bad")
        problem = {"path": "spec.command", "message": "expected a command", "line": 3}
        await centre.publish("refused", {"source": client.source, "submission": "bad", "problems": [problem]})
        with pytest.raises(InvalidError, match=r"spec\.command: expected a command") as caught:
            await client.wait(submitted.id, timeout_s=5)
        assert caught.value.problems[0].line == 3


async def test_waiting_has_a_bound(centre: Centre) -> None:
    async with connect(centre.url, creds=centre.creds) as client:
        submitted = await client.submit(DOCUMENT)
        await centre.say("running", submitted.id, 1)
        with pytest.raises(WaitTimeoutError, match="it goes on"):
            await client.wait(submitted.id, timeout_s=0.3)


async def test_cancelling_and_many_submissions_reach_their_streams(centre: Centre) -> None:
    async with connect(centre.url, creds=centre.creds) as client:
        many = await client.submit_many([DOCUMENT] * 300)
        assert len({item.id for item in many}) == 300
        await client.cancel(many[0].id, "wrong data")


async def test_another_projects_subjects_are_closed(centre: Centre) -> None:
    client = await connect(centre.url, creds=centre.creds)
    try:
        client.project = "other"
        with pytest.raises(UnreachableError, match="may not publish"):
            await client.submit(DOCUMENT)
    finally:
        await client.close()


async def test_without_a_broker_it_is_unreachable(centre: Centre) -> None:
    client = NatsClient("nats://127.0.0.1:1", centre.creds, timeout_s=0.3)
    with pytest.raises(UnreachableError):
        await client.open()


async def test_credentials_that_are_not_an_applications_are_refused(centre: Centre) -> None:
    assert centre.coordinator.settings.creds is not None
    with pytest.raises(LandbridgeError, match="expected credentials of an application"):
        NatsClient(centre.url, centre.coordinator.settings.creds)
