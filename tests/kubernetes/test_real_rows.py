"""Rows of the table of states that the cluster itself brings about: it takes pods away, or cannot start them."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from contract.executors.harness import a_lease, stop
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.domain.ownership.leases import NO_LEASE
from landbridge.schema.wire.report_v1 import AttemptOutcome
from landbridge_dispatch.executors.kubernetes.api import Object
from landbridge_dispatch.executors.protocol import Work
from support.kubernetes.access_point import image, real_is_wanted
from support.kubernetes_disruptions import (
    bound_to_node,
    class_without_runtime,
    container_killed,
    deleted,
    evicted,
    image_without_shell,
    node_lost,
    node_with_device,
    preempted,
    told_failed,
)
from support.kubernetes_pods import Pods
from support.kubernetes_site import STARTS_S
from support.wait import wait_until

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        not real_is_wanted() or not image(), reason="no cluster whose pods run: see make test-kubernetes"
    ),
    pytest.mark.timeout(300),
]

Disruption = Callable[[Pods, Object], AbstractAsyncContextManager[None]]
ON_DEVICE = {"resources": {"accelerator": {"class": "device", "count": 1}}}
DISRUPTIONS = [
    (evicted, "evicted"),
    (preempted, "preempted-by-cluster"),
    (node_lost, "node-lost"),
    (deleted, "removed-externally"),
]


@pytest.mark.parametrize(("disruption", "reason"), DISRUPTIONS)
async def test_what_takes_a_running_pod_away_is_told(pods: Pods, disruption: Disruption, reason: str) -> None:
    async with node_with_device(pods):
        work, pod = await pods.running("sleep 300", **ON_DEVICE)
        async with stopped_in_the_end(pods, work), disruption(pods, pod):
            found = await pods.report(work)
    assert (found.outcome, found.reason) == (AttemptOutcome.FAILED, reason)
    assert found.resolved is not None
    assert found.resolved.host == pods.node


@pytest.mark.parametrize(("disruption", "reason"), DISRUPTIONS)
async def test_what_takes_a_pod_away_before_its_start_is_told(pods: Pods, disruption: Disruption, reason: str) -> None:
    async with node_with_device(pods):
        work = await pods.run("true", image=pods.image | {"digest": "sha256:" + "0" * 64}, **ON_DEVICE)
        pod = await waiting(pods, work, "ErrImagePull", "ImagePullBackOff")
        async with stopped_in_the_end(pods, work), disruption(pods, pod):
            view = await pods.end(work)
    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, reason, False)


async def test_a_pod_that_is_marked_as_failed_runs_on_until_its_node_says_otherwise(pods: Pods) -> None:
    """Its node takes no notice, and says again that it runs: whoever believed the mark would start the work twice."""
    work, pod = await pods.running("trap 'exit 7' TERM; while :; do sleep 1; done")
    words = f"Failed; node {pods.node} has not said that its container has ended"

    async def doubted() -> bool:
        view = await pods.executor.look(work.key)
        return view is not None and view.report is not None and view.report.message == words

    async def said_otherwise() -> bool:
        [found] = await pods.pods(work)
        return bool(found["status"]["phase"] != "Failed" or "terminated" in state_of(found))

    async with stopped_in_the_end(pods, work):
        await container_is(pods, work, "running")
        await told_failed(pods, pod)
        await wait_until(doubted, "it is said that its end is not sure", timeout_s=STARTS_S, every_s=0.05)
        await wait_until(said_otherwise, "its node says how it is", timeout_s=STARTS_S, every_s=0.3)
        [left] = await pods.pods(work)
        assert SlotPhase.FINISHED not in pods.watcher.phases(work.key) or "terminated" in state_of(left)
    found = await pods.report(work)
    assert found.exit_code is not None or found.signal is not None, "its end is told by its node"


def state_of(pod: Object) -> dict[str, Any]:
    [container] = pod["status"]["containerStatuses"]
    return dict(container["state"])


async def test_a_wrapper_that_is_killed_before_the_start_fails_the_start(pods: Pods) -> None:
    pods.executor.hold_lease(NO_LEASE)
    try:
        work = await pods.run("echo must not run")
        pod = await container_is(pods, work, "running")
        await container_killed(pods, pod)
        view = await pods.end(work)
    finally:
        pods.executor.hold_lease(a_lease(seconds=3600))
    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "failed-to-start", False)
    assert view.report is not None
    assert view.report.message == "the wrapper ended before the start (Error (exit code 137))"


async def test_a_pod_whose_sandbox_its_node_cannot_make_is_told(pods: Pods) -> None:
    async with class_without_runtime(pods):
        work = await pods.run("true", resources={"accelerator": {"class": "without-runtime", "count": 1}})
        view = await pods.end(work)
    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "sandbox-unavailable", False)


async def test_an_image_without_a_shell_cannot_be_wrapped(pods: Pods) -> None:
    work = await pods.run("true", image=await image_without_shell(pods))
    view = await pods.end(work)
    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "image-not-wrappable", False)


async def test_a_container_that_cannot_be_started_fails_the_start(pods: Pods) -> None:
    work = await pods.run("true", inputs={"x": {"connection": "broken"}})
    view = await pods.end(work)
    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "failed-to-start", False)


async def test_what_the_node_does_not_admit_fails_the_start(pods: Pods) -> None:
    work = await pods.run("true", resources={"requests": {"cpu": "10000"}})
    await bound_to_node(pods, await pods.pod(work))
    view = await pods.end(work)
    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "node-refused", False)


async def test_an_image_whose_name_no_runtime_reads_is_not_accepted(pods: Pods) -> None:
    work = await pods.run("true", image=pods.image | {"registry": "misnamed"})
    view = await pods.end(work)
    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "image-not-accepted", False)


@contextlib.asynccontextmanager
async def stopped_in_the_end(pods: Pods, work: Work) -> AsyncIterator[None]:
    """Whatever a test finds, its device is free for the next one."""
    try:
        yield
    finally:
        await stop(pods.executor, work, grace_ms=1_000)


async def container_is(pods: Pods, work: Work, state: str) -> Object:
    """Its pod, once its container is waiting, running or terminated."""

    async def found() -> Object | None:
        for pod in await pods.pods(work):
            if any(state in status["state"] for status in pod["status"].get("containerStatuses") or ()):
                return pod
        return None

    pod: Object = await wait_until(found, f"its container is {state}", timeout_s=STARTS_S, every_s=0.3)
    return pod


async def waiting(pods: Pods, work: Work, *reasons: str) -> Object:
    """Its pod, once its container waits for one of these reasons."""

    async def found() -> Object | None:
        for pod in await pods.pods(work):
            for status in pod["status"].get("containerStatuses") or ():
                if (status["state"].get("waiting") or {}).get("reason") in reasons:
                    return pod
        return None

    pod: Object = await wait_until(found, f"its container waits: {reasons}", timeout_s=STARTS_S, every_s=0.3)
    return pod
