"""Publishing into streams of a real broker."""

import asyncio
import os
import signal

import pytest

from fixtures.bus import OpenBus
from landbridge.bus import subjects
from landbridge.bus.connection import Bus, frame
from landbridge.bus.consume import Consumer
from landbridge.bus.declare import api
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.bus.errors import PublishRefused, StreamFull, StreamMissing, TooLarge, Unavailable
from landbridge.bus.publish import SINGLES_MAX, Publisher, publish_batch
from landbridge_embedded.nats import NatsServer
from support.wait import wait_until

ACCEPTED = subjects.operation("accepted", "retail")


def event(number: int, subject: str = ACCEPTED, size: int = 10) -> Outbound:
    return Outbound(
        subject, "io.landbridge.operation.v1.OperationAccepted", b"%d" % number + b" " * size, f"op-{number}"
    )


async def stored(bus: Bus, stream: str) -> int:
    found: int = (await api(bus, f"STREAM.INFO.{stream}"))["state"]["messages"]
    return found


async def test_a_batch_is_stored_in_order_and_whole(bus: Bus) -> None:
    await publish_batch(bus, "OPERATIONS", [event(i) for i in range(2500)])
    consumer = Consumer(bus, "OPERATIONS", "lineage")
    found: list[str] = []
    while len(found) < 2500:
        batch = await consumer.take(5)
        assert batch
        found += [message.about for message in batch]
        await consumer.ack(batch)
    await consumer.stop()
    assert found == [f"op-{i}" for i in range(2500)]


async def test_a_batch_with_one_refused_message_stores_nothing(bus: Bus) -> None:
    """The broker refuses a batch whole when a guard of one message does not hold."""
    good = event(1)
    stale = Outbound(ACCEPTED, "t", b"", extra=(("Nats-Expected-Last-Subject-Sequence", "77"),))
    with pytest.raises(Exception, match="wrong last sequence"):
        await publish_batch(bus, "OPERATIONS", [good, stale, event(2)])
    assert await stored(bus, "OPERATIONS") == 0


async def test_batches_of_several_writers_do_not_mix(bus: Bus, open_bus: OpenBus) -> None:
    other = await open_bus("other")
    await asyncio.gather(
        *(
            publish_batch(writer, "OPERATIONS", [event(i) for i in range(300)])
            for writer in (bus, other)
            for _ in range(5)
        )
    )
    assert await stored(bus, "OPERATIONS") == 3000


async def test_one_message_is_a_plain_publish(bus: Bus) -> None:
    await publish_batch(bus, "OPERATIONS", [event(1)])
    found = await api(bus, "STREAM.MSG.GET.OPERATIONS", {"seq": 1})
    assert "hdrs" in found["message"]
    consumer = Consumer(bus, "OPERATIONS", "lineage")
    [message] = await consumer.take(5)
    assert not [name for name in message.headers if name.startswith("Nats-")]
    await consumer.stop()


async def test_a_few_messages_are_stored_in_order_without_a_batch(bus: Bus) -> None:
    await publish_batch(bus, "OPERATIONS", [event(i) for i in range(SINGLES_MAX)])
    consumer = Consumer(bus, "OPERATIONS", "lineage")
    found: list[Inbound] = []
    while len(found) < SINGLES_MAX:
        found += await consumer.take(5)
    assert [message.about for message in found] == [f"op-{i}" for i in range(SINGLES_MAX)]
    assert not [name for message in found for name in message.headers if name.startswith("Nats-Batch")]
    await consumer.stop()


async def test_of_a_few_messages_those_before_the_refused_one_are_stored(bus: Bus) -> None:
    config = (await api(bus, "STREAM.INFO.OPERATIONS"))["config"]
    await api(bus, "STREAM.UPDATE.OPERATIONS", {**config, "max_bytes": 20_000})
    with pytest.raises(StreamFull):
        await publish_batch(bus, "OPERATIONS", [event(0), event(1), event(2, size=30_000)])
    assert await stored(bus, "OPERATIONS") == 2


