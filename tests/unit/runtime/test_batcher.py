"""Requests that come together are handled together; each asker gets its own answer."""

import asyncio
from collections.abc import Sequence

import pytest

from landbridge.runtime.batcher import QueueFullError, RequestBatcher


async def test_a_lone_request_is_answered_at_once() -> None:
    async def handle(batch: Sequence[int]) -> list[int]:
        return [n * 2 for n in batch]

    assert await RequestBatcher(handle).submit(21) == 42


async def test_requests_that_arrive_during_a_batch_share_the_next() -> None:
    sizes: list[int] = []
    gate = asyncio.Event()

    async def handle(batch: Sequence[int]) -> list[int]:
        sizes.append(len(batch))
        await gate.wait()
        return list(batch)

    batcher = RequestBatcher(handle, limit=50)
    first = asyncio.create_task(batcher.submit(0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    rest = [asyncio.create_task(batcher.submit(n)) for n in range(1, 71)]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(first, *rest) == list(range(71))
    assert sizes == [1, 50, 20]


async def test_an_error_returned_for_one_request_reaches_its_asker_only() -> None:
    async def handle(batch: Sequence[int]) -> list[int | Exception]:
        return [ValueError("odd") if n % 2 else n for n in batch]

    batcher: RequestBatcher[int, int] = RequestBatcher(handle)
    found = await asyncio.gather(*(batcher.submit(n) for n in range(4)), return_exceptions=True)
    assert [type(item) for item in found] == [int, ValueError, int, ValueError]


async def test_an_error_raised_by_the_handler_reaches_every_asker_and_the_next_batch_runs() -> None:
    calls = 0

    async def handle(batch: Sequence[int]) -> list[int]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("database away")
        return list(batch)

    batcher = RequestBatcher(handle)
    found = await asyncio.gather(batcher.submit(1), batcher.submit(2), return_exceptions=True)
    assert [str(item) for item in found] == ["database away"] * 2
    assert await batcher.submit(3) == 3


async def test_an_asker_that_gave_up_is_left_out() -> None:
    seen: list[int] = []

    async def handle(batch: Sequence[int]) -> list[int]:
        seen.extend(batch)
        return list(batch)

    batcher = RequestBatcher(handle)
    gone = asyncio.create_task(batcher.submit(1))
    stays = asyncio.create_task(batcher.submit(2))
    await asyncio.sleep(0)
    gone.cancel()
    assert await stays == 2
    assert seen == [2]


async def test_too_many_waiting_requests_are_refused_and_closing_finishes_the_rest() -> None:
    gate = asyncio.Event()

    async def handle(batch: Sequence[int]) -> list[int]:
        await gate.wait()
        return list(batch)

    batcher = RequestBatcher(handle, waiting_limit=2)
    tasks = [asyncio.create_task(batcher.submit(1))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(batcher.submit(n)) for n in (2, 3)]
    await asyncio.sleep(0)
    assert batcher.depth() == 2
    with pytest.raises(QueueFullError):
        await batcher.submit(4)
    gate.set()
    await batcher.close()
    assert await asyncio.gather(*tasks) == [1, 2, 3]
    with pytest.raises(QueueFullError):
        await batcher.submit(5)
