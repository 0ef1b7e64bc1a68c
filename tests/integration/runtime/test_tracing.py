"""Spans leave the process over OTLP and hang together across HTTP and messages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nats.aio.msg import Msg
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound, decode
from landbridge.bus.publish import publish_batch
from support.wait import wait_until
from support.world import World

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector:
    """Takes OTLP over HTTP."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.traces: dict[str, str] = {}
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        body = await reader.readexactly(length)
        if "content-encoding: gzip" in head:
            import gzip

            body = gzip.decompress(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.names.append(span.name)
                    self.traces[span.name] = span.trace_id.hex()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    server = await asyncio.start_server(collector.serve, "127.0.0.1", 0)
    collector.port = server.sockets[0].getsockname()[1]
    try:
        yield collector
    finally:
        server.close()


async def test_a_message_is_traced_from_its_sender_to_the_event_it_causes(world: World) -> None:
    heard: list[str] = []

    async def on_event(msg: Msg) -> None:
        heard.append(decode(msg.subject, msg.headers, msg.data).traceparent)

    await world.bus.subscribe(subjects.operation("*", "*"), on_event)
    async with collecting() as collector:
        child = world.child(LANDBRIDGE_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.port}")
        child.start()
        await child.ready()
        message = Outbound(subjects.submit("p"), "T", b"x", id="1", traceparent=PARENT)
        await publish_batch(world.bus, "SUBMISSIONS", [message])
        await wait_until(lambda: heard, "the event is heard")
        assert (await child.get("/handled"))[0] == 200
        await child.stop()  # sends what is left
        assert "process lb.v1.submit.{project}" in collector.names
        assert "GET /handled" in collector.names
        assert not any("readyz" in name for name in collector.names)
        assert collector.traces["process lb.v1.submit.{project}"] == PARENT.split("-")[1]
    assert heard[0].split("-")[1] == PARENT.split("-")[1]
    assert heard[0].split("-")[2] != PARENT.split("-")[2]


async def test_without_a_collector_the_context_is_passed_on_unchanged(world: World) -> None:
    child = world.child()
    child.start()
    await child.ready()
    message = Outbound(subjects.submit("p"), "T", b"x", id="1", traceparent=PARENT)
    await publish_batch(world.bus, "SUBMISSIONS", [message])
    await wait_until(world.effects, "it is handled")
    assert await world.db.fetchval("select traceparent from event_log") == PARENT


async def test_a_collector_that_is_away_holds_up_nothing(world: World) -> None:
    child = world.child(LANDBRIDGE_OTLP_ENDPOINT="http://127.0.0.1:9")
    child.start()
    await child.ready()
    ids = await world.submit([b"good"] * 50)
    await wait_until(lambda: _all(world, len(ids)), "all are handled", timeout_s=5)


async def _all(world: World, count: int) -> bool:
    return len(await world.effects()) == count
