"""A whole dispatcher on a real API server: whoever dies in between, each operation runs once and ends once.

Pods run as processes of this machine, so that the test sees what each did. The dispatcher reaches the API server
through a proxy, whose connections are cut. `LANDBRIDGE_TEST_API_RESTART` may name a command that restarts the API
server; without it, it is only out of the dispatcher's reach for a while.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from contract.executors.real_cluster import RealKubernetesHarness
from integration.dispatcher.centre import Centre
from integration.dispatcher.restarts import ClusterSite, all_ended, each_ran_once, killed_again_and_again
from landbridge.bus.connection import Bus
from landbridge_embedded.nats import NatsServer
from support.kubernetes.access_point import real_is_wanted
from support.proxy import Proxy

pytestmark = [
    pytest.mark.skipif(not real_is_wanted(), reason="no cluster: see make test-restarts"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]
AWAY_S = 5.0
RESTART = "LANDBRIDGE_TEST_API_RESTART"


class RealCluster:
    """The cluster of KUBECONFIG behind a proxy."""

    def __init__(self, harness: RealKubernetesHarness, proxy: Proxy) -> None:
        self._harness = harness
        self._proxy = proxy

    async def cut_watches(self) -> None:
        self._proxy.reset()

    async def restart(self) -> None:
        await self._proxy.close()
        if command := os.environ.get(RESTART):
            process = await asyncio.create_subprocess_shell(command)
            assert await process.wait() == 0, f"{RESTART}: {command} has failed"
        else:
            await asyncio.sleep(AWAY_S)
        await self._proxy.open()

    async def forget(self) -> None:
        """A real server forgets by itself, in minutes."""

    async def jobs(self) -> set[str]:
        found, _ = await self._harness.admin.list(f"/apis/batch/v1/namespaces/{self._harness.namespace}/jobs")
        return {job["metadata"]["name"] for job in found}

    def texts(self) -> Iterable[str]:
        return [text.decode() for text in self._harness.backend.texts.values()]


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[RealKubernetesHarness]:
    made = RealKubernetesHarness(tmp_path / "site")
    async with made.around():
        yield made


@pytest.fixture
async def cluster(harness: RealKubernetesHarness) -> AsyncIterator[RealCluster]:
    path = harness.home / "kubeconfig.yaml"
    config = yaml.safe_load(path.read_text())
    server = config["clusters"][0]["cluster"]
    address = urlsplit(server["server"])
    assert address.hostname is not None
    async with Proxy(lambda: address.port or 443, host=address.hostname) as proxy:
        server |= {"server": f"{address.scheme}://127.0.0.1:{proxy.port}", "tls-server-name": address.hostname}
        path.write_text(yaml.safe_dump(config))
        yield RealCluster(harness, proxy)


@pytest.fixture
async def centre(bus: Bus) -> AsyncIterator[Centre]:
    found = Centre(bus)
    await found.open()
    yield found
    await found.close()


async def test_killed_again_and_again_while_the_api_server_comes_and_goes_each_runs_once(
    centre: Centre, harness: RealKubernetesHarness, cluster: RealCluster, nats_server: NatsServer
) -> None:
    """200 operations, the dispatcher killed 20 times, the API server away twice, its connections cut each time."""
    site = ClusterSite(harness.home, nats_server.url)
    try:
        placed = await killed_again_and_again(centre, site, cluster)
        await all_ended(centre, cluster, placed)
        await each_ran_once(centre, cluster, placed)
    finally:
        await site.close()
