"""A pod that a cluster counts as ended, or has no more, while its container runs on: its slot is not given back."""

import asyncio
from typing import Any

import pytest

from contract.executors.cluster import NAMESPACE, KubernetesHarness
from contract.executors.harness import Behaviour, Watcher, a_work, make_executor, run
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.schema.wire.report_v1 import AttemptOutcome
from landbridge_dispatch.executors.kubernetes import names, vouching
from landbridge_dispatch.executors.protocol import Work
from support.wait import wait_until

MARGIN_S = 3.0
LOSING = {"lifecycle": {"stopGrace": "100ms"}}
WAIT_S = 6.0 + MARGIN_S
"""What such work is given to stop and be killed, in whole seconds, and the margin."""


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vouching, "MARGIN_S", MARGIN_S)
    monkeypatch.setattr(vouching, "LOOK_S", 0.2)


async def running(harness: KubernetesHarness, watcher: Watcher, behaviour: Behaviour, **spec: Any) -> tuple[Work, str]:
    """Work that runs on a node that is ready, and its pod's name."""
    node_is(harness, "True")
    work = a_work(harness.command(behaviour), **spec)
    await run(harness.executor, work)
    await watcher.until(work.key, SlotPhase.RUNNING, timeout_s=30)
    await wait_until((harness.directory(work.key) / "ready").exists, "the workload is ready", timeout_s=30)
    [pod] = harness.cluster.pods_of(names.name_of(work.key), namespace=NAMESPACE)
    return work, pod["metadata"]["name"]


def node_is(harness: KubernetesHarness, ready: str) -> None:
    """The node of all pods is there, and is heard of or not."""
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": f"2026-12-01T10:00:0{len(ready)}Z"}
    harness.cluster.put("nodes", {"metadata": {"name": "node-1"}, "status": {"conditions": [condition]}})


async def told(harness: KubernetesHarness, work: Work) -> str:
    """What is said of work that counts as running; empty for other work."""
    view = await harness.executor.look(work.key)
    assert view is not None
    return view.report.message if view.report is not None and view.phase is SlotPhase.RUNNING else ""


async def test_a_pod_marked_as_failed_while_it_runs_ends_when_its_node_says_so(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    work, pod = await running(kubernetes, cluster_watcher, Behaviour(seconds=6, exit_code=3), **LOSING)
    kubernetes.cluster.set_pod_status(pod, {"phase": "Failed", "reason": "DeadlineExceeded"}, namespace=NAMESPACE)

    async def doubted() -> bool:
        return "node node-1 has not said that its container has ended" in await told(kubernetes, work)

    await wait_until(doubted, "it is said that its end is not sure")
    while kubernetes.node.busy:
        assert SlotPhase.FINISHED not in cluster_watcher.phases(work.key)
        await asyncio.sleep(0.05)

    view = await cluster_watcher.end(work.key, timeout_s=30)
    assert view.report is not None
    assert (view.report.outcome, view.report.exit_code) == (AttemptOutcome.FAILED, 3)


async def test_a_pod_that_vanishes_without_a_trace_is_removed_externally_once_its_node_must_have_ended_it(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    work, pod = await running(kubernetes, cluster_watcher, Behaviour(seconds=60), **LOSING)
    vanished_at = asyncio.get_running_loop().time()
    kubernetes.cluster.delete("pods", pod, namespace=NAMESPACE, force=True)

    view = await cluster_watcher.end(work.key, timeout_s=60)

    assert view.report is not None
    assert (view.report.outcome, view.reason) == (AttemptOutcome.FAILED, "removed-externally")
    assert asyncio.get_running_loop().time() - vanished_at >= WAIT_S - 0.5


async def test_work_of_a_node_that_is_not_heard_of_is_given_up_when_the_node_is_removed(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    work, pod = await running(kubernetes, cluster_watcher, Behaviour(seconds=60), **LOSING)
    node_is(kubernetes, "Unknown")
    lost = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "node is gone"}
    kubernetes.cluster.set_pod_status(pod, {"phase": "Failed", "conditions": [lost]}, namespace=NAMESPACE)
    kubernetes.cluster.delete("pods", pod, namespace=NAMESPACE, force=True)

    async def doubted() -> bool:
        return "its pod is gone, and node node-1 is not heard of" in await told(kubernetes, work)

    await wait_until(doubted, "it is said that its node is not heard of")
    await asyncio.sleep(WAIT_S + 1)
    assert SlotPhase.FINISHED not in cluster_watcher.phases(work.key)

    kubernetes.cluster.delete("nodes", "node-1", force=True)

    view = await cluster_watcher.end(work.key, timeout_s=60)
    assert view.report is not None
    assert (view.report.outcome, view.reason) == (AttemptOutcome.FAILED, "node-lost")


async def test_whoever_comes_next_gives_back_nothing_earlier(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    work, pod = await running(kubernetes, cluster_watcher, Behaviour(seconds=60), **LOSING)
    node_is(kubernetes, "Unknown")
    await kubernetes.executor.close()
    kubernetes.cluster.delete("pods", pod, namespace=NAMESPACE, force=True)

    kubernetes.executor = make_executor(kubernetes.home)
    await kubernetes.executor.open()

    for _ in range(2):
        [found] = await kubernetes.executor.inventory()
        assert found.phase is SlotPhase.RUNNING
        await asyncio.sleep(WAIT_S / 2 + 1)
    assert "is not heard of" in await told(kubernetes, work)
