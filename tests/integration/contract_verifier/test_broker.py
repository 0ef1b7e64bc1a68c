"""Whether the broker has on disk what it acknowledges: asked of real servers, told by the service's health."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from fixtures.bus import SecuredNats
from landbridge.bus import accounts
from landbridge.bus.errors import BusError
from landbridge.bus.servers import StoringServer, storing_servers
from landbridge.runtime.asking import ask
from landbridge.schema.wire.request_v1 import BrokerRequest
from landbridge_contract_verifier.service import ContractVerifierService
from landbridge_embedded.nats import NatsServer
from support.verifier_service import Verifier, settings_of
from support.wait import wait_until


@pytest.fixture
async def late(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SecuredNats]:
    """A broker with accounts that syncs every two minutes, which is what servers do unless they are told otherwise."""
    root = tmp_path_factory.mktemp("late")
    secured = SecuredNats(root)
    config = accounts.server_config(secured.keys, root / "resolver")
    secured.server = NatsServer(root, accounts=config, sync_interval="2m")
    await secured.server.start()
    await secured.declare()
    yield secured
    await secured.close()
    await secured.server.stop()


async def test_every_server_says_whether_it_syncs_always(secured: SecuredNats, late: SecuredNats) -> None:
    for broker, always in ((secured, True), (late, False)):
        system = await broker.open(accounts.issuer_user(broker.keys))
        assert await storing_servers(system, gather_s=0.3) == [StoringServer("landbridge", syncs_always=always)]


async def test_who_pushes_accounts_may_ask_servers_nothing_else(secured: SecuredNats) -> None:
    system = await secured.open(accounts.issuer_user(secured.keys))
    for subject in ("$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.SERVER.PING.VARZ", "$SYS.REQ.SERVER.PING"):
        with pytest.raises(BusError, match="may not publish"):
            await system.request(subject, b"", 2.0)


async def readiness(service: ContractVerifierService) -> dict[str, tuple[str, str]]:
    report = await service.health.readyz()
    return {result.name: (result.state, result.message) for result in report.results}


async def test_a_broker_that_syncs_late_is_told_of_with_the_way_to_mend_it_and_does_not_stop_the_service(
    late: SecuredNats, migrated_dsn: Callable[..., Awaitable[str]]
) -> None:
    service = ContractVerifierService(settings_of(late, await migrated_dsn("contract-verifier")))
    task = asyncio.create_task(service.run())
    try:

        async def told() -> bool:
            return service.health.started and (await readiness(service))["broker-sync"][0] == "degraded"

        await wait_until(told, "the health says it")
        message = (await readiness(service))["broker-sync"][1]
        assert "expected sync_interval: always" in message
        assert "on landbridge: what is acknowledged there is not on disk yet" in message
        assert (await service.health.readyz()).healthy
        reply = await ask(await late.service("alerting"), "contract-verifier", "broker", BrokerRequest())
        assert (reply.found, reply.json) == (True, b'["landbridge"]')
    finally:
        service.stop()
        assert await asyncio.wait_for(task, 20) == 0


async def test_one_that_syncs_always_is_fine(verifier: Verifier) -> None:
    await asyncio.sleep(1.5)  # longer than servers are given to answer
    assert (await readiness(verifier.service))["broker-sync"] == ("ok", "")
    reply = await ask(await verifier.secured.service("alerting"), "contract-verifier", "broker", BrokerRequest())
    assert (reply.found, reply.json) == (True, b"[]")
