"""A whole dispatcher on a cluster: what an environment promises holds there too, whoever dies in between."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from contract.executors.cluster import NAMESPACE, KubernetesHarness
from contract.executors.harness import IMAGE, Watcher, make_executor
from integration.dispatcher.centre import Centre
from integration.dispatcher.restarts import (
    ClusterSite,
    all_ended,
    each_ran_once,
    killed_again_and_again,
    program,
    slot_name,
)
from landbridge.schema.wire.command_v1 import Offer
from landbridge.schema.wire.report_v1 import AttemptOutcome, AttemptState
from landbridge_dispatch.executors.kubernetes.api import Api
from landbridge_dispatch.executors.kubernetes.executor import KubernetesExecutor
from landbridge_embedded.nats import NatsServer
from support.kubernetes import FakeCluster
from support.kubernetes_economy import requests_a_second, running_jobs
from support.wait import wait_until


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[KubernetesHarness]:
    harness = KubernetesHarness(tmp_path / "site")
    async with harness.around():
        yield harness


@pytest.fixture
async def cluster_site(
    cluster: KubernetesHarness, nats_server: NatsServer, centre: Centre
) -> AsyncIterator[ClusterSite]:
    made = ClusterSite(cluster.home, nats_server.url)
    yield made
    await made.close()


async def offered(centre: Centre, seconds: float, exit_code: int = 0, **spec: Any) -> Offer:
    return await centre.offer(program(seconds, exit_code), image=IMAGE, **spec)


async def test_an_operation_is_claimed_run_reported_settled_and_removed(
    centre: Centre, cluster: KubernetesHarness, cluster_site: ClusterSite
) -> None:
    await cluster_site.start()
    await centre.until_connected(timeout_s=60)
    offer = await offered(centre, 0.2, 3)

    report = await centre.until(offer, AttemptState.FINISHED, timeout_s=60)

    assert (report.outcome, report.exit_code) == (AttemptOutcome.FAILED, 3)
    assert report.resolved is not None
    assert report.resolved.principal == f"system:serviceaccount:{NAMESPACE}:default"
    assert report.resolved.image_digest == IMAGE["digest"]
    assert report.resolved.workload == f"{NAMESPACE}/{slot_name(offer)}"
    await centre.settle(offer)
    centre.raise_term()
    await wait_until(
        lambda: cluster.cluster.get("jobs", slot_name(offer), namespace=NAMESPACE) is None,
        "the settled slot is removed when its term is over",
        timeout_s=60,
    )


async def test_work_of_an_image_without_command_is_refused_in_words(centre: Centre, cluster_site: ClusterSite) -> None:
    await cluster_site.start()
    await centre.until_connected(timeout_s=60)
    offer = await centre.offer([], image=IMAGE)

    refused = await centre.until(offer, AttemptState.REFUSED, timeout_s=30)

    assert refused.reason == "command-missing"
    assert "write what it starts by itself" in refused.message


class InProcess:
    """The cluster in this process."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    async def cut_watches(self) -> None:
        self._cluster.cut_watches()

    async def restart(self) -> None:
        await self._cluster.restart(2.0)

    async def forget(self) -> None:
        self._cluster.compact()

    async def jobs(self) -> set[str]:
        return {job["metadata"]["name"] for job in self._cluster.all_of("jobs", namespace=NAMESPACE)}

    def texts(self) -> Iterable[str]:
        return self._cluster.server.logs.texts.values()


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_killed_again_and_again_while_the_api_server_comes_and_goes_each_runs_once(
    centre: Centre, cluster: KubernetesHarness, cluster_site: ClusterSite
) -> None:
    """200 operations, the dispatcher killed 20 times, the API server restarted twice, watches cut."""
    within = InProcess(cluster.cluster)
    placed = await killed_again_and_again(centre, cluster_site, within)
    await all_ended(centre, within, placed)
    await each_ran_once(centre, within, placed)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_thousand_running_jobs_cost_at_most_two_requests_a_second(cluster: KubernetesHarness) -> None:
    # Its node does nothing here: looking at a thousand pods fifty times a second would be all that this process does.
    cluster.node.accepts, cluster.node.step_s = False, 3600.0
    executor, admin = make_executor(cluster.home), Api(host=cluster.cluster.url)
    assert isinstance(executor, KubernetesExecutor)
    await admin.open()
    await executor.open()
    watcher = Watcher(executor)
    try:
        await running_jobs(executor, watcher, admin, NAMESPACE, 1000)
        found = await requests_a_second(executor, 30.0)
    finally:
        await watcher.close()
        await executor.close()
        await admin.close()
    print(f"1000 running Jobs: {found:.2f} requests a second besides watches")
    assert found <= 2.0
