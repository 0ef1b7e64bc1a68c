"""Consuming durables of a real broker."""

import asyncio
import os
import signal
import time
from typing import Any

import pytest

from fixtures.bus import OpenBus
from landbridge.bus import pacing, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.consume import Consumer
from landbridge.bus.declare import api, declare_durable, delete_durable
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.bus.errors import BusError, ConsumerMissing
from landbridge.bus.publish import publish_batch
from landbridge.bus.streams import DURABLES, DurableSpec
from landbridge_embedded.nats import NatsServer
from support.wait import wait_until

LINEAGE = next(spec for spec in DURABLES if spec.name == "lineage")


def events(count: int, event: str = "accepted") -> list[Outbound]:
    return [Outbound(subjects.operation(event, "retail"), "t", b"%d" % i, f"op-{i}") for i in range(count)]


async def info(bus: Bus, spec: DurableSpec = LINEAGE) -> dict[str, Any]:
    return await api(bus, f"CONSUMER.INFO.{spec.stream}.{spec.name}")


async def drained(bus: Bus) -> bool:
    found = await info(bus)
    return bool(found["num_pending"] == 0 and found["num_ack_pending"] == 0)


async def test_what_is_acknowledged_is_not_delivered_again(bus: Bus) -> None:
    await publish_batch(bus, "OPERATIONS", events(50))
    first = Consumer(bus, "OPERATIONS", "lineage")
    seen: list[Inbound] = []
    while len(seen) < 50:
        batch = await first.take(5)
        seen += batch
        await first.ack(batch)
    await first.stop()
    await wait_until(lambda: drained(bus), "everything is acknowledged")
    second = Consumer(bus, "OPERATIONS", "lineage")
    assert await second.take(0.3) == []
    await second.stop()


async def test_gathering_lets_a_lone_message_through_and_spaces_what_follows(bus: Bus) -> None:
    consumer = Consumer(bus, "OPERATIONS", "lineage", gather_s=0.3)
    await consumer.start()
    await publish_batch(bus, "OPERATIONS", events(1))
    started = time.monotonic()
    assert len(await consumer.take(5)) == 1
    assert time.monotonic() - started < 0.3
    for _ in range(3):
        await publish_batch(bus, "OPERATIONS", events(2))
    assert len(await consumer.take(5)) == 6
    assert time.monotonic() - started >= 0.3
    await consumer.stop()


async def test_gathering_ends_when_there_are_many(bus: Bus) -> None:
    consumer = Consumer(bus, "OPERATIONS", "lineage", gather_s=30)
    await consumer.start()
    await publish_batch(bus, "OPERATIONS", events(1))
    assert len(await consumer.take(5)) == 1
    await publish_batch(bus, "OPERATIONS", events(300))
    started = time.monotonic()
    await wait_until(lambda: _has(consumer, 300), "three hundred arrived")
    assert len(await consumer.take(5)) == 300
    assert time.monotonic() - started < 10
    await consumer.stop()


def unhurried(bus: Bus) -> Consumer:
    return Consumer(bus, "OPERATIONS", "lineage", unhurried=subjects.among(["accepted"]))


async def test_what_is_unhurried_is_taken_with_the_urgent_one_that_follows_in_the_order_of_the_stream(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "UNHURRIED_S", 30.0)
    consumer = unhurried(bus)
    await consumer.start()
    taking = asyncio.create_task(consumer.take(5))
    await publish_batch(bus, "OPERATIONS", events(2))
    await publish_batch(bus, "OPERATIONS", events(1, "decided"))
    batch = await asyncio.wait_for(taking, 10)
    assert [subjects.token(message.subject, 3) for message in batch] == ["accepted", "accepted", "decided"]
    assert [message.stream_sequence for message in batch] == [1, 2, 3]
    await consumer.ack(batch)
    await consumer.stop()


async def test_what_is_unhurried_waits_for_a_moment_only_and_what_is_urgent_not_at_all(bus: Bus) -> None:
    waits = {"accepted": list[float](), "decided": list[float]()}
    consumer = unhurried(bus)
    await consumer.start()
    for event in ("accepted", "decided") * 5:
        arriving = asyncio.create_task(wait_until(lambda: _has(consumer, 1), "it arrived", every_s=0.001))
        await publish_batch(bus, "OPERATIONS", events(1, event))
        await arriving
        arrived = time.monotonic()
        [message] = await consumer.take(5)
        waits[event].append(time.monotonic() - arrived)
        await consumer.ack([message])
    assert min(waits["accepted"]) > pacing.UNHURRIED_S / 3
    assert min(waits["decided"]) < pacing.UNHURRIED_S / 3
    await consumer.stop()


