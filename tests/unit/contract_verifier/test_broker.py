"""What is told of servers that do not have on disk what they acknowledge."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from nats.aio.msg import Msg

from landbridge.bus.connection import Bus
from landbridge.bus.errors import BusError, Unavailable
from landbridge.bus.replies import Replies
from landbridge.bus.servers import StoringServer, storing_servers
from landbridge_contract_verifier.broker import BrokerWatch, problem_of
from support.wait import wait_until


class Servers:
    """A connection behind which several servers answer, each for itself."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = answers
        self.replies = Replies("_INBOX_issuer")
        self.error: BusError | None = None
        self.asked = 0

    async def write(self, frames: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.asked += 1
        reply = frames.split()[2].decode()
        for answer in self.answers:
            await self.replies.on_message(Msg(cast("Any", None), reply, "", answer))


def a_server(name: str, *, always: bool) -> bytes:
    told = "true" if always else "false"
    return f'{{"server":{{"name":"{name}","id":"N-{name}"}},"data":{{"config":{{"sync_always":{told}}}}}}}'.encode()


WITHOUT_STREAMS = b'{"server":{"name":"edge","id":"N-edge"},"data":{"disabled":true,"config":{}}}'


async def asked(*answers: bytes) -> list[StoringServer]:
    return await storing_servers(cast("Bus", Servers(*answers)), gather_s=0)


async def test_each_server_of_a_cluster_counts_and_one_without_streams_does_not() -> None:
    found = await asked(a_server("b", always=False), a_server("a", always=True), WITHOUT_STREAMS)
    assert found == [StoringServer("a", syncs_always=True), StoringServer("b", syncs_always=False)]
    assert "found something else on b: " in problem_of(found)


@pytest.mark.parametrize(
    "answer", [b"", b"no JSON", b'{"server":{"name":"a","id":"1"},"data":{"config":{"sync_always":"yes"}}}']
)
async def test_what_cannot_be_read_is_not_taken_for_good(answer: bytes) -> None:
    assert problem_of(await asked(a_server("a", always=True), answer))


def test_without_an_answer_nothing_is_known() -> None:
    assert problem_of([]) == "no server of the broker says that it keeps streams"


async def _watching(watch: BrokerWatch, check: Callable[[], bool], what: str) -> None:
    task = asyncio.create_task(watch.run())
    try:
        await wait_until(check, what)
    finally:
        task.cancel()


async def test_a_server_that_was_mended_is_told_of_no_more_and_a_lost_connection_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("landbridge_contract_verifier.broker.RETRY_S", 0.01)
    servers = Servers(a_server("a", always=False))
    watch = BrokerWatch(cast("Bus", servers), every_s=0.01, gather_s=0)
    await _watching(watch, lambda: "a: " in watch.problem, "it is told of")
    servers.error = Unavailable("not connected")
    task = asyncio.create_task(watch.run())
    await asyncio.sleep(0.05)
    assert watch.problem
    servers.error, servers.answers = None, (a_server("a", always=True),)
    await wait_until(lambda: not watch.problem, "it is mended")
    task.cancel()
