"""Connecting for the first time ends in time, whatever the client does with a cancellation."""

import asyncio
import time
from typing import Any

import pytest

from landbridge.bus.client import FastClient
from landbridge.bus.connection import BusSettings, connect
from landbridge.bus.errors import Unavailable

SETTINGS = BusSettings(url="nats://127.0.0.1:1", connect_within_s=0.1)


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> list[asyncio.Task[Any]]:
    """The client goes on trying after a cancellation, as it does when that reaches it while it closes a connection."""
    tries: list[asyncio.Task[Any]] = []

    async def trying(self: FastClient, **_: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        tries.append(task)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(3600)

    monkeypatch.setattr(FastClient, "connect", trying)
    return tries


async def test_a_client_that_swallows_a_cancellation_is_given_up_in_time(deaf: list[asyncio.Task[Any]]) -> None:
    began = time.monotonic()
    async with asyncio.timeout(10):
        with pytest.raises(Unavailable, match=r"no connection to NATS at nats://127.0.0.1:1 as test within 0\.1 s"):
            await connect(SETTINGS, name="test")
    assert time.monotonic() - began < 5
    assert [task.done() for task in deaf] == [True]


async def test_who_gives_up_connecting_leaves_nothing_behind(deaf: list[asyncio.Task[Any]]) -> None:
    connecting = asyncio.create_task(connect(BusSettings(url="nats://127.0.0.1:1"), name="test"))
    while not deaf:
        await asyncio.sleep(0.01)
    connecting.cancel()
    await asyncio.wait({connecting}, timeout=10)
    assert connecting.done()
    assert connecting.cancelled()
    assert [task.done() for task in deaf] == [True]