async def test_many_that_are_unhurried_are_not_left(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "UNHURRIED_S", 30.0)
    consumer = unhurried(bus)
    await publish_batch(bus, "OPERATIONS", events(300))
    await consumer.start()
    await wait_until(lambda: _has(consumer, 300), "three hundred arrived")
    started = time.monotonic()
    assert len(await consumer.take(5)) == 300
    assert time.monotonic() - started < 10
    await consumer.stop()


async def _has(consumer: Consumer, count: int) -> bool:
    return consumer.buffered() >= count


async def test_a_nak_delivers_again_after_its_delay(bus: Bus) -> None:
    await publish_batch(bus, "OPERATIONS", events(1))
    consumer = Consumer(bus, "OPERATIONS", "lineage")
    [first] = await consumer.take(5)
    started = time.monotonic()
    await consumer.nak([first], 0.5)
    [again] = await consumer.take(5)
    assert time.monotonic() - started >= 0.45
    assert (again.id, again.stream_sequence, again.deliveries) == (first.id, first.stream_sequence, 2)
    await consumer.stop()


async def test_a_terminated_message_never_comes_back(bus: Bus) -> None:
    await publish_batch(bus, "OPERATIONS", events(2))
    consumer = Consumer(bus, "OPERATIONS", "lineage")
    taken: list[Inbound] = []
    while len(taken) < 2:
        taken += await consumer.take(5)
    await consumer.term(taken[0])
    await consumer.nak([taken[1]])
    [again] = await consumer.take(5)
    assert again.id == taken[1].id
    await consumer.ack([again])
    await wait_until(lambda: drained(bus), "nothing is left")
    await consumer.stop()


async def test_only_the_durables_subjects_are_delivered(bus: Bus) -> None:
    await publish_batch(bus, "OPERATIONS", events(3, "observed") + events(2, "accepted"))
    consumer = Consumer(bus, "OPERATIONS", "eligibility")
    taken: list[Inbound] = []
    while len(taken) < 2:
        taken += await consumer.take(5)
    assert {message.subject for message in taken} == {"lb.v1.operation.accepted.retail"}
    await consumer.stop()


async def test_replicas_share_a_durable_and_each_message_goes_to_one(bus: Bus, open_bus: OpenBus) -> None:
    replicas = [Consumer(b, "OPERATIONS", "lineage", batch=20) for b in (bus, await open_bus("second"))]
    counts = [0, 0]
    ids: set[str] = set()
    for replica in replicas:
        await replica.start()
    await publish_batch(bus, "OPERATIONS", events(400))

    async def read(number: int) -> None:
        while len(ids) < 400:
            batch = await replicas[number].take(0.2)
            ids.update(message.about for message in batch)
            counts[number] += len(batch)
            await replicas[number].ack(batch)

    async with asyncio.timeout(20):
        await asyncio.gather(read(0), read(1))
    assert sum(counts) == 400
    assert min(counts) > 0
    for replica in replicas:
        await replica.stop()


async def test_a_stopped_consumer_gives_back_at_once_what_it_had_not_taken(bus: Bus, open_bus: OpenBus) -> None:
    await publish_batch(bus, "OPERATIONS", events(100))
    first = Consumer(bus, "OPERATIONS", "lineage", batch=10)
    taken = await first.take(5)
    await wait_until(lambda: first.lag() >= 30, "more is buffered")
    await first.stop()
    second = Consumer(await open_bus("second"), "OPERATIONS", "lineage", batch=200)
    started = time.monotonic()
    found: set[int] = set()
    while len(found) < 100 - len(taken):
        found |= {message.stream_sequence for message in await second.take(5)}
    assert time.monotonic() - started < 5  # far below the 10 s after which a dead consumer is noticed
    assert not found & {message.stream_sequence for message in taken}
    await second.stop()


async def test_what_is_held_is_prolonged_beyond_the_acknowledgement_time(bus: Bus) -> None:
    spec = DurableSpec("OPERATIONS", "slow", (subjects.operation("*", "*"),), ack_wait_s=1.0)
    await declare_durable(bus, spec)
    await publish_batch(bus, "OPERATIONS", events(20))
    consumer = Consumer(bus, "OPERATIONS", "slow", ack_wait_s=1.0)
    held = await consumer.take(5)
    while len(held) < 20:
        held += await consumer.take(5)
    assert await consumer.take(3.0) == []  # three times the acknowledgement time: nothing is redelivered
    await consumer.ack(held)
    await consumer.stop()


