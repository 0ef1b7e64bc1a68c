"""Lists, selectors and pages."""

import pytest

from contract.kubernetes_api.samples import a_map, a_pod
from support.kubernetes.access_point import STRATEGIC, Access


async def _names(api: Access, path: str, **query: str) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.read(path, **query))["items"]]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("tier=a", ["one", "two"]),
        ("tier==a,odd", ["one"]),
        ("tier!=a", ["four", "three"]),
        ("tier in (a, b),!odd", ["two"]),
        ("tier notin (a)", ["four", "three"]),
        ("tier", ["one", "three", "two"]),
        ("!tier", ["four"]),
    ],
)
async def test_label_selectors(api: Access, selector: str, found: list[str]) -> None:
    labels = {
        "one": {"tier": "a", "odd": "yes"},
        "two": {"tier": "a"},
        "three": {"tier": "b", "odd": "yes"},
        "four": {},
    }
    for name, held in labels.items():
        item = a_map(name)
        item["metadata"]["labels"] = {"sample": "yes", **held}
        await api.make("configmaps", item)

    assert await _names(api, "configmaps", labelSelector=f"sample=yes,{selector}") == found


async def test_field_selectors(api: Access) -> None:
    for name in ("one", "two"):
        await api.make("pods", a_pod(name))
    await api.ask("PATCH", "pods/two/status", {"status": {"phase": "Running"}}, content_type=STRATEGIC)
    target = {"metadata": {"name": "two"}, "target": {"kind": "Node", "name": "node-x"}}
    assert (await api.ask("POST", "pods/two/binding", target))[0] == 201

    assert await _names(api, "pods", fieldSelector="metadata.name=one") == ["one"]
    assert await _names(api, "pods", fieldSelector="status.phase=Running") == ["two"]
    assert await _names(api, "pods", fieldSelector="status.phase!=Running") == ["one"]
    assert await _names(api, "pods", fieldSelector="spec.nodeName=node-x") == ["two"]
    assert (await api.ask("GET", "pods", fieldSelector="spec.priority=0"))[0] == 400
    assert (await api.ask("GET", "pods", labelSelector="a in b"))[0] == 400
    # Nothing else ends the pod: no kubelet has that node.
    await api.ask("DELETE", "pods/two", {"gracePeriodSeconds": 0})


async def test_a_list_says_as_of_when_and_its_items_not_what_they_are(api: Access) -> None:
    made = await api.make("configmaps", a_map())

    found = await api.read("configmaps")

    assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
    assert int(found["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])
    assert all("kind" not in item and "apiVersion" not in item for item in found["items"])


async def test_pages_show_the_moment_of_the_first(api: Access) -> None:
    for number in range(5):
        item = a_map(f"map-{number}")
        item["metadata"]["labels"] = {"sample": "yes"}
        await api.make("configmaps", item)
    first = await api.read("configmaps", limit="2", labelSelector="sample=yes")
    await api.ask("DELETE", "configmaps/map-3")
    await api.make("configmaps", a_map("map-9"))

    names, page = [], first
    while True:
        names += [item["metadata"]["name"] for item in page["items"]]
        if not page["metadata"].get("continue"):
            break
        token = page["metadata"]["continue"]
        page = await api.read("configmaps", **{"limit": "2", "labelSelector": "sample=yes", "continue": token})

    assert names == [f"map-{number}" for number in range(5)]
    assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_list_at_least_as_new_as_what_was_read(api: Access) -> None:
    made = await api.make("configmaps", a_map())
    revision = made["metadata"]["resourceVersion"]

    found = await api.read("configmaps", resourceVersion=revision, resourceVersionMatch="NotOlderThan")

    assert "map" in [item["metadata"]["name"] for item in found["items"]]
    assert (await api.ask("GET", "configmaps", resourceVersion="abc"))[0] == 400


async def test_what_matches_is_deleted_together(api: Access) -> None:
    for name in ("one", "two"):
        item = a_map(name)
        item["metadata"]["labels"] = {"sample": name}
        await api.make("configmaps", item)

    status, _ = await api.ask("DELETE", "configmaps", labelSelector="sample=one")

    assert status == 200
    assert await _names(api, "configmaps", labelSelector="sample") == ["two"]
