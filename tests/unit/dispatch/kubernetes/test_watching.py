"""A list that was asked for while things went on says no more than what it saw: what is newer stands."""

import asyncio
from typing import Any

import pytest

from landbridge_dispatch.executors.kubernetes.api import Api, Object
from landbridge_dispatch.executors.kubernetes.watching import Kept


def an_object(name: str, version: int, uid: str = "") -> Object:
    return {"metadata": {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}}


class SlowApi(Api):
    """Answers a list with what the test says, when the test says it."""

    def __init__(self) -> None:
        super().__init__(host="http://nowhere.invalid")
        self.answer: asyncio.Future[tuple[list[Object], str]] = asyncio.get_running_loop().create_future()

    async def list(self, path: str, selector: str = "", **query: str) -> tuple[list[Object], str]:
        return await self.answer


class Listing:
    """Objects that are kept, and a list of them that is on its way."""

    def __init__(self, *known: Object) -> None:
        self.told: list[tuple[str, bool]] = []
        self.api = SlowApi()
        self.kept = Kept(self.api, "/jobs", "", lambda item, gone: self.told.append((item["metadata"]["name"], gone)))
        self.kept.items = {item["metadata"]["name"]: item for item in known}
        self.task = asyncio.create_task(self.kept.list())

    async def answers(self, *found: Object, version: str = "10") -> dict[str, Any]:
        self.api.answer.set_result((list(found), version))
        await self.task
        return {name: item["metadata"]["resourceVersion"] for name, item in self.kept.items.items()}


@pytest.fixture
async def listing() -> Listing:
    made = Listing(an_object("a", 5), an_object("b", 6))
    await asyncio.sleep(0)
    return made


async def test_what_was_made_meanwhile_is_not_gone(listing: Listing) -> None:
    listing.kept.note(an_object("new", 11))
    assert await listing.answers(an_object("a", 5), an_object("b", 6)) == {"a": "5", "b": "6", "new": "11"}
    assert listing.told == []


async def test_what_was_written_meanwhile_stays_as_it_was_written(listing: Listing) -> None:
    listing.kept.note(an_object("a", 12))
    assert await listing.answers(an_object("a", 5), an_object("b", 6)) == {"a": "12", "b": "6"}
    assert listing.told == []


async def test_what_was_removed_meanwhile_does_not_come_back_and_its_successor_does(listing: Listing) -> None:
    listing.kept.forget("a")
    listing.kept.forget("b")
    found = await listing.answers(an_object("a", 5), an_object("b", 9, uid="another"))
    assert found == {"b": "9"}


async def test_what_was_known_before_and_is_not_listed_is_gone(listing: Listing) -> None:
    assert await listing.answers(an_object("a", 7)) == {"a": "7"}
    assert sorted(listing.told) == [("a", False), ("b", True)]
