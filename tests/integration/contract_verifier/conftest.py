"""A running contract-verifier on a broker with accounts and a real Postgres."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from fixtures.bus import SecuredNats
from landbridge_contract_verifier.service import ContractVerifierService
from support.verifier_service import Verifier, settings_of
from support.wait import wait_until

StartVerifier = Callable[..., Awaitable[Verifier]]


@pytest.fixture
async def start_verifier(
    secured: SecuredNats, migrated_dsn: Callable[..., Awaitable[str]]
) -> AsyncIterator[StartVerifier]:
    """`await start_verifier(canary_seconds=1)`: a service that is ready; several share the database."""
    async with AsyncExitStack() as stack:
        dsn = await migrated_dsn("contract-verifier")

        async def start(**settings: Any) -> Verifier:
            service = ContractVerifierService(settings_of(secured, dsn, **settings))
            task = asyncio.create_task(service.run())

            async def stop() -> None:
                service.stop()
                assert await asyncio.wait_for(task, 20) == 0

            stack.push_async_callback(stop)
            await wait_until(lambda: service.health.started or task.done(), "the verifier has started")
            assert not task.done()
            made = Verifier(service, secured, await secured.service("intake"))
            stack.push_async_callback(made.close)
            return made

        yield start


@pytest.fixture
async def verifier(start_verifier: StartVerifier) -> Verifier:
    return await start_verifier()
