"""What deleting does: preconditions, finalizers, dependents, namespaces."""

import asyncio
from collections.abc import Awaitable, Callable

from contract.kubernetes_api.samples import a_job, a_map, a_pod
from support.kubernetes.access_point import MERGE, Access, own_namespace


async def _until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    for _ in range(150):
        if await holds():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(what)


async def _is_gone(api: Access, path: str) -> bool:
    return (await api.ask("GET", path))[0] == 404


async def test_what_is_gone_at_once_is_confirmed_by_a_status(api: Access) -> None:
    made = await api.make("configmaps", a_map())

    status, told = await api.ask("DELETE", "configmaps/map")

    assert (status, told["kind"], told["status"]) == (200, "Status", "Success")
    assert told["details"] == {"name": "map", "kind": "configmaps", "uid": made["metadata"]["uid"]}


async def test_only_the_object_that_was_meant_is_deleted(api: Access) -> None:
    made = await api.make("configmaps", a_map())
    await api.ask("PATCH", "configmaps/map", {"data": {"a": "1"}}, content_type=MERGE)
    uid, revision = made["metadata"]["uid"], made["metadata"]["resourceVersion"]

    for wrong in ({"uid": "00000000-0000-0000-0000-000000000000"}, {"uid": uid, "resourceVersion": revision}):
        status, told = await api.ask("DELETE", "configmaps/map", {"preconditions": wrong})
        assert (status, told["reason"]) == (409, "Conflict")
    status, _ = await api.ask("DELETE", "configmaps/map", {"preconditions": {"uid": uid}})

    assert status == 200


async def test_a_finalizer_holds_an_object(api: Access) -> None:
    item = a_map()
    item["metadata"]["finalizers"] = ["landbridge.io/test"]
    await api.make("configmaps", item)

    status, told = await api.ask("DELETE", "configmaps/map")

    assert (status, told["kind"]) == (200, "ConfigMap")
    held = await api.read("configmaps/map")
    assert held["metadata"]["deletionTimestamp"]
    more = {"metadata": {"finalizers": ["landbridge.io/test", "landbridge.io/more"]}}
    assert (await api.ask("PATCH", "configmaps/map", more, content_type=MERGE))[0] == 422
    await api.ask("PATCH", "configmaps/map", {"metadata": {"finalizers": None}}, content_type=MERGE)
    assert await _is_gone(api, "configmaps/map")


async def test_a_pod_that_no_node_has_goes_at_once(api: Access) -> None:
    await api.make("pods", a_pod())

    status, told = await api.ask("DELETE", "pods/pod")

    assert (status, told["kind"]) == (200, "Pod")
    assert await _is_gone(api, "pods/pod")


async def test_dependents_go_with_their_owner(controlled: Access) -> None:
    api = controlled
    owner = await api.make("configmaps", a_map("owner"))
    item = a_map("owned")
    item["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    ]
    await api.make("configmaps", item)

    await api.ask("DELETE", "configmaps/owner", propagationPolicy="Background")

    await _until(lambda: _is_gone(api, "configmaps/owned"), "the dependent is still there")


async def test_in_the_foreground_the_owner_goes_last(controlled: Access) -> None:
    api = controlled
    owner = await api.make("configmaps", a_map("owner"))
    item = a_map("owned")
    item["metadata"]["finalizers"] = ["landbridge.io/test"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    item["metadata"]["ownerReferences"] = [{**reference, "blockOwnerDeletion": True}]
    await api.make("configmaps", item)

    await api.ask("DELETE", "configmaps/owner", propagationPolicy="Foreground")

    async def is_ending() -> bool:
        return (await api.read("configmaps/owned"))["metadata"].get("deletionTimestamp") is not None

    await _until(is_ending, "the dependent is not deleted")
    assert (await api.read("configmaps/owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.ask("PATCH", "configmaps/owned", {"metadata": {"finalizers": None}}, content_type=MERGE)
    await _until(lambda: _is_gone(api, "configmaps/owner"), "the owner is still there")


async def test_a_job_that_is_deleted_without_a_word_leaves_its_pods(controlled: Access) -> None:
    api = controlled
    job = a_job(suspend=False)
    job["spec"]["template"]["spec"]["schedulerName"] = "nobody"
    await api.make("jobs.batch", job)
    found: list[dict[str, object]] = []

    async def has_pod() -> bool:
        found[:] = (await api.read("pods", labelSelector="job-name=job"))["items"]
        return len(found) == 1

    await _until(has_pod, "no pod of the Job")
    await api.ask("DELETE", "jobs.batch/job")
    await _until(lambda: _is_gone(api, "jobs.batch/job"), "the Job is still there")

    [left] = (await api.read("pods", labelSelector="job-name=job"))["items"]
    assert not left["metadata"].get("ownerReferences")


async def test_a_namespace_ends_with_all_that_is_in_it(controlled: Access) -> None:
    api = controlled
    async with own_namespace(api) as name:
        await api.make("configmaps", a_map())
        status, told = await api.ask("DELETE", f"/api/v1/namespaces/{name}")
        assert (status, told["status"]["phase"]) == (200, "Terminating")
        status, told = await api.ask("POST", "configmaps", a_map("late"))
        assert status in (403, 404)
        await _until(lambda: _is_gone(api, f"/api/v1/namespaces/{name}"), "the namespace is still there")
