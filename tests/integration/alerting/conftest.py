"""A running alerting service on a real broker and Postgres, and a receiver of webhooks."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from landbridge.bus.connection import Bus
from landbridge_alerting.service import AlertingService
from landbridge_alerting.settings import AlertingSettings
from landbridge_embedded.nats import NatsServer
from support.alerting_service import SECRET_HASH, Alerting
from support.receiver import Receiver, receiving
from support.wait import wait_until

StartAlerting = Callable[..., Awaitable[Alerting]]
# Small, so that a test need not wait; each rule's own limits are tested in unit tests.
QUICK = {
    "evaluate_seconds": 0.1,
    "resolve_seconds": 0.3,
    "alert_queue_age_seconds": 0.5,
    "alert_unplaced_age_seconds": 0.5,
    "alert_lost_seconds": 5,
    "alert_evidence_grace_seconds": 1,
}


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as found:
        yield found


@pytest.fixture
async def start_alerting(
    bus: Bus, nats_server: NatsServer, migrated_dsn: Callable[..., Awaitable[str]], receiver: Receiver
) -> AsyncIterator[StartAlerting]:
    """`await start_alerting(repeat_seconds=1)`: a service that is ready; several share the database."""
    async with AsyncExitStack() as stack:
        dsn = await migrated_dsn("alerting")

        async def start(**settings: Any) -> Alerting:
            values = {
                **QUICK,
                "webhooks": f"ops={receiver.url}",
                "webhook_allow": "127.0.0.0/8",
                "nats_url": nats_server.url,
                "postgres_dsn": dsn,
                "admin_token_sha256": SECRET_HASH,
                **settings,
            }
            service = AlertingService(AlertingSettings.model_validate(values))
            task = asyncio.create_task(service.run())

            async def stop() -> None:
                service.stop()
                assert await asyncio.wait_for(task, 20) == 0

            stack.push_async_callback(stop)
            await wait_until(lambda: service.health.started or task.done(), "alerting has started")
            assert not task.done()
            made = Alerting(service, bus)
            stack.push_async_callback(made.close)
            return made

        yield start


@pytest.fixture
async def alerting(start_alerting: StartAlerting) -> Alerting:
    return await start_alerting()
