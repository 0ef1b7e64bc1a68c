"""The executor for clusters on a real API server, by KUBECONFIG: real objects, controllers, scheduler, tokens, watches.

Pods run as processes of this machine (`support.kubernetes_hollow`), so that the same suite looks at what they did. All
is done in a namespace that was made for it; of what belongs to no namespace, only what was made here is removed.
"""

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator
from typing import Any

from contract.executors.cluster import CLAIMS, DISPATCHER, KubernetesHarness, rules_of
from contract.executors.harness import write_bindings
from landbridge_dispatch.executors.kubernetes import permissions
from landbridge_dispatch.executors.kubernetes.api import Api
from landbridge_dispatch.executors.kubernetes.probing import permissions as probing
from support.kubernetes.access_point import Access, real_access
from support.kubernetes_hollow import LABEL, HollowBackend
from support.kubernetes_node import Node
from support.wait import wait_until

RBAC = "/apis/rbac.authorization.k8s.io/v1"


class RealKubernetesHarness(KubernetesHarness):
    """A whole cluster but for containers."""

    slowness = 6.0
    runs_pods = True
    """Whether its node does anything about pods that it gets."""
    backend: HollowBackend
    admin: Api
    namespace: str

    @contextlib.asynccontextmanager
    async def around(self) -> AsyncIterator[None]:
        async with real_access() as access, contextlib.AsyncExitStack() as stack:
            run = f"landbridge-test-{secrets.token_hex(4)}"
            api = Api(os.environ["KUBECONFIG"])
            await api.open()
            stack.push_async_callback(api.close)
            self.admin, self.namespace = api, access.namespace
            self.backend = backend = HollowBackend(api, run, access.namespace)
            self._write(access, run)
            await stack.enter_async_context(self._volumes(api, access.namespace, run))
            self.write_real_kubeconfig(
                access, await stack.enter_async_context(self.account(api, access.namespace, run))
            )
            await stack.enter_async_context(backend.registered(self.home / "node"))
            if not self.runs_pods:
                yield
                return
            claims = {f"{name}-data": self.home / "data" / name for name in CLAIMS}
            self.node = Node(backend, self.home / "node", claims, step_s=0.2)
            task = asyncio.create_task(self.node.run(), name="node")
            try:
                yield
                assert not task.done(), task.exception()
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def _write(self, access: Access, run: str) -> None:
        port = self._port
        write_bindings(
            self.home,
            {"name": "kubernetes", "startWait": "15s"},
            kubernetes={
                "namespace": access.namespace,
                "kubeconfig": "kubeconfig.yaml",
                "keeper": {"url": f"http://127.0.0.1:{port}", "host": "127.0.0.1", "port": port},
                "nodeSelector": {LABEL: run},
            },
            connections={
                "tools": {"options": {"registry": "registry.site/team"}},
                **{name: self._connection(name) for name in CLAIMS},
            },
        )

    @contextlib.asynccontextmanager
    async def _volumes(self, api: Api, namespace: str, run: str) -> AsyncIterator[None]:
        """Claims that are bound to volumes of ours."""
        made = []
        for name in CLAIMS:
            volume = f"{run}-{name}"
            spec: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
            path = {"hostPath": {"path": str(self.home / "data" / name)}, "capacity": {"storage": "1Gi"}}
            reference = {"claimRef": {"namespace": namespace, "name": f"{name}-data"}}
            item = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
                    "spec": {**spec, **path, **reference}}  # fmt: skip
            made.append(await api.create("/api/v1/persistentvolumes", item))
            wanted = {**spec, "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}}
            claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": f"{name}-data"},
                     "spec": wanted}  # fmt: skip
            await api.create(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", claim)
        try:
            yield
        finally:
            for volume_ in made:
                meta = volume_["metadata"]
                await api.delete(f"/api/v1/persistentvolumes/{meta['name']}", uid=meta["uid"])

    @contextlib.asynccontextmanager
    async def account(self, api: Api, namespace: str, run: str, *, bound: bool = True) -> AsyncIterator[str]:
        """The token of an account with the rights that are installed, and no others."""
        space = f"/api/v1/namespaces/{namespace}"
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DISPATCHER}}
        await api.create(f"{space}/serviceaccounts", account)
        subject = {"kind": "ServiceAccount", "name": DISPATCHER, "namespace": namespace}
        made = []
        for kind, listed, path in (
            ("Role", (*permissions.NAMESPACED, *probing.NAMESPACED), f"{RBAC}/namespaces/{namespace}"),
            ("ClusterRole", (*permissions.CLUSTER, *probing.CLUSTER), RBAC),
        ):
            version = {"apiVersion": "rbac.authorization.k8s.io/v1"}
            role = {**version, "kind": kind, "metadata": {"name": run}, "rules": rules_of(listed)}
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": run}
            binding = {**version, "kind": f"{kind}Binding", "metadata": {"name": run}, "roleRef": reference,
                       "subjects": [subject]}  # fmt: skip
            for plural, item in ((f"{kind.lower()}s", role), (f"{kind.lower()}bindings", binding)):
                found = await api.create(f"{path}/{plural}", item)
                made.append((f"{path}/{plural}/{run}", found["metadata"]["uid"]))
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        token = await api.create(f"{space}/serviceaccounts/{DISPATCHER}/token", request)
        try:
            if bound:
                await wait_until(lambda: self._bound(api, namespace), "the claims are bound", timeout_s=60)
            yield str(token["status"]["token"])
        finally:
            for path, uid in made:
                await api.delete(path, uid=uid)

    async def _bound(self, api: Api, namespace: str) -> bool:
        found, _ = await api.list(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims")
        return all(claim["status"].get("phase") == "Bound" for claim in found)

    def write_real_kubeconfig(self, access: Access, token: str) -> None:
        authority = {"certificate-authority": str(access.configuration.ssl_ca_cert)}
        self._write_kubeconfig(access.host, token, **(authority if access.configuration.ssl_ca_cert else {}))
