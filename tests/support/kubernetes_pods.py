"""A real cluster whose pods really run, and the executor on it, with the rights that its own list of permissions gives.

Everything is in a namespace that was made for it; of what belongs to no namespace, only what was made here is removed.
"""

import contextlib
import os
import socket
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.executors.cluster import free_port
from contract.executors.harness import Watcher, a_lease, a_work, make_executor, write_bindings
from contract.executors.real_cluster import RealKubernetesHarness
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.schema.wire.report_v1 import AttemptReport
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes.api import Api, Object
from landbridge_dispatch.executors.kubernetes.executor import KubernetesExecutor
from landbridge_dispatch.executors.protocol import SlotView, Work
from support.kubernetes.access_point import image, real_access
from support.wait import wait_until

STARTS_S = 120.0
VOLUMES = ("models", "checkpoints")
PLACES = {name: name for name in VOLUMES} | {"broken": "file/below"}
"""Volumes by their place; what lies below a file no runtime can mount."""
OTHER_REGISTRIES = {"misnamed": "registry.site/TEAM", "sandboxes": "registry.k8s.io"}
"""One whose name no runtime can read, and the one whose image of nothing but a program is on most nodes."""


@dataclass
class Pods:
    """The cluster, the executor on it, and what it lets be seen. `admin`: may do anything.

    `has_python`: whether the image has more than a shell.
    `reference`: the image as pods name it. `device`: an extended resource that no node has, and that class `device` is.
    """

    admin: Api
    namespace: str
    executor: KubernetesExecutor
    watcher: Watcher
    image: dict[str, str]
    node: str
    reference: str
    device: str
    has_python: bool

    def work(self, script: str, **spec: Any) -> Work:
        """Work that is a shell script."""
        return a_work(["sh", "-c", script], **{"image": self.image, **spec})

    async def run(self, script: str, **spec: Any) -> Work:
        work = self.work(script, **spec)
        [found] = await self.executor.occupy([work])
        assert found is None, found
        await self.executor.start([work.key])
        return work

    async def running(self, script: str, **spec: Any) -> tuple[Work, Object]:
        """Work that runs and has said so, with its pod."""
        work = await self.run(f"echo ready; {script}", **spec)
        await self.watcher.until(work.key, SlotPhase.RUNNING, timeout_s=STARTS_S)

        async def said() -> bool:
            chunk = await self.executor.logs(work.key)
            return chunk is not None and b"ready" in chunk.data

        await wait_until(said, "the workload is ready", timeout_s=STARTS_S, every_s=0.3)
        return work, (await self.pods(work))[0]

    async def pod(self, work: Work) -> Object:
        """Its pod, as soon as there is one."""
        found: list[Object] = await wait_until(
            lambda: self.pods(work), "its pod is there", timeout_s=STARTS_S, every_s=0.3
        )
        return found[0]

    async def end(self, work: Work) -> SlotView:
        return await self.watcher.end(work.key, timeout_s=STARTS_S)

    async def report(self, work: Work) -> AttemptReport:
        view = await self.end(work)
        assert view.phase is SlotPhase.FINISHED, view
        assert view.report is not None
        return view.report

    async def pods(self, work: Work) -> list[Object]:
        found, _ = await self.admin.list(self.path("pods"), f"{names.SLOT}={names.name_of(work.key)}")
        return found

    def path(self, plural: str, name: str = "", *, group: str = "") -> str:
        base = f"/apis/{group}/v1" if group else "/api/v1"
        return f"{base}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")


@contextlib.asynccontextmanager
async def real_pods(home: Path, kubeconfig: str = "", *, store_port: int = 0) -> AsyncIterator[Pods]:
    """The cluster of KUBECONFIG or of another file, with the image of LANDBRIDGE_TEST_IMAGE.

    `store_port`: of an object store here.
    """
    harness = RealKubernetesHarness(home)
    async with real_access(kubeconfig) as access, contextlib.AsyncExitStack() as stack:
        admin = Api(access.kubeconfig)
        await admin.open()
        stack.push_async_callback(admin.close)
        nodes, _ = await admin.list("/api/v1/nodes")
        node = next(node for node in nodes if _is_ready(node))
        registry, used = _image(node)
        run = f"landbridge-test-{uuid.uuid4().hex[:8]}"
        reference, device = f"{registry}/{used['name']}@{used['digest']}", f"landbridge.io/{run}"
        place = _Place(admin, access.namespace, reference, node)
        await stack.enter_async_context(_volumes(place, run))
        has_python = bool(await _on_node(place, "command -v python3 >/dev/termination-log || true"))
        _write(home, access.namespace, registry, node, device, reference, store_port)
        token = await stack.enter_async_context(harness.account(admin, access.namespace, run, bound=False))
        harness.write_real_kubeconfig(access, token)
        executor = make_executor(home)
        assert isinstance(executor, KubernetesExecutor)
        await executor.open()
        stack.push_async_callback(executor.close)
        executor.hold_lease(a_lease(seconds=3600))
        watcher = Watcher(executor)
        stack.push_async_callback(watcher.close)
        name = node["metadata"]["name"]
        yield Pods(admin, access.namespace, executor, watcher, used, name, reference, device, has_python)


def _is_ready(node: Object) -> bool:
    conditions = {item["type"]: item["status"] for item in node["status"].get("conditions") or ()}
    return conditions.get("Ready") == "True" and "landbridge.io/test-node" not in node["metadata"]["labels"]


