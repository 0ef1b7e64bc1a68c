"""Watches: in order, from a revision on, as selectors see it, with an end."""

from contract.kubernetes_api.samples import a_map
from support.kubernetes.access_point import MERGE, Access

OURS = {"labelSelector": "sample=yes"}
"""Controllers put objects of their own into a new namespace, at any moment."""


def _ours(name: str) -> dict[str, object]:
    item = a_map(name)
    item["metadata"]["labels"] = {"sample": "yes"}
    return item


def _told(event: dict[str, object]) -> tuple[object, str]:
    item = event["object"]
    assert isinstance(item, dict)
    return event["type"], item["metadata"]["name"]


async def test_changes_come_in_order_from_where_the_list_ended(api: Access) -> None:
    await api.make("configmaps", _ours("before"))
    revision = (await api.read("configmaps"))["metadata"]["resourceVersion"]

    async with api.watching("configmaps", resourceVersion=revision, **OURS) as stream:
        await api.make("configmaps", _ours("new"))
        await api.ask("PATCH", "configmaps/before", {"data": {"a": "1"}}, content_type=MERGE)
        await api.ask("DELETE", "configmaps/new")
        events = [await stream.next() for _ in range(3)]

    assert [_told(event) for event in events] == [("ADDED", "new"), ("MODIFIED", "before"), ("DELETED", "new")]
    revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert revisions == sorted(revisions)
    assert events[0]["object"]["kind"] == "ConfigMap"


async def test_a_watch_from_the_past_tells_what_has_happened_since(api: Access) -> None:
    revision = (await api.read("configmaps"))["metadata"]["resourceVersion"]
    await api.make("configmaps", _ours("one"))
    await api.ask("DELETE", "configmaps/one")

    async with api.watching("configmaps", resourceVersion=revision, **OURS) as stream:
        events = [await stream.next() for _ in range(2)]

    assert [_told(event) for event in events] == [("ADDED", "one"), ("DELETED", "one")]


async def test_without_a_revision_what_there_is_comes_first(api: Access) -> None:
    await api.make("configmaps", a_map("one"))

    async with api.watching("configmaps", fieldSelector="metadata.name=one") as stream:
        first = await stream.next()

    assert _told(first) == ("ADDED", "one")


async def test_what_no_longer_matches_is_gone_for_the_watch(api: Access) -> None:
    item = a_map("one")
    item["metadata"]["labels"] = {"sample": "yes"}
    revision = (await api.read("configmaps"))["metadata"]["resourceVersion"]

    async with api.watching("configmaps", resourceVersion=revision, labelSelector="sample=yes") as stream:
        await api.make("configmaps", a_map("other"))
        await api.make("configmaps", item)
        for labels in ({"sample": "no"}, {"sample": "yes"}):
            await api.ask("PATCH", "configmaps/one", {"metadata": {"labels": labels}}, content_type=MERGE)
        events = [await stream.next() for _ in range(3)]

    assert [_told(event) for event in events] == [("ADDED", "one"), ("DELETED", "one"), ("ADDED", "one")]
    assert events[1]["object"]["metadata"]["labels"] == {"sample": "yes"}


async def test_a_revision_that_is_forgotten_is_gone(api: Access) -> None:
    async with api.watching("configmaps", resourceVersion="1") as stream:
        event = await stream.next()

    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_a_watch_ends_when_its_time_is_over(api: Access) -> None:
    revision = (await api.read("configmaps"))["metadata"]["resourceVersion"]

    async with api.watching("configmaps", resourceVersion=revision, timeoutSeconds=1, **OURS) as stream:
        assert await stream.rest() == []


async def test_a_stream_says_where_the_beginning_ends(api: Access) -> None:
    await api.make("configmaps", a_map("one"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}

    async with api.watching("configmaps", labelSelector="!nothing", **query) as stream:
        events = [await stream.next()]
        while events[-1]["type"] != "BOOKMARK":
            events.append(await stream.next())

    assert "one" in [event["object"]["metadata"]["name"] for event in events[:-1]]
    assert events[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert events[-1]["object"]["metadata"]["resourceVersion"].isdecimal()
