"""The configurations in deploy/nats, started from these very files: alone, as a cluster, as a centre with sites."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import generate_nats_configurations as generator
from landbridge.bus import accounts, streams, subjects
from landbridge.bus.configuration import new_user, site_domain
from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.bus.consume import Consumer
from landbridge.bus.declare import api, declare, declare_durable
from landbridge.bus.envelope import Outbound
from landbridge.bus.errors import BusError, Unavailable
from landbridge.bus.publish import publish_batch
from landbridge.bus.site_streams import DURABLE, declare_site
from support.deployed_nats import FOLDER, DeployedServer, Deployment
from support.wait import wait_until

ENVIRONMENT = generator.ENVIRONMENT
BUDGET = streams.GIB // 2


class Stage:
    """A deployment whose servers and connections end with the test."""

    def __init__(self, deployment: Deployment, stack: AsyncExitStack) -> None:
        self.deployment, self._stack = deployment, stack

    async def start(self, *, replicas: int = 1) -> Bus:
        """Start the servers and declare all streams; return the declaring connection."""
        self._stack.push_async_callback(self.deployment.stop)
        await self.deployment.start()
        bus = await self.bus("streams")
        # A cluster that has just started has to choose a leader first.
        deadline = asyncio.get_running_loop().time() + 30
        while True:
            try:
                await declare(bus, budget_bytes=BUDGET, replicas=replicas)
            except Exception:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(0.5)
            else:
                return bus

    async def bus(self, service: str) -> Bus:
        bus = await self.deployment.bus(service)
        self._stack.push_async_callback(bus.drain)
        return bus

    async def site(self) -> tuple[DeployedServer, Bus]:
        """Register the environment, start its site's NATS from leaf.conf, declare its streams."""
        keys = accounts.load_keys(self.deployment.data / "keys")
        issuer = await self._issuer(keys)
        await issuer.push(accounts.environment_account(keys, ENVIRONMENT, leaf=True))
        await declare_durable(await self.bus("contract-verifier"), streams.leaf_durable(ENVIRONMENT))
        user = new_user()
        hub = f"nats-leaf://127.0.0.1:{self.deployment.leaf_port}"
        variables = {"NATS_HUB_URL": hub, "DISPATCHER_KEY": user.public}
        server = DeployedServer(self.deployment.root / "site", "leaf.conf", "site", variables)
        (server.folder / "leaf.creds").write_text(accounts.leaf_user(keys, ENVIRONMENT).credentials)
        seed = server.folder / "dispatcher.nkey"
        seed.write_text(user.seed)
        self._stack.push_async_callback(server.stop)
        await server.start()
        bus = await connect(BusSettings(url=server.url, nkey=seed, domain=site_domain(ENVIRONMENT)), name="dispatcher")
        self._stack.push_async_callback(bus.drain)
        await declare_site(bus, ENVIRONMENT, budget_bytes=BUDGET)
        await wait_until(server.links, "the site is linked")
        return server, bus

    async def _issuer(self, keys: accounts.Keys) -> accounts.Issuer:
        text = accounts.issuer_user(keys).credentials
        bus = await connect(BusSettings(url=self.deployment.url, creds_text=text), name="issuer")
        self._stack.push_async_callback(bus.drain)
        return accounts.Issuer(bus)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        yield Stage(Deployment(tmp_path), stack)


def test_the_files_are_those_that_the_code_writes() -> None:
    for name, text in generator.files().items():
        assert (FOLDER / name).read_text() == text, f"{name}: run tools/generate_nats_configurations.py"


async def test_a_single_server_keeps_what_it_acknowledged(stage: Stage) -> None:
    server = stage.deployment.single()
    bus = await stage.start()
    intake = await stage.bus("intake")
    await publish_batch(intake, streams.OPERATIONS, [event(number) for number in range(100)])
    server.kill()
    await server.start()
    await wait_until(bus.healthy, "connected again", timeout_s=30)
    assert (await api(bus, "STREAM.INFO.OPERATIONS"))["state"]["messages"] == 100