def _image(node: Object) -> tuple[str, dict[str, str]]:
    """Return registry and the rest of the image, whose digest the node knows if it was named by a tag."""
    wanted = image()
    if "@" not in wanted:
        repository = wanted.rpartition(":")[0]
        known = [name for each in node["status"].get("images") or () for name in each.get("names") or ()]
        wanted = next(name for name in known if name.startswith(f"{repository}@"))
    place, _, digest = wanted.partition("@")
    registry, _, name = place.rpartition("/")
    return registry, {"registry": "tools", "name": name, "digest": digest}


def _address(node: Object) -> str:
    """Return where pods reach this machine: by the address that faces their node, unless it is said."""
    if said := os.environ.get("LANDBRIDGE_TEST_KEEPER_HOST"):
        return said
    address = next(item["address"] for item in node["status"]["addresses"] if item["type"] == "InternalIP")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        return str(probe.getsockname()[0])


def _write(
    home: Path, namespace: str, registry: str, node: Object, device: str, reference: str, store_port: int
) -> None:
    port = free_port()
    keeper = {"url": f"http://{_address(node)}:{port}", "host": "0.0.0.0", "port": port}
    s3 = {"endpoint": f"http://{_address(node)}:{store_port or 9}", "bucket": "shared"}
    write_bindings(
        home,
        {"name": "kubernetes", "startWait": "30s"},
        kubernetes={
            "namespace": namespace,
            "kubeconfig": "kubeconfig.yaml",
            "keeper": keeper,
            "startWithin": "60s",
            "classes": {"device": {"resource": device}},
            "nodeSelector": _selector(node),
            "probes": {"image": reference},
            "carrier": {"image": reference, "within": "60s"},
        },
        connections={
            "tools": {"options": {"registry": registry}},
            **{name: {"options": {"registry": place}} for name, place in OTHER_REGISTRIES.items()},
            "secret": {"location": "s3://x", "options": {"secretEnv": {"KEY": {"secret": "none", "key": "none"}}}},
            "gone": {"options": {"claim": "none"}},
            **{
                name: {"access": "read-write", "options": {"s3": {**s3, "prefix": "team", "secret": secret}}}
                for name, secret in (("store", "store-keys"), ("keyless", "none"))
            },
            "events": {"options": {"configMap": "none"}},
            **{name: {"access": "read-write", "options": {"claim": f"{name}-data"}} for name in PLACES},
        },
    )


@dataclass
class _Place:
    """Where an administrator's own pods run: all on one node, whose directories are volumes here."""

    api: Api
    namespace: str
    reference: str
    node: Object


def _selector(node: Object) -> dict[str, str]:
    """Keep pods on a node; among the others may be some that run nothing."""
    label = "kubernetes.io/hostname"
    return {label: node["metadata"]["labels"][label]} if label in node["metadata"]["labels"] else {}


@contextlib.asynccontextmanager
async def _volumes(at: _Place, run: str) -> AsyncIterator[None]:
    """Claims on a directory of a node, which pods of any user may write."""
    api, namespace = at.api, at.namespace
    places = " ".join(f"/h/{run}/{name}" for name in VOLUMES)
    await _on_node(at, f"mkdir -p {places}; touch /h/{run}/file; chmod 777 /h/{run}/*")
    made = []
    for name, place in PLACES.items():
        spec: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{run}-{name}"},
            "spec": {
                **spec,
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": f"/tmp/{run}/{place}"},
                "claimRef": {"namespace": namespace, "name": f"{name}-data"},
            },
        }
        made.append(await api.create("/api/v1/persistentvolumes", volume))
        wanted = {**spec, "volumeName": f"{run}-{name}", "resources": {"requests": {"storage": "1Gi"}}}
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"{name}-data"},
            "spec": wanted,
        }
        await api.create(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", claim)
    try:
        yield
    finally:
        await _on_node(at, f"rm -rf /h/{run}")
        for bound in made:
            meta = bound["metadata"]
            await api.delete(f"/api/v1/persistentvolumes/{meta['name']}", uid=meta["uid"])


async def _on_node(at: _Place, script: str) -> str:
    """Run a script as root with the node's /tmp below /h; return what it wrote to its termination log."""
    api, path = at.api, f"/api/v1/namespaces/{at.namespace}/pods"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"on-node-{uuid.uuid4().hex[:8]}"},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": _selector(at.node),
            "volumes": [{"name": "h", "hostPath": {"path": "/tmp"}}],
            "containers": [
                {
                    "name": "c",
                    "image": at.reference,
                    "command": ["sh", "-c", script],
                    "securityContext": {"runAsUser": 0},
                    "volumeMounts": [{"name": "h", "mountPath": "/h"}],
                }
            ],
        },
    }
    made = await api.create(path, pod)
    name = made["metadata"]["name"]

    async def done() -> Object | None:
        found = await api.get(f"{path}/{name}")
        return found if found is not None and found["status"].get("phase") == "Succeeded" else None

    ended: Object = await wait_until(done, f"{script} has run on the node", timeout_s=STARTS_S, every_s=0.5)
    await api.delete(f"{path}/{name}", uid=made["metadata"]["uid"], grace_s=0)
    return str(ended["status"]["containerStatuses"][0]["state"]["terminated"].get("message") or "")
