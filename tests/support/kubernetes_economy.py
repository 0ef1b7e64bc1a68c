"""How many requests a dispatcher sends an API server for work that runs and changes nothing. Statuses are written."""

import asyncio
import time
from collections.abc import Sequence

from contract.executors.harness import Watcher, a_lease, a_work
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.api import Api, Object
from landbridge_dispatch.executors.kubernetes.executor import KubernetesExecutor
from landbridge_dispatch.executors.protocol import Work
from support.kubernetes.kubelet import Kubelet
from support.wait import wait_until

ALL_THERE_S = 600.0
SETTLES_S = 5.0
BATCH = 50


async def running_jobs(
    executor: KubernetesExecutor, watcher: Watcher, admin: Api, namespace: str, count: int
) -> list[Work]:
    """Start `count` Jobs and write what a node and the lease keeper would: that their pods run and have the slots."""
    works = [a_work(["sleep", "3600"]) for _ in range(count)]
    for start in range(0, count, BATCH):
        batch = works[start : start + BATCH]
        assert await executor.occupy(batch) == [None] * len(batch)
        await executor.start([work.key for work in batch])
    pods = await _pods(admin, namespace, count)
    for start in range(0, count, BATCH):
        await asyncio.gather(*(_runs(admin, namespace, pod) for pod in pods[start : start + BATCH]))
    await wait_until(
        lambda: len({view.key for view in watcher.views if view.phase is SlotPhase.RUNNING}) == count,
        f"all {count} run",
        timeout_s=ALL_THERE_S,
        every_s=1.0,
    )
    return works


async def requests_a_second(executor: KubernetesExecutor, seconds: float) -> float:
    """Return how many requests besides watches it sends while nothing changes but its lease, which is renewed."""
    await asyncio.sleep(SETTLES_S)
    before, began = executor.api.requests, time.monotonic()
    while time.monotonic() - began < seconds:
        executor.hold_lease(a_lease())
        await asyncio.sleep(1.0)
    return (executor.api.requests - before) / (time.monotonic() - began)


async def _pods(admin: Api, namespace: str, count: int) -> Sequence[Object]:
    found: list[Object] = []

    async def all_there() -> bool:
        found[:], _ = await admin.list(f"/api/v1/namespaces/{namespace}/pods", f"{names.MANAGED_BY}={names.MANAGER}")
        return len(found) == count

    await wait_until(all_there, f"{count} pods are there", timeout_s=ALL_THERE_S, every_s=2.0)
    return found


async def _runs(admin: Api, namespace: str, pod: Object) -> None:
    meta = pod["metadata"]
    Kubelet.start(pod)
    await admin.merge(f"/api/v1/namespaces/{namespace}/pods/{meta['name']}/status", {"status": pod["status"]})
    claims = records.encode({"0": records.Claim(meta["uid"], time.time(), "node")})
    slot = f"/apis/batch/v1/namespaces/{namespace}/jobs/{meta['labels'][names.SLOT]}"
    await admin.merge(slot, {"metadata": {"annotations": {names.CLAIMS: claims}}})