async def test_a_cluster_of_three_goes_on_without_any_one_of_them(stage: Stage) -> None:
    servers = {server.name: server for server in stage.deployment.cluster()}
    bus = await stage.start(replicas=3)
    info = await api(bus, "STREAM.INFO.OPERATIONS")
    assert (info["config"]["num_replicas"], len(info["cluster"]["replicas"])) == (3, 2)
    intake = await stage.bus("intake")
    await publish_batch(intake, streams.OPERATIONS, [event(number) for number in range(100)])
    servers[info["cluster"]["leader"]].kill()
    await patiently(intake, [event(number) for number in range(100, 200)])

    found = Consumer(await stage.bus("lineage"), streams.OPERATIONS, "lineage")
    numbers: set[bytes] = set()
    while len(numbers) < 200:
        batch = await found.take(20)
        assert batch, f"{len(numbers)} of 200 events came"
        numbers |= {message.body for message in batch}
        await found.ack(batch)
    await found.stop()


async def test_an_account_made_while_one_server_is_down_is_known_to_it_afterwards(stage: Stage) -> None:
    first, *others = stage.deployment.cluster()
    await stage.start(replicas=3)
    first.kill()
    keys = accounts.load_keys(stage.deployment.data / "keys")
    issuer = await stage._issuer(keys)
    await issuer.push(accounts.environment_account(keys, ENVIRONMENT))
    await first.start()
    user = accounts.environment_user(keys, ENVIRONMENT).credentials
    for server in (first, *others):
        bus = await connect(BusSettings(url=server.url, creds_text=user, connect_within_s=20), name="dispatcher")
        await bus.drain()


@pytest.mark.parametrize("centre", ["hub", "cluster"])
async def test_a_centre_serves_sites_with_their_own_nats(stage: Stage, centre: str) -> None:
    if centre == "hub":
        stage.deployment.hub()
    else:
        stage.deployment.cluster()
    await stage.start(replicas=3 if centre == "cluster" else 1)
    _, local = await stage.site()
    coordinator = await stage.bus("coordinator")
    orders = [Outbound(subjects.command(ENVIRONMENT, "offer"), "t", b"%d" % number) for number in range(50)]
    await publish_batch(coordinator, streams.COMMANDS, orders)
    consumer = Consumer(local, streams.SITE_COMMANDS, DURABLE.name)
    bodies: list[int] = []
    while len(bodies) < 50:
        batch = await consumer.take(30)
        assert batch, f"{len(bodies)} of 50 orders came"
        bodies += [int(message.body) for message in batch]
        await consumer.ack(batch)
    await consumer.stop()
    assert bodies == list(range(50))
    reports = [Outbound(subjects.report(ENVIRONMENT, "attempts"), "t", b"{}") for _ in range(50)]
    await publish_batch(local, streams.REPORTS, reports)
    assert (await api(await stage.bus("streams"), "STREAM.INFO.REPORTS"))["state"]["messages"] == 50


async def test_nobody_connects_without_credentials(stage: Stage) -> None:
    server = stage.deployment.hub()
    await stage.start()
    site, _ = await stage.site()
    for url in (server.url, site.url):
        with pytest.raises(Unavailable, match="Authorization"):
            await connect(BusSettings(url=url, connect_within_s=0.7), name="nobody")


async def patiently(bus: Bus, events: list[Outbound]) -> None:
    """Publish as services do: while the others choose a leader, nobody answers for the stream."""
    async with asyncio.timeout(45):
        while True:
            try:
                return await publish_batch(bus, streams.OPERATIONS, events)
            except BusError as error:
                if not error.retryable:
                    raise


def event(number: int) -> Outbound:
    return Outbound(subjects.operation("accepted", "retail"), "t", b"%d" % number)
