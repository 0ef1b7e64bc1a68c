"""Objects are made, read, changed and found."""

import pytest

from contract.kubernetes_api.samples import a_job, a_map, a_pod
from support.kubernetes.access_point import JSON_PATCH, MERGE, STRATEGIC, Access


async def test_a_new_object_has_an_identity(api: Access) -> None:
    made = await api.make("jobs.batch", a_job())

    meta = made["metadata"]
    assert len(meta["uid"]) == 36
    assert meta["resourceVersion"].isdecimal()
    assert meta["generation"] == 1
    assert meta["creationTimestamp"].endswith("Z")
    assert (made["apiVersion"], made["kind"]) == ("batch/v1", "Job")
    found = await api.read("jobs.batch/job")
    assert found["metadata"]["uid"] == meta["uid"]
    assert found["spec"] == made["spec"]


async def test_a_name_is_taken_once(api: Access) -> None:
    await api.make("jobs.batch", a_job())

    status, told = await api.ask("POST", "jobs.batch", a_job())

    assert (status, told["reason"], told["code"]) == (409, "AlreadyExists", 409)
    assert told["message"] == 'jobs.batch "job" already exists'
    assert told["details"] == {"name": "job", "group": "batch", "kind": "jobs"}


async def test_what_is_not_there_is_not_found(api: Access) -> None:
    status, told = await api.ask("GET", "pods/none")

    assert (status, told["reason"]) == (404, "NotFound")
    assert told["message"] == 'pods "none" not found'
    assert (await api.ask("DELETE", "pods/none"))[0] == 404
    assert (await api.ask("PATCH", "pods/none", {}, content_type=MERGE))[0] == 404


async def test_a_kind_that_is_not_served_is_not_found(api: Access) -> None:
    assert (await api.ask("GET", f"/apis/nobody.invalid/v1/namespaces/{api.namespace}/things"))[0] == 404


async def test_a_namespace_that_is_not_there_takes_nothing(api: Access) -> None:
    status, told = await api.ask("POST", "/api/v1/namespaces/landbridge-nowhere/configmaps", a_map())

    assert (status, told["message"]) == (404, 'namespaces "landbridge-nowhere" not found')


async def test_an_object_of_another_namespace_is_refused(api: Access) -> None:
    item = a_map()
    item["metadata"]["namespace"] = "default"

    status, told = await api.ask("POST", "configmaps", item)

    assert (status, told["reason"]) == (400, "BadRequest")


async def test_a_name_can_be_made_up(api: Access) -> None:
    item = a_map()
    item["metadata"] = {"generateName": "map-"}

    made = await api.make("configmaps", item)

    assert made["metadata"]["name"].startswith("map-")
    assert len(made["metadata"]["name"]) == len("map-") + 5


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "Not A Name"}}, "metadata.name"),
        ({"metadata": {"name": "x", "labels": {"a": "no value!"}}}, "metadata.labels"),
        ({"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": []}}}}, "containers"),
    ],
    ids=["name", "label", "no container"],
)
async def test_a_bad_object_is_refused_with_the_field(api: Access, change: dict[str, object], field: str) -> None:
    status, told = await api.ask("POST", "jobs.batch", {**a_job(), **change})

    assert (status, told["reason"]) == (422, "Invalid")
    assert any(field in cause["field"] for cause in told["details"]["causes"])


async def test_an_update_of_what_has_changed_meanwhile_is_a_conflict(api: Access) -> None:
    first = await api.make("configmaps", a_map(a="1"))
    status, second = await api.ask("PUT", "configmaps/map", {**first, "data": {"a": "2"}})
    assert status == 200
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])

    status, told = await api.ask("PUT", "configmaps/map", {**first, "data": {"a": "3"}})

    assert (status, told["reason"]) == (409, "Conflict")
    assert "the object has been modified" in told["message"]
    assert (await api.read("configmaps/map"))["data"] == {"a": "2"}


async def test_a_patch_can_name_the_version_that_it_was_made_for(api: Access) -> None:
    made = await api.make("configmaps", a_map(a="1"))
    change = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "2"}}
    assert (await api.ask("PATCH", "configmaps/map", change, content_type=MERGE))[0] == 200

    change["data"] = {"a": "3"}
    status, told = await api.ask("PATCH", "configmaps/map", change, content_type=MERGE)

    assert (status, told["reason"]) == (409, "Conflict")


