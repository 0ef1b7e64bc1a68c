"""Server-side apply: who set which field."""

from contract.kubernetes_api.samples import a_job, a_map, a_pod
from support.kubernetes.access_point import MERGE, Access


async def test_apply_makes_what_is_not_there_and_changes_nothing_twice(api: Access) -> None:
    first, made = await api.apply("configmaps/map", a_map(a="1"), "one")
    again, same = await api.apply("configmaps/map", a_map(a="1"), "one")

    assert (first, again) == (201, 200)
    assert same["metadata"] == made["metadata"]


async def test_what_was_applied_is_owned_and_no_default_is(api: Access) -> None:
    _, made = await api.apply("jobs.batch/job", a_job(), "one")

    [entry] = [entry for entry in made["metadata"]["managedFields"] if entry["manager"] == "one"]
    assert entry["operation"] == "Apply"
    assert "f:suspend" in entry["fieldsV1"]["f:spec"]
    assert "f:completions" not in entry["fieldsV1"]["f:spec"]


async def test_the_field_of_another_is_a_conflict_that_names_both(api: Access) -> None:
    await api.apply("configmaps/map", a_map(a="1"), "one")

    status, told = await api.apply("configmaps/map", a_map(a="2", b="3"), "two")

    assert (status, told["reason"]) == (409, "Conflict")
    assert told["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert told["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    ]
    assert (await api.read("configmaps/map"))["data"] == {"a": "1"}


async def test_a_conflict_with_a_plain_write_names_its_version(api: Access) -> None:
    await api.make("configmaps", a_map(a="1"), fieldManager="editor")

    status, told = await api.apply("configmaps/map", a_map(a="2"), "two")

    assert status == 409
    assert told["message"] == 'Apply failed with 1 conflict: conflict with "editor" using v1: .data.a'


async def test_the_same_value_is_shared(api: Access) -> None:
    await api.apply("configmaps/map", a_map(a="1"), "one")

    status, _ = await api.apply("configmaps/map", a_map(a="1"), "two")
    await api.apply("configmaps/map", a_map(), "one")

    assert status == 200
    assert (await api.read("configmaps/map"))["data"] == {"a": "1"}


async def test_force_takes_a_field_over(api: Access) -> None:
    await api.apply("configmaps/map", a_map(a="1"), "one")

    status, taken = await api.apply("configmaps/map", a_map(a="2"), "two", force="true")
    refused, _ = await api.apply("configmaps/map", a_map(a="1"), "one")

    assert (status, taken["data"]) == (200, {"a": "2"})
    assert refused == 409


async def test_what_is_applied_no_more_is_removed_and_what_others_set_stays(api: Access) -> None:
    await api.apply("configmaps/map", a_map(a="1", b="2"), "one")
    await api.ask("PATCH", "configmaps/map", {"data": {"c": "3"}}, content_type=MERGE, fieldManager="editor")

    status, left = await api.apply("configmaps/map", a_map(a="1"), "one")

    assert (status, left["data"]) == (200, {"a": "1", "c": "3"})


async def test_lists_are_merged_by_their_keys(api: Access) -> None:
    pod = a_pod()
    pod["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    await api.apply("pods/pod", pod, "one")
    [before] = (await api.read("pods/pod"))["spec"]["containers"]
    meta = {"labels": {"a": "b"}, "finalizers": ["landbridge.io/two"]}

    status, merged = await api.apply("pods/pod", {"apiVersion": "v1", "kind": "Pod", "metadata": meta}, "two")

    assert status == 200
    assert merged["spec"]["containers"] == [before]
    assert merged["metadata"]["finalizers"] == ["landbridge.io/two"]
    _, without = await api.apply("pods/pod", {"apiVersion": "v1", "kind": "Pod", "metadata": {}}, "two")
    assert "finalizers" not in without["metadata"]
    assert "labels" not in without["metadata"]


async def test_apply_needs_a_manager_and_no_managed_fields(api: Access) -> None:
    without, _ = await api.ask("PATCH", "configmaps/map", a_map(), content_type="application/apply-patch+yaml")
    item = a_map()
    item["metadata"]["managedFields"] = [{"manager": "x"}]
    written, _ = await api.apply("configmaps/map", item, "one")

    assert without in (400, 422)
    assert written == 400


async def test_apply_can_be_bound_to_the_object_that_was_read(api: Access) -> None:
    _, made = await api.apply("configmaps/map", a_map(a="1"), "one")
    item = a_map(a="2")
    item["metadata"]["uid"] = made["metadata"]["uid"]
    assert (await api.apply("configmaps/map", item, "one"))[0] == 200
    await api.ask("DELETE", "configmaps/map")

    status, told = await api.apply("configmaps/map", item, "one")

    assert (status, told["reason"]) == (409, "Conflict")


async def test_apply_as_a_dry_run(api: Access) -> None:
    await api.apply("configmaps/map", a_map(a="1"), "one")

    refused, _ = await api.apply("configmaps/map", a_map(a="2"), "two", dryRun="All")
    status, told = await api.apply("configmaps/map", a_map(a="2"), "one", dryRun="All")

    assert (refused, status, told["data"]) == (409, 200, {"a": "2"})
    assert (await api.read("configmaps/map"))["data"] == {"a": "1"}
    assert (await api.apply("configmaps/new", a_map("new"), "one", dryRun="All"))[0] == 201
    assert (await api.ask("GET", "configmaps/new"))[0] == 404
