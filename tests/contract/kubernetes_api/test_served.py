"""What is served, and kinds that are defined later."""

import asyncio
import secrets

from contract.kubernetes_api.samples import a_pod
from support.kubernetes.access_point import Access

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def test_the_version_is_told(api: Access) -> None:
    told = await api.read("/version")

    assert told["gitVersion"].startswith(f"v{told['major']}.")
    assert told["minor"].rstrip("+").isdecimal()


async def test_what_is_served_is_listed(api: Access) -> None:
    groups = {group["name"] for group in (await api.read("/apis"))["groups"]}
    batch = {item["name"]: item for item in (await api.read("/apis/batch/v1"))["resources"]}
    core = {item["name"]: item for item in (await api.read("/api/v1"))["resources"]}

    assert groups >= {"apps", "batch", "networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io", "policy"}
    assert (batch["jobs"]["kind"], batch["jobs"]["namespaced"]) == ("Job", True)
    assert set(batch["jobs"]["verbs"]) >= {"create", "delete", "get", "list", "patch", "update", "watch"}
    assert set(core) >= {"pods", "pods/log", "pods/eviction", "serviceaccounts/token", "nodes", "namespaces"}
    assert core["nodes"]["namespaced"] is False
    assert (await api.ask("GET", "/apis/nobody.invalid/v1"))[0] == 404


async def test_a_kind_that_is_defined_is_served(api: Access) -> None:
    group = f"t{secrets.token_hex(4)}.landbridge.invalid"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    definition = {
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    path = f"/apis/{group}/v1/namespaces/{api.namespace}/things"
    await api.make(_DEFINITIONS, definition)
    try:
        for _ in range(100):
            if (await api.ask("GET", path))[0] == 200:
                break
            await asyncio.sleep(0.1)
        item = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"a": [1, 2]}}
        made = await api.make(path, item)
        [listed] = (await api.read(path))["items"]
        assert (made["metadata"]["generation"], made["spec"]) == (1, {"a": [1, 2]})
        assert (listed["kind"], listed["apiVersion"]) == ("Thing", f"{group}/v1")
        patch = {"apiVersion": f"{group}/v1", "kind": "Thing", "spec": {"a": [3]}}
        assert (await api.apply(f"{path}/one", patch, "one"))[0] == 409
        assert (await api.apply(f"{path}/one", patch, "one", force="true"))[1]["spec"] == {"a": [3]}
        strategic = "application/strategic-merge-patch+json"
        assert (await api.ask("PATCH", f"{path}/one", {}, content_type=strategic))[0] == 415
    finally:
        await api.ask("DELETE", f"{_DEFINITIONS}/things.{group}")
    for _ in range(100):
        if (await api.ask("GET", path))[0] == 404:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the kind is still served")


async def test_a_pod_is_bound_once(api: Access) -> None:
    await api.make("pods", a_pod())
    target = {"metadata": {"name": "pod"}, "target": {"kind": "Node", "name": "node-x"}}

    first, _ = await api.ask("POST", "pods/pod/binding", target)
    second, told = await api.ask("POST", "pods/pod/binding", target)

    assert (first, second, told["reason"]) == (201, 409, "Conflict")
    found = await api.read("pods/pod")
    assert found["spec"]["nodeName"] == "node-x"
    assert ("PodScheduled", "True") in [(one["type"], one["status"]) for one in found["status"]["conditions"]]
    # Nothing else ends the pod: no kubelet has that node.
    await api.ask("DELETE", "pods/pod", {"gracePeriodSeconds": 0})


async def test_the_log_of_a_pod_that_no_node_has_is_empty(api: Access) -> None:
    await api.make("pods", a_pod())

    status, text = await api.ask("GET", "pods/pod/log")

    assert (status, text) == (204, "")
    assert (await api.ask("GET", "pods/pod/log", container="other"))[0] == 400
    assert (await api.ask("GET", "pods/none/log"))[0] == 404


async def test_a_pod_is_evicted(api: Access) -> None:
    await api.make("pods", a_pod())
    item = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "pod", "namespace": api.namespace}}

    status, _ = await api.ask("POST", "pods/pod/eviction", item)

    assert status == 201
    for _ in range(100):
        if (await api.ask("GET", "pods/pod"))[0] == 404:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the pod is still there")
