"""A cluster without machines, in this process, and what tests may do to it behind everybody's back."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web

from support.kubernetes import defaults, deletion, kubelet, operators
from support.kubernetes.api import Api, Call
from support.kubernetes.controllers import Controllers
from support.kubernetes.errors import Object
from support.kubernetes.resources import Resource
from support.kubernetes.server import Refusal, Seen, Server
from support.kubernetes.store import Key

HOST = "127.0.0.1"


class FakeCluster:
    """`url` is its API. What is written here is seen by watches like everything else."""

    def __init__(self, version: str) -> None:
        self.api = Api()
        self.server = Server(self.api, version)
        self.kubelet = kubelet.Kubelet(self.api, self.server.logs)
        self.controllers = Controllers(self.api, self.kubelet)
        self.port = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    # -- the server ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen, on the same port as before."""
        app = web.Application(client_max_size=1 << 22)
        app.router.add_route("*", "/{path:.*}", self.server.handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Answer no more; every connection breaks. What is stored stays."""
        self.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def restart(self, down_s: float = 0.0) -> None:
        await self.stop()
        await asyncio.sleep(down_s)
        await self.start()

    def cut_watches(self) -> int:
        """Break the connection of every watch, in the middle of the stream; return how many there were."""
        cut = list(self.server.watches.values())
        for request in cut:
            if request.transport is not None:
                request.transport.abort()
        return len(cut)

    def refuse(
        self,
        count: int,
        status: int = 500,
        *,
        method: str = "",
        path: str = "",
        retry_after_s: int | None = None,
        when: Callable[[Seen], bool] = lambda seen: True,
    ) -> Refusal:
        """Refuse the next `count` requests with that method and part of a path."""

        def matches(seen: Seen) -> bool:
            return method in ("", "WATCH" if seen.watch else seen.method) and path in seen.path and when(seen)

        refusal = Refusal(count, status, matches, retry_after_s)
        self.server.refusals.append(refusal)
        return refusal

    def bookmark(self) -> None:
        """Send bookmarks to the watches that allow them, now."""
        self.server.bookmarks.wanted += 1
        self.api.store.wake()

    def compact(self) -> None:
        """Forget the past: watches and pages from before are told 410."""
        self.api.store.compact()

    def requests(self) -> Counter[str]:
        """Requests so far by method, watches as WATCH."""
        return self.server.counts()

    # -- objects -------------------------------------------------------------------------------------------------

    def resource(self, plural: str) -> Resource:
        """By plural name, with its group if the name is not unique: `jobs`, `jobs.batch`."""
        found = [one for one in self.api.served.found.values() if plural in (one.plural, one.qualified)]
        assert found, f"{plural} is not served"
        return found[0]

    def put(self, plural: str, item: Object, *, namespace: str = "") -> Object:
        """Create or replace an object, status included, as another component would; its namespace must exist."""
        resource = self.resource(plural)
        call = Call(resource, namespace if resource.namespaced else "", item["metadata"]["name"], manager="test")
        if call.key not in self.api.store.objects:
            self.api.create(call, item)
        stored = self.api.store.get(call.key)
        assert stored is not None
        kept = {key: value for key, value in item.items() if key not in ("metadata", "apiVersion", "kind")}
        stored.update(kept)
        defaults.fill_in(resource, stored)
        for name in ("labels", "annotations"):
            if name in item["metadata"]:
                stored["metadata"][name] = item["metadata"][name]
        return self.api.store.put(call.key, stored)

    def get(self, plural: str, name: str, *, namespace: str = "") -> Object | None:
        return self.api.store.get(self._key(plural, name, namespace))

    def all_of(self, plural: str, *, namespace: str = "") -> list[Object]:
        store = self.api.store
        found = store.at(self.resource(plural).store_key, namespace, store.revision)
        return [item for key, _ in found if (item := store.get(key)) is not None]

    def delete(
        self, plural: str, name: str, *, namespace: str = "", policy: str = "Background", force: bool = False
    ) -> None:
        """Delete behind everybody's back. `force`: without waiting for anything."""
        key = self._key(plural, name, namespace)
        if force:
            self.api.store.delete(key)
            return
        deletion.delete(self.api.store, self.resource(plural), key, {"propagationPolicy": policy}, dry_run=False)

    def install(self, operator: str) -> None:
        """Define an operator's kinds; its stand-in works from then on."""
        for definition in operators.definitions(operator):
            self.put("customresourcedefinitions", definition)

    def namespace(self, name: str, *, labels: dict[str, str] | None = None) -> None:
        """A namespace with its default service account."""
        if self.get("namespaces", name) is None:
            self.put("namespaces", {"metadata": {"name": name, "labels": labels or {}}})
        account = self._key("serviceaccounts", "default", name)
        if account not in self.api.store.objects:
            self.put("serviceaccounts", {"metadata": {"name": "default"}}, namespace=name)

    def _key(self, plural: str, name: str, namespace: str) -> Key:
        resource = self.resource(plural)
        return resource.store_key, namespace if resource.namespaced else "", name

    # -- pods ----------------------------------------------------------------------------------------------------

    def pods_of(self, job: str, *, namespace: str) -> list[Object]:
        """The pods of a Job, oldest first."""
        pods = self.all_of("pods", namespace=namespace)
        found = [pod for pod in pods if (pod["metadata"].get("labels") or {}).get("job-name") == job]
        return sorted(found, key=lambda pod: int(pod["metadata"]["resourceVersion"]))

    def set_pod_status(self, name: str, status: dict[str, Any], *, namespace: str, node: str = "") -> Object:
        """Write parts of a pod's status as a kubelet would."""
        return self._pod(name, namespace, lambda pod: pod["status"].update(status), node)

    def run_pod(self, name: str, *, namespace: str, node: str = "node-1") -> Object:
        """The pod's containers run."""
        return self._pod(name, namespace, kubelet.Kubelet.start, node)

    def end_pod(self, name: str, *, namespace: str, exit_code: int = 0, reason: str = "") -> Object:
        """The pod's containers have ended; `reason` as OOMKilled."""
        return self._pod(
            name, namespace, lambda pod: kubelet.Kubelet.end(pod, exit_code=exit_code, reason=reason), "node-1"
        )

    def _pod(self, name: str, namespace: str, change: Callable[[Object], None], node: str) -> Object:
        key = self._key("pods", name, namespace)
        pod = self.api.store.get(key)
        assert pod is not None, f"there is no pod {namespace}/{name}"
        if node:
            pod["spec"].setdefault("nodeName", node)
        change(pod)
        return self.api.store.put(key, pod)

    def write_log(self, pod: str, text: str, *, namespace: str, container: str = "") -> None:
        found = self.get("pods", pod, namespace=namespace)
        assert found is not None
        self.server.logs.write(namespace, pod, container or found["spec"]["containers"][0]["name"], text)

    def event(
        self,
        plural: str,
        name: str,
        reason: str,
        message: str,
        *,
        namespace: str,
        kind: str = "Warning",
        source: str = "kubelet",
    ) -> None:
        """Record an Event about an object."""
        about = self.get(plural, name, namespace=namespace)
        assert about is not None
        kubelet.record_event(self.api, about, kind, reason, message, source)


@contextlib.asynccontextmanager
async def fake_cluster(version: str = "1.36.2", *, controllers: bool = True) -> AsyncIterator[FakeCluster]:
    """A cluster that is empty but for its namespaces.

    `controllers` False: nothing happens that no request asked for.
    """
    cluster = FakeCluster(version)
    for name in ("default", "kube-system"):
        cluster.namespace(name)
    await cluster.start()
    task = asyncio.create_task(cluster.controllers.run(), name="controllers") if controllers else None
    try:
        yield cluster
    finally:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await cluster.stop()
