"""Requests, answers and questions to environments, on a real broker without accounts."""

import asyncio
import time

import pytest

from fixtures.bus import OpenBus
from landbridge.bus import subjects
from landbridge.bus.connection import frame
from landbridge.bus.errors import NoResponder, Unavailable
from landbridge.bus.requests import query
from landbridge_embedded.nats import NatsServer
from support.wait import wait_until


async def echo(subject: str, body: bytes) -> bytes:
    return subject.encode() + b" " + body


async def test_a_request_is_answered(open_bus: OpenBus) -> None:
    centre, site = await open_bus("coordinator"), await open_bus("dispatcher")
    await centre.respond(subjects.lease("*"), echo)
    assert await site.request(subjects.lease("onprem-a"), b"renew") == b"lb.v1.lease.onprem-a renew"


async def test_one_of_a_queue_group_answers(open_bus: OpenBus) -> None:
    counts = {"one": 0, "two": 0}
    site = await open_bus("dispatcher")
    for name in counts:

        async def count(_: str, body: bytes, name: str = name) -> bytes:
            counts[name] += 1
            return body

        await (await open_bus(name)).respond(subjects.claim("*"), count, queue="coordinator")
    await asyncio.gather(*(site.request(subjects.claim("onprem-a"), b"x") for _ in range(200)))
    assert sum(counts.values()) == 200
    assert min(counts.values()) > 0


async def test_requests_are_handled_together_so_that_they_can_be_batched(open_bus: OpenBus) -> None:
    centre, site = await open_bus("coordinator"), await open_bus("dispatcher")
    together = 0
    barrier = asyncio.Event()

    async def wait_for_all(_: str, body: bytes) -> bytes:
        nonlocal together
        together += 1
        if together == 50:
            barrier.set()
        await barrier.wait()
        return body

    await centre.respond(subjects.claim("*"), wait_for_all)
    await asyncio.gather(*(site.request(subjects.claim("a"), b"%d" % i, 5) for i in range(50)))


async def test_nobody_there_is_told_at_once(open_bus: OpenBus) -> None:
    bus = await open_bus("dispatcher")
    started = time.monotonic()
    with pytest.raises(NoResponder, match=r"lb\.v1\.lease\.onprem-a"):
        await bus.request(subjects.lease("onprem-a"), b"", timeout_s=5)
    assert time.monotonic() - started < 1


async def test_a_handler_that_fails_leaves_the_others_working(open_bus: OpenBus) -> None:
    centre, site = await open_bus("coordinator"), await open_bus("dispatcher")

    async def picky(_: str, body: bytes) -> bytes:
        if body == b"bad":
            raise RuntimeError("bad")
        return body

    await centre.respond(subjects.lease("*"), picky)
    with pytest.raises(Unavailable):
        await site.request(subjects.lease("a"), b"bad", timeout_s=0.2)
    assert await site.request(subjects.lease("a"), b"good") == b"good"


async def test_an_environment_is_asked_through_its_own_answer_subject(open_bus: OpenBus) -> None:
    centre, site = await open_bus("lineage"), await open_bus("dispatcher")
    await site.respond(subjects.every("query", "onprem-a"), echo)
    assert await query(centre, "onprem-a", "logs", b"op") == b"lb.v1.query.onprem-a.logs op"
    with pytest.raises(NoResponder, match="cloud-b"):
        await query(centre, "cloud-b", "logs", b"op")


async def test_waiting_requests_end_when_the_connection_is_cut(open_bus: OpenBus, nats_server: NatsServer) -> None:
    centre, site = await open_bus("coordinator"), await open_bus("dispatcher")
    asked = asyncio.Event()

    async def never(_: str, body: bytes) -> bytes:
        asked.set()
        await asyncio.sleep(30)
        return body

    await centre.respond(subjects.lease("*"), never)
    waiting = asyncio.create_task(site.request(subjects.lease("a"), b"", timeout_s=30))
    await asked.wait()
    started = time.monotonic()
    await nats_server.stop()
    with pytest.raises(Unavailable):
        await waiting
    assert time.monotonic() - started < 2
    await nats_server.start()


async def test_responders_answer_again_after_a_restart(open_bus: OpenBus, nats_server: NatsServer) -> None:
    centre, site = await open_bus("coordinator"), await open_bus("dispatcher")
    await centre.respond(subjects.lease("*"), echo)
    await nats_server.stop()
    await nats_server.start()
    await wait_until(lambda: centre.reconnects and site.reconnects, "both are back")
    assert await site.request(subjects.lease("a"), b"1") == b"lb.v1.lease.a 1"


async def test_late_replies_to_nobody_are_ignored(open_bus: OpenBus) -> None:
    bus = await open_bus("dispatcher")
    await bus.write(frame(bus.replies.subscription.replace("*", "77"), "", "", b"late"))
    await bus.respond("echo.me", echo)
    assert await bus.request("echo.me", b"x") == b"echo.me x"
