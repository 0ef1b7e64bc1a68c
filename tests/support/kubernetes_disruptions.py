"""What a cluster does to pods of its own accord, brought about by an administrator, and undone afterwards.

Nobody else's pods are touched: where they would be, the test is skipped and says whose they are.
"""

import contextlib
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from landbridge_dispatch.executors.kubernetes.api import ApiError, Object
from support.kubernetes_pods import Pods
from support.kubernetes_site import STARTS_S
from support.wait import wait_until

TAINT = "landbridge.io/test-lost"
PRIORITY = 1000
SANDBOX = "registry.k8s.io/pause@"


# -- taking a pod away -------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def evicted(pods: Pods, pod: Object) -> AsyncIterator[None]:
    """By the API for evictions, as a drained node does it."""
    name = pod["metadata"]["name"]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": {"gracePeriodSeconds": 2},
    }
    await pods.admin.create(pods.path("pods", f"{name}/eviction"), eviction)
    yield


@contextlib.asynccontextmanager
async def deleted(pods: Pods, pod: Object) -> AsyncIterator[None]:
    """By somebody, without a word."""
    meta = pod["metadata"]
    await pods.admin.delete(pods.path("pods", meta["name"]), uid=meta["uid"], grace_s=2)
    yield


@contextlib.asynccontextmanager
async def preempted(pods: Pods, pod: Object) -> AsyncIterator[None]:
    """By the scheduler, for a pod of more importance that asks for the same device."""
    name = f"landbridge-test-{uuid.uuid4().hex[:8]}"
    important = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": PRIORITY,
    }
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    made = await pods.admin.create(classes, important)
    container = {
        "name": "c",
        "image": pods.reference,
        "command": ["sh", "-c", "sleep 300"],
        "resources": {"limits": {pods.device: "1"}},
    }
    spec = {
        "restartPolicy": "Never",
        "priorityClassName": name,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    try:
        taker = await pods.admin.create(pods.path("pods"), body)
        try:
            yield
        finally:
            await pods.admin.delete(pods.path("pods", name), uid=taker["metadata"]["uid"], grace_s=0)
            await _gone(pods, pods.path("pods", name))
    finally:
        await pods.admin.delete(f"{classes}/{name}", uid=made["metadata"]["uid"])


@contextlib.asynccontextmanager
async def node_lost(pods: Pods, pod: Object) -> AsyncIterator[None]:
    """By the taint manager, as it does to pods of a node that is not heard of any more."""
    node = pod["spec"]["nodeName"]
    await _nobody_elses(pods, node)
    await _taints(pods, node, lambda taints: [*taints, {"key": TAINT, "effect": "NoExecute"}])
    try:
        yield
    finally:
        await _taints(pods, node, lambda taints: [taint for taint in taints if taint["key"] != TAINT])


async def _taints(pods: Pods, node: str, change: Any) -> None:
    """Change a node's taints as they stand, again if somebody was faster."""
    while True:
        found = await pods.admin.get(f"/api/v1/nodes/{node}")
        assert found is not None
        patch = {
            "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
            "spec": {"taints": change(found["spec"].get("taints") or [])},
        }
        try:
            await pods.admin.merge(f"/api/v1/nodes/{node}", patch)
        except ApiError as error:
            if error.status != 409:
                raise
        else:
            return


async def _nobody_elses(pods: Pods, node: str) -> None:
    """Skip the test where a taint would drive out pods that are not ours."""
    found, _ = await pods.admin.list("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
    for pod in found:
        tolerated = any(
            each.get("operator") == "Exists" and each.get("key", TAINT) == TAINT and each.get("effect", "NoExecute")
            == "NoExecute" for each in pod["spec"].get("tolerations") or ()
        )  # fmt: skip
        over = pod["status"].get("phase") in ("Succeeded", "Failed")
        if pod["metadata"]["namespace"] != pods.namespace and not over and not tolerated:
            meta = pod["metadata"]
            pytest.skip(f"node {node} runs {meta['namespace']}/{meta['name']}, which a NoExecute taint would drive out")


async def container_killed(pods: Pods, pod: Object) -> None:
    """By the node, as its kernel does it: all processes of the pod's container, and not its sandbox."""
    uid = pod["metadata"]["uid"]
    marks = f"pod{uid}", f"pod{uid.replace('-', '_')}"
    script = f"""
for each in /proc/[0-9]*; do
  case $(cat $each/cgroup 2>/dev/null) in *{marks[0]}*|*{marks[1]}*) ;; *) continue ;; esac
  [ "$(cat $each/comm)" = pause ] || kill -9 "${{each#/proc/}}"
done
"""
    await pods.site.on_node(script, sees_all=True)


async def told_failed(pods: Pods, pod: Object) -> None:
    """By an administrator or a controller, while nobody tells how its container is."""
    await pods.admin.merge(f"{pods.path('pods', pod['metadata']['name'])}/status", {"status": {"phase": "Failed"}})


@contextlib.asynccontextmanager
async def class_without_runtime(pods: Pods) -> AsyncIterator[None]:
    """The site's class `without-runtime` names a RuntimeClass whose handler no node has."""
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    item = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": pods.site.run}}
    made = await pods.admin.create(path, {**item, "handler": "landbridge-test-none"})
    try:
        yield
    finally:
        await pods.admin.delete(f"{path}/{pods.site.run}", uid=made["metadata"]["uid"])


# -- nodes -------------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def node_with_device(pods: Pods) -> AsyncIterator[None]:
    """The node has one device, for work of class `device`; so whoever wants it waits, or takes somebody's place."""
    path = f"/api/v1/nodes/{pods.node}"

    async def there(wanted: str | None) -> bool:
        found = await pods.admin.get(path)
        return found is not None and found["status"]["allocatable"].get(pods.device) == wanted

    async def have(count: str | None) -> None:
        room = {pods.device: count}
        await pods.admin.merge(f"{path}/status", {"status": {"capacity": room, "allocatable": room}})
        await wait_until(lambda: there(count), f"the node tells of {count} devices", timeout_s=STARTS_S, every_s=0.3)

    await have("1")
    try:
        yield
    finally:
        await have(None)


async def bound_to_node(pods: Pods, pod: Object) -> None:
    """Send a pod to the node whatever the scheduler says, as another scheduler might."""
    name = pod["metadata"]["name"]
    target = {"apiVersion": "v1", "kind": "Node", "name": pods.node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    await pods.admin.create(pods.path("pods", f"{name}/binding"), binding)


async def image_without_shell(pods: Pods) -> dict[str, str]:
    """Return an image of nothing but one program: that of the sandboxes, which the node has anyhow."""
    node = await pods.admin.get(f"/api/v1/nodes/{pods.node}")
    assert node is not None
    known = [name for each in node["status"].get("images") or () for name in each.get("names") or ()]
    found = next((name for name in known if name.startswith(SANDBOX)), "")
    if not found:
        pytest.skip(f"node {pods.node} tells of no image {SANDBOX}…")
    return {"registry": "sandboxes", "name": "pause", "digest": found.removeprefix(SANDBOX)}


async def _gone(pods: Pods, path: str) -> None:
    async def gone() -> bool:
        return await pods.admin.get(path) is None

    await wait_until(gone, f"{path} is gone", timeout_s=STARTS_S, every_s=0.3)
