"""How tests speak with an API server, real or ours: plain requests, as raw as they come."""

import asyncio
import contextlib
import json
import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from kubernetes_asyncio import client, config

from support.kubernetes.cluster import FakeCluster, fake_cluster
from support.kubernetes.errors import Object

_ending: list[tuple[str, str]] = []
"""Namespaces of real clusters whose removal has begun, each with its cluster's file."""
SWITCH = "LANDBRIDGE_TEST_KUBERNETES"
MARK = "landbridge.io/test-run"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY, JSON_PATCH = "application/apply-patch+yaml", "application/json-patch+json"


@dataclass
class Access:
    """One API server and a namespace of our own in it. `fake`: the one in this process, for what only it can do."""

    configuration: client.Configuration
    session: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict)
    namespace: str = ""
    fake: FakeCluster | None = None
    has_controllers: bool = True
    kubeconfig: str = ""
    """Its file; empty for the fake, which needs none."""

    @property
    def host(self) -> str:
        return str(self.configuration.host).rstrip("/")

    def at(self, path: str) -> str:
        """`jobs.batch/NAME` and `pods/NAME/status` in our namespace, anything that begins with a slash as it is."""
        if path.startswith("/"):
            return path
        plural, _, rest = path.partition("/")
        name, _, group = plural.partition(".")
        base = f"/apis/{group}/v1" if group else "/api/v1"
        return f"{base}/namespaces/{self.namespace}/{name}" + (f"/{rest}" if rest else "")

    async def ask(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json", **query: Any
    ) -> tuple[int, Any]:
        """Return the status and the answer, decoded if it is JSON."""
        headers = {**self.headers, "Content-Type": content_type, "User-Agent": "landbridge-tests/1"}
        data = None if body is None else json.dumps(body)
        parameters = {name: str(value) for name, value in query.items()}
        url = self.host + self.at(path)
        async with self.session.request(method, url, data=data, params=parameters, headers=headers) as answer:
            text = await answer.read()
            decoded = json.loads(text) if text and "json" in answer.content_type else text.decode()
            return answer.status, decoded

    async def make(self, path: str, body: Object, **query: Any) -> Object:
        status, answer = await self.ask("POST", path, body, **query)
        assert status in (200, 201), answer
        return dict(answer)

    async def read(self, path: str, **query: Any) -> Object:
        status, answer = await self.ask("GET", path, **query)
        assert status == 200, answer
        return dict(answer)

    async def apply(self, path: str, body: Object, manager: str, **query: Any) -> tuple[int, Any]:
        return await self.ask("PATCH", path, body, content_type=APPLY, fieldManager=manager, **query)

    @contextlib.asynccontextmanager
    async def watching(self, path: str, **query: Any) -> AsyncIterator["Stream"]:
        parameters = {"watch": "true", **{name: str(value) for name, value in query.items()}}
        url, timeout = self.host + self.at(path), aiohttp.ClientTimeout(total=60)
        async with self.session.get(url, params=parameters, headers=self.headers, timeout=timeout) as answer:
            assert answer.status == 200, await answer.text()
            yield Stream(answer)

    def anew(self, token: str) -> "Access":
        """The same server, asked as whoever the token stands for."""
        configuration = client.Configuration(host=self.host)
        configuration.ssl_ca_cert = self.configuration.ssl_ca_cert
        configuration.verify_ssl = self.configuration.verify_ssl
        configuration.api_key = {"BearerToken": f"Bearer {token}"}
        return Access(
            configuration,
            client.ApiClient(configuration).rest_client.pool_manager,
            {"Authorization": f"Bearer {token}"},
            self.namespace,
            self.fake,
            self.has_controllers,
        )


