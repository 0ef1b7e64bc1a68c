"""Probes of a fake cluster: who runs them, and how pods of trials go."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from landbridge.domain import probe_kinds
from landbridge.schema.wire.command_v1 import Probe
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.kubernetes import permissions as work
from landbridge_dispatch.executors.kubernetes.api import PATIENCE_S, Api
from landbridge_dispatch.executors.kubernetes.probing import permissions
from landbridge_dispatch.executors.kubernetes.probing.cluster import ClusterProbes
from landbridge_dispatch.executors.protocol import Finding
from support.kubernetes import Course, FakeCluster, User

RBAC = "rbac.authorization.k8s.io"
DIGEST = "sha256:" + "7" * 64
SPACE = "work"
TOKEN = "dispatcher"


def some_bindings(**sections: Any) -> Bindings:
    from landbridge_dispatch.executors.bindings import _SECTIONS

    kubernetes = {"site": "a", "namespace": SPACE, "probes": {"image": f"registry.site/tools/box@{DIGEST}"}}
    value = {"kubernetes": {**kubernetes, **sections.pop("kubernetes", {})}, **sections}
    return Bindings(home=Path(), **{name: msgspec.convert(part, _SECTIONS[name]) for name, part in value.items()})


def a_space(cluster: FakeCluster, level: str = "restricted") -> None:
    cluster.namespace(SPACE, labels={"pod-security.kubernetes.io/enforce": level})


def a_dispatcher(cluster: FakeCluster, *, drop: str = "", more: Any = ()) -> str:
    """The dispatcher's account with exactly the rights that are shipped; return its token. `drop`: without these."""
    user = User(f"system:serviceaccount:{SPACE}:dispatcher", ("system:authenticated",))
    cluster.api.access.allow(TOKEN, user)
    own = [
        item for item in (*work.NAMESPACED, *permissions.NAMESPACED) if (item.resource, "create") != (drop, "create")
    ]
    own = [item for item in own if not (item.resource == drop and "create" in item.verbs)]
    _bind(cluster, "Role", [*map(_rule, own), *more])
    _bind(cluster, "ClusterRole", [_rule(item) for item in (*work.CLUSTER, *permissions.CLUSTER)])
    return TOKEN


def _rule(item: work.Permission) -> dict[str, Any]:
    return {"apiGroups": [item.api_group], "resources": [item.resource], "verbs": list(item.verbs)}


def _bind(cluster: FakeCluster, kind: str, rules: list[dict[str, Any]]) -> None:
    subject = {"kind": "ServiceAccount", "name": "dispatcher", "namespace": SPACE}
    reference = {"apiGroup": RBAC, "kind": kind, "name": "dispatcher"}
    cluster.put(f"{kind.lower()}s", {"metadata": {"name": "dispatcher"}, "rules": rules}, namespace=SPACE)
    binding = {"metadata": {"name": "dispatcher"}, "subjects": [subject], "roleRef": reference}
    cluster.put(f"{kind.lower()}bindings", binding, namespace=SPACE)


@contextlib.asynccontextmanager
async def probes_of(
    cluster: FakeCluster, bindings: Bindings, *, token: str = "", patience_s: float = PATIENCE_S
) -> AsyncIterator[ClusterProbes]:
    api = Api(host=cluster.url, patience_s=patience_s)
    await api.open()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(api.close)
        asked = await stack.enter_async_context(api.anew(token)) if token else api
        probes = ClusterProbes(asked, bindings)
        nodes = asyncio.create_task(probes.run_nodes())
        try:
            yield probes
        finally:
            nodes.cancel()
            await asyncio.gather(nodes, return_exceptions=True)


def a_probe(kind: str, claimed: Any = None, *, timeout_s: int = 14, **parameters: str) -> Probe:
    told = {"claimed": json.dumps(claimed), **parameters}
    return Probe(name=f"{kind}@1", claim=kind, kind=kind, timeout_seconds=timeout_s, parameters=told)


async def found_by(probes: ClusterProbes, kind: str, claimed: Any = None, **parameters: Any) -> Finding:
    finding = await probes.run(a_probe(kind, claimed, **parameters))
    assert finding is not None
    return finding


def a_node(
    name: str, *, boot: str = "boot-1", labels: Any = (), taints: Any = (), **allocatable: str
) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"taints": list(taints)},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", **allocatable},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"bootID": boot, "kernelVersion": "6.1", "kubeletVersion": "v1.36.2"},
        },
    }


def pinned(pod: dict[str, Any]) -> str:
    """The node that a pod has to run on."""
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    [name] = terms["nodeSelectorTerms"][0]["matchFields"][0]["values"]
    return str(name)


def honest(pod: dict[str, Any], *, clock_off_s: float = 0.0, exit_code: int = 0) -> Course:
    """A pod that says what it was told to say."""
    word = pod["spec"]["containers"][0]["command"][-1]
    node = pinned(pod) if "affinity" in pod["spec"] else "node-1"
    message = f"{word} {time.time() + clock_off_s:.0f}"
    return Course(run_s=0.01, exit_code=exit_code, message=message, node=node)


def jobs_of_probes(cluster: FakeCluster) -> dict[str, str]:
    """UIDs of the Jobs of probes by name."""
    found = cluster.all_of("jobs", namespace=SPACE)
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in found}


CAPACITY = probe_kinds.CAPACITY