async def test_an_update_meant_for_an_object_of_that_name_before_is_a_conflict(api: Access) -> None:
    first = await api.make("configmaps", a_map(a="1"))
    await api.ask("DELETE", "configmaps/map")
    await api.make("configmaps", a_map(a="1"))
    change = {"metadata": {"uid": first["metadata"]["uid"]}, "data": {"a": "2"}}
    del first["metadata"]["resourceVersion"]

    put, told = await api.ask("PUT", "configmaps/map", {**first, "data": {"a": "2"}})
    patched, refused = await api.ask("PATCH", "configmaps/map", change, content_type=MERGE)

    assert (put, told["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition" in told["message"]
    assert (patched, refused["reason"]) == (422, "Invalid")
    assert (await api.read("configmaps/map"))["data"] == {"a": "1"}


async def test_what_changes_nothing_makes_no_version(api: Access) -> None:
    made = await api.make("configmaps", a_map(a="1"))

    status, same = await api.ask("PATCH", "configmaps/map", {"data": {"a": "1"}}, content_type=MERGE)

    assert status == 200
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_the_generation_counts_changes_of_the_spec_only(api: Access) -> None:
    await api.make("jobs.batch", a_job())

    _, labelled = await api.ask("PATCH", "jobs.batch/job", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    _, scaled = await api.ask("PATCH", "jobs.batch/job", {"spec": {"parallelism": 2}}, content_type=MERGE)

    assert labelled["metadata"]["generation"] == 1
    assert scaled["metadata"]["generation"] == 2


async def test_the_status_is_written_through_its_subresource_only(api: Access) -> None:
    await api.make("pods", {**a_pod(), "status": {"phase": "Running"}})
    assert (await api.read("pods/pod"))["status"]["phase"] == "Pending"
    change = {"status": {"phase": "Running", "message": "told"}, "metadata": {"labels": {"a": "b"}}}

    _, unchanged = await api.ask("PATCH", "pods/pod", {"status": {"phase": "Failed"}}, content_type=STRATEGIC)
    status, written = await api.ask("PATCH", "pods/pod/status", change, content_type=STRATEGIC)

    assert unchanged["status"]["phase"] == "Pending"
    assert status == 200
    assert (written["status"]["phase"], written["status"]["message"]) == ("Running", "told")


async def test_a_template_never_changes(api: Access) -> None:
    made = await api.make("jobs.batch", a_job())
    made["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.invalid/other"
    del made["metadata"]["resourceVersion"]

    status, told = await api.ask("PUT", "jobs.batch/job", made)

    assert (status, told["reason"]) == (422, "Invalid")
    assert "field is immutable" in told["message"]


async def test_a_job_gets_its_defaults_and_its_selector(api: Access) -> None:
    made = await api.make("jobs.batch", a_job())

    spec, uid = made["spec"], made["metadata"]["uid"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert spec["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "job"
    assert spec["template"]["metadata"]["labels"]["job-name"] == "job"
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (1, 1, "NonIndexed")
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 30


async def test_patches_of_each_kind(api: Access) -> None:
    await api.make("configmaps", a_map(a="1", b="2"))

    _, merged = await api.ask("PATCH", "configmaps/map", {"data": {"a": None, "c": "3"}}, content_type=MERGE)
    operations = [{"op": "test", "path": "/data/c", "value": "3"}, {"op": "add", "path": "/data/d", "value": "4"}]
    _, patched = await api.ask("PATCH", "configmaps/map", operations, content_type=JSON_PATCH)
    operations[0]["value"] = "other"
    refused, _ = await api.ask("PATCH", "configmaps/map", operations, content_type=JSON_PATCH)
    unknown, _ = await api.ask("PATCH", "configmaps/map", {}, content_type="application/json")

    assert merged["data"] == {"b": "2", "c": "3"}
    assert patched["data"] == {"b": "2", "c": "3", "d": "4"}
    assert (refused, unknown) == (422, 415)


async def test_a_strategic_patch_merges_lists_by_their_keys(api: Access) -> None:
    await api.make("pods", a_pod())
    ready = {"type": "Ready", "status": "False", "reason": "NotYet"}
    other = {"type": "landbridge.io/Other", "status": "True"}

    await api.ask("PATCH", "pods/pod/status", {"status": {"conditions": [ready]}}, content_type=STRATEGIC)
    await api.ask("PATCH", "pods/pod/status", {"status": {"conditions": [other]}}, content_type=STRATEGIC)

    found = (await api.read("pods/pod"))["status"]["conditions"]
    assert {(one["type"], one["status"]) for one in found} == {("Ready", "False"), ("landbridge.io/Other", "True")}


async def test_a_dry_run_is_checked_and_kept_nowhere(api: Access) -> None:
    status, told = await api.ask("POST", "jobs.batch", a_job(), dryRun="All")
    assert status == 201
    assert told["spec"]["completions"] == 1
    assert (await api.ask("GET", "jobs.batch/job"))[0] == 404
    bad = a_job()
    bad["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    assert (await api.ask("POST", "jobs.batch", bad, dryRun="All"))[0] == 422
    await api.make("jobs.batch", a_job())

    assert (await api.ask("POST", "jobs.batch", a_job(), dryRun="All"))[0] == 409
    change = {"spec": {"suspend": False}}
    assert (await api.ask("PATCH", "jobs.batch/job", change, content_type=MERGE, dryRun="All"))[0] == 200
    assert (await api.ask("DELETE", "jobs.batch/job", dryRun="All"))[0] == 200
    assert (await api.read("jobs.batch/job"))["spec"]["suspend"] is True


async def test_secrets_can_be_written_as_text(api: Access) -> None:
    made = await api.make("secrets", {"metadata": {"name": "secret"}, "stringData": {"key": "value"}})

    assert (made["type"], made["data"], made.get("stringData")) == ("Opaque", {"key": "dmFsdWU="}, None)