async def test_what_was_not_answered_is_sent_again_in_order(bus: Bus, nats_server: NatsServer) -> None:
    """The broker is killed while a few messages are written, one call after the other."""

    async def restart_broker() -> None:
        await asyncio.sleep(0.05)
        os.kill(nats_server.child.pid, signal.SIGKILL)
        await nats_server.child.wait()
        await nats_server.start()

    restart = asyncio.create_task(restart_broker())
    count = 0
    while not restart.done():
        await publish_batch(bus, "OPERATIONS", [event(count), event(count + 1), event(count + 2)])
        count += 3
    consumer = Consumer(bus, "OPERATIONS", "lineage")
    first_seen: dict[str, None] = {}
    while len(first_seen) < count:
        batch = await consumer.take(5)
        assert batch
        first_seen.update(dict.fromkeys(message.about for message in batch))
    await consumer.stop()
    await restart
    assert list(first_seen) == [f"op-{i}" for i in range(count)]


async def test_a_full_stream_refuses_and_drops_nothing(bus: Bus) -> None:
    config = (await api(bus, "STREAM.INFO.OPERATIONS"))["config"]
    await api(bus, "STREAM.UPDATE.OPERATIONS", {**config, "max_bytes": 20_000})
    await publish_batch(bus, "OPERATIONS", [event(0, size=1000) for _ in range(8)])
    before = await stored(bus, "OPERATIONS")
    with pytest.raises(StreamFull):
        await publish_batch(bus, "OPERATIONS", [event(0, size=15_000)])
    with pytest.raises(StreamFull):
        await publish_batch(bus, "OPERATIONS", [event(0, size=1000) for _ in range(20)])
    assert before <= await stored(bus, "OPERATIONS") < 20


async def test_a_missing_stream_is_named(open_bus: OpenBus) -> None:
    bus = await open_bus("test")
    with pytest.raises(StreamMissing, match=r"lb\.v1\.operation\.accepted\.retail; expected OPERATIONS"):
        await publish_batch(bus, "OPERATIONS", [event(1)])


async def test_a_message_above_the_brokers_limit_is_refused_before_anything_is_sent(bus: Bus) -> None:
    with pytest.raises(TooLarge):
        await publish_batch(bus, "OPERATIONS", [event(1), event(2, size=bus.max_payload)])
    assert await stored(bus, "OPERATIONS") == 0


async def test_large_messages_are_split_over_batches(bus: Bus) -> None:
    await publish_batch(bus, "OPERATIONS", [event(i, size=1_000_000) for i in range(20)])
    assert await stored(bus, "OPERATIONS") == 20


async def test_a_subject_of_another_stream_is_noticed(bus: Bus) -> None:
    with pytest.raises(PublishRefused, match="INTENTS"):
        await publish_batch(bus, "OPERATIONS", [event(1, subjects.intent("cancel", "retail"))])


async def test_a_publisher_sends_each_event_to_its_stream(bus: Bus) -> None:
    await Publisher(bus).publish(
        [event(i) for i in range(5)]
        + [event(i, subjects.command("onprem-a", "offer")) for i in range(3)]
        + [event(0, subjects.alert("aged"))]
    )
    assert [await stored(bus, name) for name in ("OPERATIONS", "COMMANDS", "ALERTS")] == [5, 3, 1]


async def test_an_abandoned_batch_of_another_writer_leaves_no_trace(bus: Bus) -> None:
    """A writer that dies in the middle of a batch."""
    await bus.write(frame(ACCEPTED, "", "NATS/1.0\r\nNats-Batch-Id: lost\r\nNats-Batch-Sequence: 1\r\n", b"half"))
    await publish_batch(bus, "OPERATIONS", [event(i) for i in range(3)])
    assert await stored(bus, "OPERATIONS") == 3


async def test_publishing_goes_on_when_the_broker_comes_back(bus: Bus, nats_server: NatsServer) -> None:
    await nats_server.stop()
    await wait_until(lambda: not bus.healthy(), "the bus notices the cut")
    publishing = asyncio.create_task(publish_batch(bus, "OPERATIONS", [event(i) for i in range(100)]))
    await nats_server.start()
    await publishing
    assert await stored(bus, "OPERATIONS") == 100


async def test_publishing_without_a_broker_ends_with_a_typed_error(bus: Bus, nats_server: NatsServer) -> None:
    await nats_server.stop()
    with pytest.raises(Unavailable):
        await publish_batch(bus, "OPERATIONS", [event(1)], deadline_s=0.3)
    await nats_server.start()