async def test_lag_counts_what_is_not_taken(bus: Bus) -> None:
    await publish_batch(bus, "OPERATIONS", events(900))
    consumer = Consumer(bus, "OPERATIONS", "lineage", batch=100)
    first = await consumer.take(5)
    await wait_until(lambda: consumer.lag() == 900 - len(first), "the lag is exact once prefetched")
    while consumer.lag():
        await consumer.ack(await consumer.take(5))
    assert consumer.lag() == 0
    await consumer.stop()


async def test_four_batches_are_asked_for_and_buffered_messages_count(bus: Bus) -> None:
    await publish_batch(bus, "OPERATIONS", events(1000))
    consumer = Consumer(bus, "OPERATIONS", "lineage", batch=50)
    await consumer.start()
    await wait_until(lambda: consumer.buffered() == 200, "four batches are prefetched")
    assert (await info(bus))["num_ack_pending"] == 200  # and not more, although 1,000 wait
    await consumer.stop()


async def test_an_idle_consumer_keeps_listening_over_expired_pulls(bus: Bus) -> None:
    consumer = Consumer(bus, "OPERATIONS", "lineage")
    assert await consumer.take(6.0) == []
    assert consumer.pulls > 4
    await publish_batch(bus, "OPERATIONS", events(1))
    assert len(await consumer.take(1)) == 1
    await consumer.stop()


async def test_consuming_resumes_within_5_s_of_a_killed_broker(bus: Bus, nats_server: NatsServer) -> None:
    consumer = Consumer(bus, "OPERATIONS", "lineage")
    await publish_batch(bus, "OPERATIONS", events(10))
    before: list[Inbound] = []
    while len(before) < 10:
        before += await consumer.take(5)
    await consumer.ack(before)
    await wait_until(lambda: drained(bus), "the first ten are acknowledged")
    os.kill(nats_server.child.pid, signal.SIGKILL)
    await nats_server.child.wait()
    await nats_server.start()
    restarted = time.monotonic()
    await publish_batch(bus, "OPERATIONS", events(5))
    after: list[Inbound] = []
    while len(after) < 5:
        after += await consumer.take(5)
    assert time.monotonic() - restarted < 5
    assert bus.reconnects == 1
    await consumer.stop()


async def test_a_deleted_durable_is_an_alarm_not_a_hot_loop(bus: Bus) -> None:
    problems: list[BusError] = []
    bus.on_problem(lambda _, error: problems.append(error))
    consumer = Consumer(bus, "OPERATIONS", "lineage")
    await consumer.start()
    await api(bus, "CONSUMER.DELETE.OPERATIONS.lineage")
    pulls = consumer.pulls
    await wait_until(lambda: consumer.problem, "the alarm", timeout_s=6)
    assert await consumer.take(2) == []
    assert not consumer.healthy()
    assert [type(problem) for problem in problems] == [ConsumerMissing]
    assert consumer.pulls - pulls < 60  # four requests a round, with pauses between
    await declare_durable(bus, LINEAGE)
    await publish_batch(bus, "OPERATIONS", events(1))
    assert len(await consumer.take(8)) == 1
    assert consumer.healthy()
    await consumer.stop()


async def test_a_durable_that_was_made_again_at_another_message_is_declared_without_complaint(bus: Bus) -> None:
    await publish_batch(bus, "OPERATIONS", events(3))
    config = {**(await info(bus))["config"], "deliver_policy": "by_start_sequence", "opt_start_seq": 2}
    config["ack_wait"] = 1_000_000_000
    await delete_durable(bus, LINEAGE)
    await api(bus, "CONSUMER.CREATE.OPERATIONS.lineage", {"stream_name": "OPERATIONS", "config": config})

    assert await declare_durable(bus, LINEAGE) == "updated durable lineage of OPERATIONS"
    assert await declare_durable(bus, LINEAGE) == ""
    found = (await info(bus))["config"]
    assert (found["opt_start_seq"], found["ack_wait"]) == (2, int(LINEAGE.ack_wait_s * 1e9))


async def test_a_durable_that_never_existed_is_an_alarm(bus: Bus) -> None:
    consumer = Consumer(bus, "OPERATIONS", "nobody")
    await consumer.start()
    await wait_until(lambda: consumer.problem, "the alarm", timeout_s=6)
    with pytest.raises(ConsumerMissing, match="nobody of stream OPERATIONS"):
        raise consumer.problem or AssertionError
    await consumer.stop()


async def test_a_message_without_envelope_is_delivered_with_its_problem(bus: Bus) -> None:
    await bus.request("lb.v1.operation.accepted.retail", b"who am I?")
    consumer = Consumer(bus, "OPERATIONS", "lineage")
    [message] = await consumer.take(5)
    assert "ce-id" in message.problem
    assert message.body == b"who am I?"
    await consumer.stop()
