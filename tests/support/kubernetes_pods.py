"""A real cluster whose pods really run, and the executor on it, with the rights that its own list of permissions gives.

Everything is in a namespace that was made for it; of what belongs to no namespace, only what was made here is removed.
"""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.executors.harness import Watcher, a_lease, a_work, make_executor
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.schema.wire.report_v1 import AttemptReport
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes.api import Api, Object
from landbridge_dispatch.executors.kubernetes.executor import KubernetesExecutor
from landbridge_dispatch.executors.protocol import SlotView, Work
from support.kubernetes_site import PLACES, STARTS_S, VOLUMES, RealSite, real_site
from support.wait import wait_until


@dataclass
class Pods:
    """The cluster, the executor on it, and what it lets be seen.

    `has_python`: whether the image has more than a shell.
    """

    site: RealSite
    executor: KubernetesExecutor
    watcher: Watcher
    has_python: bool

    @property
    def admin(self) -> Api:
        return self.site.admin

    @property
    def namespace(self) -> str:
        return self.site.namespace

    @property
    def image(self) -> dict[str, str]:
        return self.site.image

    @property
    def node(self) -> str:
        return str(self.site.node["metadata"]["name"])

    @property
    def reference(self) -> str:
        return self.site.reference

    @property
    def device(self) -> str:
        return self.site.device

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
        return self.site.path(plural, name, group=group)


@contextlib.asynccontextmanager
async def real_pods(home: Path, kubeconfig: str = "", *, store_port: int = 0) -> AsyncIterator[Pods]:
    """The cluster of KUBECONFIG or of another file, with the image of LANDBRIDGE_TEST_IMAGE.

    `store_port`: of an object store here.
    """
    async with real_site(home, kubeconfig, store_port=store_port) as site, contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(_volumes(site))
        has_python = await site.has_python()
        executor = make_executor(home)
        assert isinstance(executor, KubernetesExecutor)
        await executor.open()
        stack.push_async_callback(executor.close)
        executor.hold_lease(a_lease(seconds=3600))
        watcher = Watcher(executor)
        stack.push_async_callback(watcher.close)
        yield Pods(site, executor, watcher, has_python)


@contextlib.asynccontextmanager
async def _volumes(site: RealSite) -> AsyncIterator[None]:
    """Claims on a directory of a node, which pods of any user may write."""
    api, namespace, run = site.admin, site.namespace, site.run
    places = " ".join(f"/h/{run}/{name}" for name in VOLUMES)
    await site.on_node(f"mkdir -p {places}; touch /h/{run}/file; chmod 777 /h/{run}/*")
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
        await site.on_node(f"rm -rf /h/{run}")
        for bound in made:
            meta = bound["metadata"]
            await api.delete(f"/api/v1/persistentvolumes/{meta['name']}", uid=meta["uid"])
