"""A node of a real cluster without a kubelet: pods that its scheduler sends here run as processes of this machine.

It registers a Node, renews its Lease, follows the pods that are bound to it and writes their status, and answers the
API server's questions for logs, over TLS with a certificate of its own. So all but containers is the real thing.
"""

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from landbridge_dispatch.executors.kubernetes.api import Api, ApiError
from support.kubernetes.kubelet import condition
from support.kubernetes.ownership import now
from support.kubernetes_node import token_request

LABEL = "landbridge.io/test-node"
BEAT_S = 4.0
STATUS = "application/strategic-merge-patch+json"


@dataclass
class HollowBackend:
    """A node called `name`; `namespace`: whose pods it runs."""

    api: Api
    name: str
    namespace: str
    texts: dict[tuple[str, str, str], bytes] = field(default_factory=dict)
    lost: bool = False
    _beats: asyncio.Task[None] | None = None

    # -- the node itself -------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def registered(self, home: Path) -> AsyncIterator[None]:
        """The node is there and ready, and gone afterwards."""
        port, runner = await self._listen(home)
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": {LABEL: self.name}}}
        made = await self.api.create("/api/v1/nodes", node)
        self._beats = asyncio.create_task(self._beat(port), name="beat")
        try:
            yield
        finally:
            await self._silence()
            await runner.cleanup()
            await self.api.delete(f"/api/v1/nodes/{self.name}", uid=made["metadata"]["uid"])
            lease = await self.api.get(self._lease())
            if lease is not None:
                await self.api.delete(self._lease(), uid=lease["metadata"]["uid"])

    async def lose(self) -> None:
        """The node hears and tells nothing any more, and somebody removes it from the cluster; its pods run on."""
        self.lost = True
        await self._silence()
        found = await self.api.get(f"/api/v1/nodes/{self.name}")
        assert found is not None
        await self.api.delete(f"/api/v1/nodes/{self.name}", uid=found["metadata"]["uid"])

    async def _silence(self) -> None:
        if self._beats is not None:
            self._beats.cancel()
            await asyncio.gather(self._beats, return_exceptions=True)

    def _lease(self, *, name: bool = True) -> str:
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        return f"{path}/{self.name}" if name else path

    async def _beat(self, port: int) -> None:
        room = {"cpu": "64", "memory": "256Gi", "pods": "2000", "ephemeral-storage": "1Ti"}
        ready = {**condition("Ready", reason="KubeletReady"), "lastHeartbeatTime": now()}
        status = {
            "capacity": room,
            "allocatable": room,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        while True:
            ready["lastHeartbeatTime"] = now()
            await self.api.merge(f"/api/v1/nodes/{self.name}/status", {"status": status})
            spec = {
                "holderIdentity": self.name,
                "leaseDurationSeconds": 40,
                "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            }
            lease = {"metadata": {"name": self.name, "namespace": "kube-node-lease"}, "spec": spec}
            try:
                await self.api.create(self._lease(name=False), lease)
            except ApiError as error:
                if error.status != 409:
                    raise
                await self.api.merge(self._lease(), {"spec": spec})
            await asyncio.sleep(BEAT_S)

    async def _listen(self, home: Path) -> tuple[int, web.AppRunner]:
        home.mkdir(parents=True, exist_ok=True)
        certificate, key = home / "node.pem", home / "node.key"
        subject = ["-subj", f"/CN={self.name}", "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject,
             "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True,
        )  # fmt: skip
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._serve)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        return runner.addresses[0][1], runner

    async def _serve(self, request: web.Request) -> web.Response:
        match = request.match_info
        body = self.texts.get((match["namespace"], match["pod"], match["container"]), b"")
        limit = request.query.get("limitBytes")
        return web.Response(body=body[: int(limit)] if limit else body, content_type="text/plain")

    # -- its pods --------------------------------------------------------------------------------------------------

    async def pods(self) -> list[dict[str, Any]]:
        if self.lost:
            return []
        found, _ = await self.api.list(self._pods(), fieldSelector=f"spec.nodeName={self.name}")
        return found

    def _pods(self, name: str = "") -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods" + (f"/{name}" if name else "")

    async def configmap(self, namespace: str, name: str) -> dict[str, str]:
        found = await self.api.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        assert found is not None, f"there is no ConfigMap {name}"
        return dict(found["data"])

    async def secret(self, namespace: str, name: str, key: str) -> str:
        raise AssertionError(f"no test of a real cluster uses secrets, found {namespace}/{name}/{key}")

    async def token(self, pod: dict[str, Any], asked: dict[str, Any]) -> str:
        account = pod["spec"].get("serviceAccountName", "default")
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token"
        return str((await self.api.create(path, token_request(pod, asked)))["status"]["token"])

    def log(self, namespace: str, pod: str, container: str, text: str) -> None:
        key = namespace, pod, container
        self.texts[key] = self.texts.get(key, b"") + text.encode()

    async def bind(self, pod: dict[str, Any]) -> None:
        """The scheduler has done it: else the pod would not be seen here."""

    async def tell_running(self, pod: dict[str, Any]) -> None:
        [container] = pod["spec"]["containers"]
        status = {
            "phase": "Running",
            "startTime": now(),
            "podIP": "127.0.0.1",
            "conditions": [condition("PodScheduled"), condition("Ready"), condition("ContainersReady")],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": container["image"],
                    "containerID": f"processes://{pod['metadata']['uid']}",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": now()}},
                    "lastState": {},
                }
            ],
        }
        await self._write(pod, status)

    async def tell_end(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        await self._write(pod, {**status, "podIP": "127.0.0.1"})
        current = await self.api.get(self._pods(pod["metadata"]["name"]))
        if current is not None and current["metadata"].get("deletionTimestamp"):
            await self.gone(current)

    async def submitted(self, pod: dict[str, Any], running: Any) -> None:
        """Nothing is submitted to a hollow node."""

    async def ended(self, uid: str) -> None:
        """Nothing ran beside it."""

    async def gone(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        if meta.get("deletionGracePeriodSeconds") != 0:
            await self.api.delete(self._pods(meta["name"]), uid=meta["uid"], grace_s=0)

    async def _write(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        meta = pod["metadata"]
        try:
            await self.api.merge(
                f"{self._pods(meta['name'])}/status", {"metadata": {"uid": meta["uid"]}, "status": status}
            )
        except ApiError as error:
            # Deleted meanwhile, or another pod of that name.
            if error.status not in (404, 409):
                raise
