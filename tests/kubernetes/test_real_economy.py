"""What a thousand running Jobs cost a real API server: no kubelet is needed, their status is written."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contract.executors.conftest import working
from contract.executors.harness import Watcher
from contract.executors.real_cluster import RealKubernetesHarness
from landbridge_dispatch.executors.kubernetes.executor import KubernetesExecutor
from support.kubernetes.access_point import real_is_wanted
from support.kubernetes_economy import requests_a_second, running_jobs

pytestmark = [
    pytest.mark.skipif(not real_is_wanted(), reason="no cluster: see make test-restarts"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]
JOBS = 1000
MEASURED_S = 30.0
REQUESTS_A_SECOND = 2.0


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[RealKubernetesHarness]:
    made = RealKubernetesHarness(tmp_path / "site")
    made.runs_pods = False
    async with made.around():
        async for _ in working(made):
            yield made


async def test_a_thousand_running_jobs_cost_at_most_two_requests_a_second(harness: RealKubernetesHarness) -> None:
    executor = harness.executor
    assert isinstance(executor, KubernetesExecutor)
    watcher = Watcher(executor)
    try:
        await running_jobs(executor, watcher, harness.admin, harness.namespace, JOBS)
        found = await requests_a_second(executor, MEASURED_S)
    finally:
        await watcher.close()
    print(f"{JOBS} running Jobs: {found:.2f} requests a second besides watches")
    assert found <= REQUESTS_A_SECOND
