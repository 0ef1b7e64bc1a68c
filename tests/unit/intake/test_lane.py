"""Publishing behind the answer: soon, together where order is free, in order where the last one counts."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound
from landbridge.runtime.outbox import Written
from landbridge_intake.lane import PublishLane
from support.wait import wait_until


class SlowOutbox:
    """Publishes when it is let; remembers the order and how many were under way at a time."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.published: list[str] = []
        self.under_way = self.most = 0

    async def publish_written(self, written: Written) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.gate.wait()
        await asyncio.sleep(0)
        self.published.append(written.mark)
        self.under_way -= 1


def _written(mark: str, *, ordered: bool = False) -> Written:
    subject = subjects.catalogue("queue", "x") if ordered else subjects.operation("accepted", "p")
    return Written((Outbound(subject, "t", b""),), mark)


@pytest.fixture
async def outbox() -> SlowOutbox:
    return SlowOutbox()


@pytest.fixture
async def lane(outbox: Any) -> AsyncIterator[PublishLane]:
    made = PublishLane(outbox)
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()


async def test_what_waits_is_counted_and_flushed(lane: PublishLane, outbox: SlowOutbox) -> None:
    for number in range(20):
        lane.put(_written(str(number)))
    lane.put(Written((), ""))

    assert lane.events == 20
    assert await lane.flush(0.05) is False
    outbox.gate.set()
    assert await lane.flush(5) is True
    assert lane.events == 0
    assert sorted(outbox.published, key=int) == [str(number) for number in range(20)]
    assert 1 < outbox.most <= 8


async def test_documents_are_told_in_the_order_of_their_commits(lane: PublishLane, outbox: SlowOutbox) -> None:
    marks = [f"{number}" for number in range(12)]
    for number, mark in enumerate(marks):
        lane.put(_written(mark, ordered=number % 4 != 0))
    outbox.gate.set()
    await wait_until(lambda: len(outbox.published) == 12, "all are published")

    ordered = [mark for number, mark in enumerate(marks) if number % 4 != 0]
    assert [mark for mark in outbox.published if mark in ordered] == ordered
