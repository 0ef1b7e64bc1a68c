"""Probes and the shipped rights, in any cluster: what is refused there, and, with an image, what really runs there."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from landbridge.domain.probe_kinds import BOUNDARY, CAPACITY, REFUSED, STORAGE, WORKLOAD
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.kubernetes import installing
from landbridge_dispatch.executors.kubernetes import permissions as work
from landbridge_dispatch.executors.kubernetes.api import Api
from landbridge_dispatch.executors.kubernetes.probing import permissions as probing
from landbridge_dispatch.executors.kubernetes.probing.boundary import may
from landbridge_dispatch.executors.kubernetes.probing.cluster import ClusterProbes
from landbridge_dispatch.executors.kubernetes.settings import KubernetesSettings
from landbridge_dispatch.executors.protocol import Finding
from support.kubernetes import Course
from support.kubernetes.access_point import Access, image, own_namespace

_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_CLASS: dict[str, Any] = {"class": "cpu-general"}
_TIER: dict[str, Any] = {"boundary": "securityTier", "expect": REFUSED}


@contextlib.asynccontextmanager
async def _probes(api: Access, **probes: str) -> AsyncIterator[ClusterProbes]:
    cluster = Api(api.kubeconfig, host="" if api.kubeconfig else api.host)
    await cluster.open()
    settings = {"site": "a", "namespace": api.namespace, "probes": probes}
    bindings = Bindings(home=Path(), kubernetes=msgspec.convert(settings, KubernetesSettings))
    found = ClusterProbes(cluster, bindings)
    nodes = asyncio.create_task(found.run_nodes())
    try:
        yield found
    finally:
        nodes.cancel()
        await asyncio.gather(nodes, return_exceptions=True)
        await cluster.close()


async def _run(probes: ClusterProbes, kind: str, claimed: Any, *, timeout_s: int = 90, **parameters: Any) -> Finding:
    told = {"claimed": msgspec.json.encode(claimed).decode(), **parameters}
    probe = Probe(name=f"{kind}@1", claim=kind, kind=kind, timeout_seconds=timeout_s, parameters=told)
    found = await probes.run(probe)
    assert found is not None
    return found


async def test_a_tier_is_proven_where_it_is_enforced_and_lost_where_it_is_not(api: Access) -> None:
    async with own_namespace(api, _RESTRICTED), _probes(api) as probes:
        enforced = await _run(probes, BOUNDARY, {"securityTier": "restricted"}, **_TIER)
    async with own_namespace(api), _probes(api) as probes:
        open_ = await _run(probes, BOUNDARY, {"securityTier": "standard"}, **_TIER)
        left = (await api.read("pods"))["items"]

    assert enforced.result is EvidenceResult.PROVEN, enforced.detail
    assert open_.result is EvidenceResult.FAILED
    assert "let in (dry run): a privileged pod, in namespace" in open_.detail
    assert left == []


async def test_the_shipped_rights_are_enough_and_no_more(api: Access) -> None:
    name = f"{installing.NAME}-{api.namespace}"
    made = [*installing.role(api.namespace, api.namespace), *installing.cluster_role(api.namespace, name)]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    paths = {
        "Role": f"{rbac}/namespaces/{api.namespace}/roles",
        "RoleBinding": f"{rbac}/namespaces/{api.namespace}/rolebindings",
        "ClusterRole": f"{rbac}/clusterroles",
        "ClusterRoleBinding": f"{rbac}/clusterrolebindings",
    }
    await api.make("serviceaccounts", {"metadata": {"name": installing.NAME}})
    try:
        for item in made:
            await api.make(paths[item["kind"]], item)
        answer = await api.make(f"serviceaccounts/{installing.NAME}/token", {"spec": {}})
        cluster = Api(api.kubeconfig, host="" if api.kubeconfig else api.host)
        await cluster.open()
        async with cluster.anew(answer["status"]["token"]) as asked:
            rights = [(item, api.namespace) for item in (*work.NAMESPACED, *probing.NAMESPACED)]
            rights += [(item, "") for item in (*work.CLUSTER, *probing.CLUSTER)]
            for right, namespace in rights:
                for verb in right.verbs:
                    assert await may(asked, verb, right.api_group, right.resource, namespace), (verb, right.resource)
            settings = {"site": "a", "namespace": api.namespace}
            bindings = Bindings(home=Path(), kubernetes=msgspec.convert(settings, KubernetesSettings))
            probes = ClusterProbes(asked, bindings)
            apart = await _run(probes, BOUNDARY, {}, boundary="tenancy", expect=REFUSED)
        await cluster.close()
    finally:
        for kind in ("ClusterRoleBinding", "ClusterRole"):
            await api.ask("DELETE", f"{paths[kind]}/{name}")

    assert apart.result is EvidenceResult.PROVEN, apart.detail


async def test_nodes_are_proven_by_jobs_that_really_run(api: Access) -> None:
    chosen = image() or "registry.invalid/box@sha256:" + "0" * 64
    if api.fake is None and not image():
        pytest.skip("LANDBRIDGE_TEST_IMAGE names no image with sh: nothing can run")
    if "@sha256:" not in chosen:
        pytest.skip("LANDBRIDGE_TEST_IMAGE is no reference by digest, which probes demand")
    if api.fake is not None:
        api.fake.put("nodes", _NODE)
        api.fake.kubelet.course = _honest
    async with own_namespace(api, _RESTRICTED), _probes(api, image=chosen) as probes:
        runtime = await _run(probes, WORKLOAD, {})
        first = await _run(probes, CAPACITY, {"cpu": "1"}, **_CLASS)
        again = await _run(probes, CAPACITY, {"cpu": "1"}, **_CLASS)
        storage = {
            name: await _run(probes, STORAGE, {"storageClass": name}, timeout_s=120, storage="default")
            for name in await _default_storage(api)
        }

    assert runtime.result is EvidenceResult.PROVEN, runtime.detail
    assert (first.result, first.proven) == (EvidenceResult.PROVEN, 1), first.detail
    assert again == first
    # Both are the truth about some cluster: the probe writes as work does, which is not root.
    told = {"a claim was bound, written and read", "exit code 1: it cannot be written as user 65532"}
    assert {found.detail for found in storage.values()} <= told


async def _default_storage(api: Access) -> list[str]:
    found = (await api.read("/apis/storage.k8s.io/v1/storageclasses"))["items"]
    mark = "storageclass.kubernetes.io/is-default-class"
    return [one["metadata"]["name"] for one in found if (one["metadata"].get("annotations") or {}).get(mark) == "true"]


_NODE = {
    "metadata": {"name": "node-1"},
    "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
}


def _honest(pod: dict[str, Any]) -> Course:
    return Course(run_s=0.01, message=f"{pod['spec']['containers'][0]['command'][-1]} {time.time():.0f}")
