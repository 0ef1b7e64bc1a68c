"""Only nodes on which a trial ran count, and only as they were then."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from integration.kubernetes.probing import (
    CAPACITY,
    SPACE,
    a_dispatcher,
    a_node,
    a_space,
    found_by,
    honest,
    jobs_of_probes,
    pinned,
    probes_of,
    some_bindings,
)
from landbridge.domain.probe_kinds import CONNECTION, STORAGE, WORKLOAD
from landbridge.schema.wire.report_v1 import EvidenceResult
from support.kubernetes import Course, FakeCluster
from support.wait import wait_until

PROVEN, FAILED, UNKNOWN = EvidenceResult.PROVEN, EvidenceResult.FAILED, EvidenceResult.UNKNOWN
GPUS = {"count": 12, "via": {"resource": "nvidia.com/gpu"}}
GPU = {"nvidia.com/gpu": "8"}


def _prepared(cluster: FakeCluster) -> str:
    a_space(cluster)
    cluster.put("nodes", a_node("gpu-1", **GPU))
    cluster.put("nodes", a_node("gpu-2", **{"nvidia.com/gpu": "4"}))
    cluster.put("nodes", a_node("plain"))
    cluster.kubelet.course = honest
    return a_dispatcher(cluster)


def _ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _waiting(cluster: FakeCluster) -> int:
    pods = cluster.all_of("pods", namespace=SPACE)
    return sum(pod["status"]["phase"] == "Pending" for pod in pods)


def _nodes(affinity: dict[str, Any]) -> list[str]:
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [term["matchFields"][0]["values"][0] for term in terms]


async def test_nodes_count_that_ran_a_trial_with_their_devices(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        found = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})
        before = jobs_of_probes(cluster)
        again = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})

    assert (found.result, found.proven, found.claimed, found.detail) == (PROVEN, 12, 12, "")
    assert found.subject.startswith("2 nodes, state ")
    assert again == found
    assert len(before) == 2
    assert jobs_of_probes(cluster) == before, "what is proven is not tried again"
    pods = cluster.all_of("pods", namespace=SPACE)
    assert all(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1" for pod in pods)
    assert _nodes(probes.affinity("gpu-80gb")) == ["gpu-1", "gpu-2"]
    assert probes.affinity("") == {}, "plain classes were not probed yet"


async def test_a_node_that_fails_does_not_count_and_is_named(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    cluster.kubelet.course = lambda pod: honest(pod, exit_code=3 if pinned(pod) == "gpu-2" else 0)
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        found = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})

    assert (found.result, found.proven) == (PROVEN, 8)
    assert found.detail.startswith("1 of 2 nodes proven; node gpu-2: exit code 3: ")
    assert _nodes(probes.affinity("gpu-80gb")) == ["gpu-1"]


async def test_a_node_whose_clock_is_off_does_not_count(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    cluster.kubelet.course = lambda pod: honest(pod, clock_off_s=90 if pinned(pod) == "gpu-1" else 0)
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        found = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})

    assert found.proven == 4
    assert "node gpu-1: its clock is " in found.detail
    assert "ahead" in found.detail


async def test_a_pod_that_says_something_else_proves_nothing(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    cluster.kubelet.course = lambda pod: Course(run_s=0, message=f"other {time.time():.0f}", node="gpu-1")
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        found = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})

    assert (found.result, found.proven) == (FAILED, 0)


async def test_another_boot_or_driver_voids_the_proof_at_once(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        first = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})
        voided = probes.voided()
        waiting = asyncio.ensure_future(anext(voided))
        cluster.kubelet.course = lambda pod: honest(pod, exit_code=9 if pinned(pod) == "gpu-1" else 0)
        cluster.put("nodes", a_node("gpu-1", boot="boot-2", **GPU))
        void = await asyncio.wait_for(waiting, 5)
        second = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})
        waiting = asyncio.ensure_future(anext(voided))
        driver = {"nvidia.com/cuda.driver-version.full": "580.1"}
        cluster.put("nodes", a_node("gpu-2", labels=driver, **{"nvidia.com/gpu": "4"}))
        await asyncio.wait_for(waiting, 5)
        third = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})
        await voided.aclose()  # type: ignore[attr-defined]

    assert void == ["classes.gpu-80gb"]
    assert (first.proven, second.proven, third.proven) == (12, 4, 4)
    assert len({first.subject, second.subject, third.subject}) == 3


async def test_proofs_outlive_the_dispatcher(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        first = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})
    jobs = jobs_of_probes(cluster)
    cluster.kubelet.course = lambda pod: None
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        second = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})

    assert second == first
    assert jobs_of_probes(cluster) == jobs


async def test_while_all_devices_are_at_work_the_last_proof_of_the_same_node_counts(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    cluster.delete("nodes", "gpu-2")
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        first = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})
    [job] = cluster.all_of("jobs", namespace=SPACE)
    for condition in job["status"]["conditions"]:
        condition["lastTransitionTime"] = _ago(3600)
    cluster.put("jobs", job, namespace=SPACE)
    cluster.kubelet.course = lambda pod: None
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        running = asyncio.ensure_future(found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"}))
        await wait_until(lambda: _waiting(cluster) == 1, "a new trial waits for room")
        [pod] = [pod for pod in cluster.all_of("pods", namespace=SPACE) if pod["status"]["phase"] == "Pending"]
        told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        told["message"] = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
        cluster.set_pod_status(pod["metadata"]["name"], {"conditions": [told]}, namespace=SPACE)
        busy = await running
        voided = probes.voided()
        waiting = asyncio.ensure_future(anext(voided))
        cluster.put("nodes", a_node("gpu-1", boot="boot-2", **GPU))
        await asyncio.wait_for(waiting, 5)
        await voided.aclose()  # type: ignore[attr-defined]
        other = await found_by(probes, CAPACITY, GPUS, timeout_s=8, **{"class": "gpu-80gb"})

    assert (first.proven, busy.proven, other.proven) == (8, 8, 0)
    assert busy.subject == first.subject


async def test_trials_of_nodes_that_are_gone_go_too(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})
        cluster.delete("nodes", "gpu-2")
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        found = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})

    assert found.proven == 8
    assert len(jobs_of_probes(cluster)) == 1


async def test_another_image_is_another_proof(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        first = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})
    other = some_bindings(kubernetes={"probes": {"image": "registry.site/tools/box@sha256:" + "8" * 64}})
    jobs = jobs_of_probes(cluster)
    async with probes_of(cluster, other, token=token) as probes:
        second = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})

    assert second.proven == first.proven
    assert second.subject != first.subject
    assert not set(jobs_of_probes(cluster).values()) & set(jobs.values())


async def test_plain_processors_are_counted_where_their_work_can_run(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    taint = {"key": "gpu", "effect": "NoSchedule"}
    for name in ("gpu-1", "gpu-2"):
        cluster.delete("nodes", name)
    cluster.put("nodes", a_node("tainted", taints=[taint], **GPU))
    away = a_node("away")
    away["spec"]["unschedulable"] = True
    cluster.put("nodes", away)
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        found = await found_by(probes, CAPACITY, {"cpu": "8", "memory": "16Gi"}, **{"class": "cpu-general"})

    assert (found.result, found.proven, found.claimed) == (PROVEN, 4, 8)
    assert found.subject.startswith("1 node, ")


async def test_a_class_that_no_node_has_fails(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    claim = {"count": 8, "via": {"resource": "amd.com/gpu"}}
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        found = await found_by(probes, CAPACITY, claim, **{"class": "gpu-amd"})

    assert (found.result, found.proven, found.detail) == (FAILED, 0, "no ready node has what the class claims")


async def test_without_an_image_nothing_is_proven(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    async with probes_of(cluster, some_bindings(kubernetes={"probes": {}}), token=token) as probes:
        found = await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})
        runtime = await found_by(probes, WORKLOAD, {})

    assert (found.result, runtime.result) == (UNKNOWN, UNKNOWN)
    assert "kubernetes.probes.image" in runtime.detail


async def test_storage_is_bound_written_and_read(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        found = await found_by(probes, STORAGE, {"storageClass": "nvme"}, storage="fast")

    [pod] = cluster.all_of("pods", namespace=SPACE)
    claim = pod["spec"]["volumes"][0]["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert (found.result, claim["storageClassName"]) == (PROVEN, "nvme")
    assert "/probe/sample" in pod["spec"]["containers"][0]["command"][-3]


async def test_a_trial_that_cannot_start_says_why(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    cluster.kubelet.course = lambda pod: None
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        running = asyncio.ensure_future(
            found_by(probes, STORAGE, {"storageClass": "gone"}, storage="fast", timeout_s=8)
        )
        await wait_until(lambda: len(cluster.all_of("pods", namespace=SPACE)) == 1, "the trial's pod")
        [pod] = cluster.all_of("pods", namespace=SPACE)
        told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "unbound claim"}
        cluster.set_pod_status(pod["metadata"]["name"], {"conditions": [told]}, namespace=SPACE)
        found = await running

    assert (found.result, found.detail) == (FAILED, "Unschedulable: unbound claim")


async def test_connections_are_mounted_as_work_mounts_them_and_registries_pulled(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    connections = {
        "models": {"access": "read-write", "options": {"claim": "models"}},
        "tools": {"options": {"registry": "registry.site/tools"}},
        "store": {"secrets": {}, "options": {"secretEnv": {"KEY": {"secret": "s", "key": "k"}}}},
    }
    async with probes_of(cluster, some_bindings(connections=connections), token=token) as probes:
        results = {
            name: await found_by(probes, CONNECTION, {}, connection=name, access="read-write")
            for name in (*connections, "unknown")
        }

    assert {name: found.result for name, found in results.items()} == {
        "models": PROVEN,
        "tools": PROVEN,
        "store": UNKNOWN,
        "unknown": FAILED,
    }
    volumes = [pod["spec"].get("volumes") for pod in cluster.all_of("pods", namespace=SPACE)]
    assert [{"name": "probe", "persistentVolumeClaim": {"claimName": "models", "readOnly": False}}] in volumes


async def test_trials_are_tried_no_more_often_than_needed(cluster: FakeCluster) -> None:
    token = _prepared(cluster)
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})
        before = cluster.requests().total()
        for _ in range(20):
            await found_by(probes, CAPACITY, GPUS, **{"class": "gpu-80gb"})

    assert cluster.requests().total() - before <= 2
