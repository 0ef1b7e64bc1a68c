"""The executor for clusters, on the API server of these tests and a node that really runs what its pods say."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from contract.executors.harness import ProcessHarness, write_bindings
from landbridge_dispatch.executors.kubernetes import names, permissions
from landbridge_dispatch.executors.kubernetes.probing import permissions as probing
from landbridge_dispatch.executors.protocol import Executor, SlotKey
from landbridge_embedded.ports import free_port
from support.kubernetes import FakeCluster, fake_cluster
from support.kubernetes_node import FakeBackend, Node

NAMESPACE = "lb-retail-eu"
SYSTEM, DISPATCHER = "landbridge-system", "landbridge-dispatcher"
CLAIMS = ("events", "models", "checkpoints")


def rules_of(listed: tuple[permissions.Permission, ...]) -> list[dict[str, Any]]:
    """As they stand in a Role."""
    return [{"apiGroups": [item.api_group], "resources": [item.resource], "verbs": list(item.verbs)} for item in listed]


class KubernetesHarness(ProcessHarness):
    name = "kubernetes"
    real = True
    slowness = 4.0
    installs_operators = True
    """Whether those that the site offers are there from the beginning."""

    def __init__(self, home: Path, **kubernetes: Any) -> None:
        self.home = home
        self.executor: Executor
        self.cluster: FakeCluster
        self.node: Node
        self._port = free_port()
        self._section = kubernetes
        self.connections: dict[str, Any] = {}
        """More than the usual ones."""
        self._operators: tuple[str, ...] = tuple(kubernetes.get("operators", ()))
        route = kubernetes.get("route")
        self._routes = () if route is None else ("HTTPRoute",) if "gateway" in route else ("Ingress",)

    @contextlib.asynccontextmanager
    async def around(self) -> AsyncIterator[None]:
        async with fake_cluster() as cluster:
            self.cluster = cluster
            cluster.namespace(NAMESPACE)
            for operator in self._operators if self.installs_operators else ():
                cluster.install(operator)
            keeper = {"url": f"http://127.0.0.1:{self._port}", "host": "127.0.0.1", "port": self._port}
            write_bindings(
                self.home,
                {"name": "kubernetes", "startWait": "15s"},
                kubernetes={
                    "namespace": "lb-{project}",
                    "kubeconfig": "kubeconfig.yaml",
                    "keeper": keeper,
                    **self._section,
                },
                connections={
                    "tools": {"options": {"registry": "registry.site/team"}},
                    **{name: self._connection(name) for name in CLAIMS},
                    **self.connections,
                },
            )
            self._write_kubeconfig(cluster.url, self._token())
            for name in CLAIMS:
                claim: dict[str, Any] = {"metadata": {"name": f"{name}-data"}, "spec": {}}
                cluster.put("persistentvolumeclaims", claim, namespace=NAMESPACE)
            claims = {f"{name}-data": self.home / "data" / name for name in CLAIMS}
            self.node = Node(FakeBackend(cluster), self.home / "node", claims)
            task = asyncio.create_task(self.node.run(), name="node")
            try:
                yield
                assert not task.done(), task.exception()
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def _connection(self, name: str) -> dict[str, Any]:
        access = "read-only" if name == "events" else "read-write"
        return {"directory": f"data/{name}", "access": access, "options": {"claim": f"{name}-data"}}

    def _token(self) -> str:
        """The token of a service account with the rights that are installed, and no others."""
        cluster = self.cluster
        cluster.namespace(SYSTEM)
        cluster.put("serviceaccounts", {"metadata": {"name": DISPATCHER}}, namespace=SYSTEM)
        offered = [rule for operator in self._operators for rule in permissions.OPERATORS[operator]]
        offered += [rule for kind in self._routes for rule in permissions.ROUTES[kind]]
        subject = {"kind": "ServiceAccount", "name": DISPATCHER, "namespace": SYSTEM}
        for kind, listed, namespace in (
            ("Role", (*permissions.NAMESPACED, *probing.NAMESPACED, *offered), NAMESPACE),
            ("ClusterRole", (*permissions.CLUSTER, *probing.CLUSTER), ""),
        ):
            rules = [
                {"apiGroups": [rule.api_group], "resources": [rule.resource], "verbs": list(rule.verbs)}
                for rule in listed
            ]
            plural = kind.lower() + "s"
            cluster.put(plural, {"metadata": {"name": DISPATCHER}, "rules": rules}, namespace=namespace)
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": DISPATCHER}
            binding = {"metadata": {"name": DISPATCHER}, "roleRef": reference, "subjects": [subject]}
            cluster.put(f"{kind.lower()}bindings", binding, namespace=namespace)
        issued = cluster.api.access.issue(SYSTEM, DISPATCHER, {"spec": {"expirationSeconds": 7200}})
        return str(issued["status"]["token"])

    def _write_kubeconfig(self, url: str, token: str, **more: str) -> None:
        named = {"name": "fake"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{**named, "cluster": {"server": url, **more}}],
            "users": [{**named, "user": {"token": token}}],
            "contexts": [{**named, "context": {"cluster": "fake", "user": "fake"}}],
            "current-context": "fake",
        }
        (self.home / "kubeconfig.yaml").write_text(yaml.safe_dump(config))

    def directory(self, key: SlotKey) -> Path:
        """Of the first pod of the slot."""
        return self.node.home / self.node.slots[names.name_of(key)] / "work"
