"""A whole dispatcher on a cluster: what an environment promises holds there too, whoever dies in between."""

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contract.executors.cluster import NAMESPACE, KubernetesHarness
from contract.executors.harness import IMAGE
from integration.dispatcher.centre import Centre
from integration.dispatcher.site import Site
from landbridge.domain.ownership.epochs import Epoch
from landbridge.schema.wire.command_v1 import Offer
from landbridge.schema.wire.report_v1 import AttemptOutcome, AttemptState
from landbridge_dispatch.executors.kubernetes.names import name_of
from landbridge_dispatch.executors.protocol import SlotKey
from landbridge_embedded.nats import NatsServer
from support.wait import wait_until


class ClusterSite(Site):
    """A site whose bindings stand already."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        self.url = url
        self.creds = None
        self.process = None
        self.port_file = home / "port"


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


def program(seconds: float, exit_code: int = 0) -> list[str]:
    return [sys.executable, "-S", "-c", f"import sys, time; print('ran'); time.sleep({seconds}); sys.exit({exit_code})"]


async def offered(centre: Centre, seconds: float, exit_code: int = 0, **spec: Any) -> Offer:
    return await centre.offer(program(seconds, exit_code), image=IMAGE, **spec)


def slot_name(offer: Offer) -> str:
    return name_of(SlotKey(offer.operation, Epoch(offer.epoch.generation, offer.epoch.counter)))


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

    assert refused.reason == "workload-not-supported"
    assert "entry point" in refused.message


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_killed_again_and_again_while_the_api_server_comes_and_goes_each_runs_once(
    centre: Centre, cluster: KubernetesHarness, cluster_site: ClusterSite
) -> None:
    """200 operations, the dispatcher killed 20 times, the API server restarted twice, watches cut."""
    count, kills, chance = 200, 20, random.Random(11)
    await cluster_site.start()
    await centre.until_connected(timeout_s=90)
    offers: list[Offer] = []
    for number in range(kills):
        offers += [await offered(centre, chance.random() * 2, at % 3) for at in range(count // kills)]
        await asyncio.sleep(chance.random() * 8)
        await cluster_site.kill()
        if number in (6, 13):
            await cluster.cluster.restart(2.0)
        cluster.cluster.cut_watches()
        if number % 5 == 4:
            cluster.cluster.compact()
        centre.may_start = False
        await cluster_site.start()
        await centre.until_connected(timeout_s=120)
    for at, offer in enumerate(offers):
        report = await centre.until(offer, AttemptState.FINISHED, AttemptState.RELINQUISHED, timeout_s=300)
        if report.state is AttemptState.FINISHED:
            assert report.exit_code == at % (count // kills) % 3, offer
            ends = {(each.outcome, each.exit_code) for each in centre.of(offer, AttemptState.FINISHED)}
            assert len(ends) == 1
    names = {slot_name(offer) for offer in offers}
    jobs = {job["metadata"]["name"] for job in cluster.cluster.all_of("jobs", namespace=NAMESPACE)}
    assert jobs <= names, "no orphan"
    # A log is written by the workload alone: one line of each that ran, never two.
    texts = cluster.cluster.server.logs.texts.values()
    assert all(text in ("", "ran\n") for text in texts)
    finished = [offer for offer in offers if centre.of(offer, AttemptState.FINISHED)]
    assert sum(text == "ran\n" for text in texts) == len(finished)
    assert len(finished) > count // 2