class Stream:
    """The events of a watch."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def next(self, within_s: float = 10.0) -> Object:
        async with asyncio.timeout(within_s):
            line = await self._answer.content.readline()
        assert line, "the stream has ended"
        return dict(json.loads(line))

    async def rest(self, within_s: float = 15.0) -> list[Object]:
        """All that comes until the server ends it."""
        async with asyncio.timeout(within_s):
            return [json.loads(line) async for line in self._answer.content]


def real_is_wanted() -> bool:
    """Only where it was said on purpose: many have a KUBECONFIG of something that matters."""
    return os.environ.get(SWITCH) == "1" and bool(os.environ.get("KUBECONFIG"))


def image() -> str:
    """An image with `sh`, for tests whose pods really run; empty where there is no kubelet to run them."""
    return os.environ.get("LANDBRIDGE_TEST_IMAGE", "")


@contextlib.asynccontextmanager
async def fake_access(**options: Any) -> AsyncIterator[Access]:
    async with fake_cluster(**options) as cluster:
        configuration = client.Configuration(host=cluster.url)
        async with client.ApiClient(configuration) as api:
            access = Access(configuration, api.rest_client.pool_manager, fake=cluster)
            async with own_namespace(access):
                yield access


@contextlib.asynccontextmanager
async def real_access(kubeconfig: str = "") -> AsyncIterator[Access]:
    """The cluster of KUBECONFIG or of another file, as whoever that says, and a namespace of our own in it."""
    async with real_access_without_namespace(kubeconfig) as access, own_namespace(access):
        yield access


@contextlib.asynccontextmanager
async def real_access_without_namespace(kubeconfig: str = "") -> AsyncIterator[Access]:
    file, configuration = kubeconfig or os.environ["KUBECONFIG"], client.Configuration()
    await config.load_kube_config(config_file=file, client_configuration=configuration)
    token = (getattr(configuration, "api_key", None) or {}).get("BearerToken", "")
    async with client.ApiClient(configuration) as api:
        headers = {"Authorization": token} if token else {}
        yield Access(configuration, api.rest_client.pool_manager, headers, kubeconfig=file)


@contextlib.asynccontextmanager
async def own_namespace(access: Access, labels: dict[str, str] | None = None) -> AsyncIterator[str]:
    """A namespace that nobody had before, removed with all that is in it. Refuses one that exists."""
    name, run = f"landbridge-test-{secrets.token_hex(4)}", secrets.token_hex(8)
    meta = {"name": name, "labels": {MARK: run, **(labels or {})}}
    status, answer = await access.ask("POST", "/api/v1/namespaces", {"metadata": meta})
    assert status == 201, f"namespace {name} is not ours to use: {answer}"
    before, access.namespace = access.namespace, name
    try:
        access.has_controllers = await _account_appears(access)
        yield name
    finally:
        await _remove_namespace(access, name, run)
        if access.fake is not None:
            await _until_gone(access, name)
        else:
            # A real one takes seconds for it: the next test need not wait, the end of all does.
            _ending.append((access.kubeconfig, name))
        access.namespace = before


async def _account_appears(access: Access) -> bool:
    """Whether there is a controller manager: it makes the default service account. Else we do."""
    for _ in range(30):
        if (await access.ask("GET", "serviceaccounts/default"))[0] == 200:
            return True
        await asyncio.sleep(0.1)
    await access.ask("POST", "serviceaccounts", {"metadata": {"name": "default"}})
    return False


_EMPTIED = (
    "jobs.batch", "deployments.apps", "replicasets.apps", "pods", "services", "persistentvolumeclaims", "secrets",
    "configmaps", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "events",
    "leases.coordination.k8s.io", "networkpolicies.networking.k8s.io", "serviceaccounts",
)  # fmt: skip


async def _remove_namespace(access: Access, name: str, run: str) -> None:
    status, found = await access.ask("GET", f"/api/v1/namespaces/{name}")
    if status == 404:
        return
    assert found["metadata"]["labels"].get(MARK) == run, f"namespace {name} is not the one that was made here"
    if not access.has_controllers:
        for plural in _EMPTIED:
            await access.ask("DELETE", plural, propagationPolicy="Background", gracePeriodSeconds=0)
    await access.ask("DELETE", f"/api/v1/namespaces/{name}")
    if not access.has_controllers:
        found["spec"]["finalizers"] = []
        found["metadata"].pop("resourceVersion")
        await access.ask("PUT", f"/api/v1/namespaces/{name}/finalize", found)


async def nothing_is_left() -> None:
    """Wait until the real cluster is as it was before. Raises AssertionError for what stays."""
    for kubeconfig, name in _ending:
        async with real_access_without_namespace(kubeconfig) as access:
            await _until_gone(access, name)
    _ending.clear()


async def _until_gone(access: Access, name: str) -> None:
    for _ in range(600):
        if (await access.ask("GET", f"/api/v1/namespaces/{name}"))[0] == 404:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"namespace {name} is still there after a minute; see its status for what holds it")
