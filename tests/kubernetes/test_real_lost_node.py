"""A node that the cluster has given up while its pods run on: nothing else may own their work yet.

The API server and its controllers are real. The node is a process of this machine that nobody can reach any more.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contract.executors.harness import Behaviour, Watcher, a_lease, a_work, make_executor, run
from contract.executors.real_cluster import RealKubernetesHarness
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.schema.wire.report_v1 import AttemptOutcome
from landbridge_dispatch.executors.kubernetes import names, vouching
from landbridge_dispatch.executors.kubernetes.api import Object
from support.kubernetes.access_point import real_is_wanted
from support.wait import wait_until

pytestmark = [
    pytest.mark.skipif(not real_is_wanted(), reason="no cluster: see make test-restarts"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
COLLECTED_S = 180.0
"""How long the cluster may take to give up pods of a node that is gone: it looks every 20 s, and waits for 40 s."""
MARGIN_S = 10.0


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[RealKubernetesHarness]:
    made = RealKubernetesHarness(tmp_path / "site")
    async with made.around():
        yield made


async def test_pods_of_a_removed_node_are_lost_only_after_their_grace(
    harness: RealKubernetesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vouching, "MARGIN_S", MARGIN_S)
    executor = make_executor(harness.home)
    await executor.open()
    executor.hold_lease(a_lease(seconds=3600))
    watcher = Watcher(executor)
    work = a_work(harness.command(Behaviour(seconds=600)), lifecycle={"stopGrace": "1s"})
    seen: list[Object] = []

    async def given_up() -> bool:
        found, _ = await harness.admin.list(
            f"/api/v1/namespaces/{harness.namespace}/pods", f"{names.SLOT}={names.name_of(work.key)}"
        )
        seen.extend(pod for pod in found if pod["status"]["phase"] == "Failed")
        return bool(seen) or not found

    try:
        await run(executor, work)
        await watcher.until(work.key, SlotPhase.RUNNING, timeout_s=60)
        await harness.backend.lose()
        await wait_until(given_up, "the cluster has given its pod up", timeout_s=COLLECTED_S, every_s=0.2)
        given_up_at = asyncio.get_running_loop().time()
        assert harness.node.busy, "what the cluster has given up runs on"
        assert SlotPhase.FINISHED not in watcher.phases(work.key)

        view = await watcher.end(work.key, timeout_s=60)
    finally:
        await watcher.close()
        await executor.close()
    assert view.report is not None
    assert (view.report.outcome, view.reason) == (AttemptOutcome.FAILED, "node-lost")
    assert asyncio.get_running_loop().time() - given_up_at >= MARGIN_S
    assert all(pod["status"]["containerStatuses"][0]["state"].keys() == {"running"} for pod in seen)
