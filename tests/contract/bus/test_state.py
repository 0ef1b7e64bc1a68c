"""Reading the last value of every subject, then changes, from a real broker."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable

import pytest

from fixtures.bus import OpenBus
from fixtures.nats import TEST_BUDGET_BYTES
from landbridge.bus import subjects
from landbridge.bus.connection import Bus
from landbridge.bus.consume import Consumer
from landbridge.bus.declare import api, declare
from landbridge.bus.envelope import Outbound
from landbridge.bus.errors import Conflict
from landbridge.bus.publish import publish_batch
from landbridge.bus.state import CURRENT_WITHIN_S, LastPerSubject
from landbridge_embedded.nats import NatsServer
from support.wait import wait_until


class Reader:
    """Keeps the current value by subject, as a service does."""

    def __init__(self, bus: Bus, stream: str = "ENVIRONMENTS", subject_filter: str = "lb.v1.environment.>") -> None:
        self.state = LastPerSubject(bus, stream, subject_filter, poll_s=1.0)
        self.values: dict[str, bytes] = {}
        self.seen: list[int] = []
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for message in self.state:
            self.values[message.subject] = message.body
            self.seen.append(message.stream_sequence)

    async def caught_up(self) -> None:
        await asyncio.wait_for(self.state.caught_up.wait(), 10)

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
async def reader() -> AsyncIterator[Callable[..., Reader]]:
    made: list[Reader] = []

    def make(*args: object) -> Reader:
        made.append(Reader(*args))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        await one.close()


def link(environment: str, value: int) -> Outbound:
    return Outbound(subjects.environment("link", environment), "t", b"%d" % value)


async def publish(bus: Bus, *messages: Outbound) -> None:
    await publish_batch(bus, "ENVIRONMENTS", messages)


async def test_the_snapshot_has_only_the_last_value_of_each_subject(bus: Bus, reader: Callable[..., Reader]) -> None:
    await publish(bus, *(link(name, value) for value in range(5) for name in ("a", "b")))
    found = reader(bus)
    await found.caught_up()
    assert found.values == {"lb.v1.environment.link.a": b"4", "lb.v1.environment.link.b": b"4"}
    assert found.seen == [9, 10]


async def test_an_empty_stream_is_caught_up_at_once_and_changes_follow(bus: Bus, reader: Callable[..., Reader]) -> None:
    found = reader(bus)
    await found.caught_up()
    assert found.values == {}
    for value in range(20):
        await publish(bus, link("a", value))
    await wait_until(lambda: found.values.get("lb.v1.environment.link.a") == b"19", "the last change arrived")
    assert found.seen == list(range(1, 21))


async def test_changes_arrive_without_waiting_for_the_poll(bus: Bus, reader: Callable[..., Reader]) -> None:
    found = reader(bus)
    await found.caught_up()
    loop = asyncio.get_running_loop()
    worst = 0.0
    for value in range(30):
        started = loop.time()
        await publish(bus, link("a", value), link("b", value))
        await wait_until(lambda: len(found.seen) == 2 * value + 2, "both arrived", every_s=0.001)  # noqa: B023
        worst = max(worst, loop.time() - started)
    assert worst < 0.5


async def test_only_the_filters_subjects_are_read(bus: Bus, reader: Callable[..., Reader]) -> None:
    await publish(bus, link("a", 1), Outbound(subjects.environment("contract", "a"), "t", b"c"))
    found = reader(bus, "ENVIRONMENTS", subjects.environment("contract", "*"))
    await found.caught_up()
    await publish(bus, link("a", 2), Outbound(subjects.environment("contract", "b"), "t", b"d"))
    await wait_until(lambda: len(found.values) == 2, "the other contract arrived")
    assert set(found.values) == {"lb.v1.environment.contract.a", "lb.v1.environment.contract.b"}


async def test_more_subjects_than_one_request_may_name_are_read(bus: Bus, reader: Callable[..., Reader]) -> None:
    await publish(bus, *(link(f"e{number}", number) for number in range(2100)))
    await publish(bus, link("e7", 7007))
    found = reader(bus)
    await found.caught_up()
    assert len(found.values) == 2100
    assert found.values["lb.v1.environment.link.e7"] == b"7007"


async def test_a_snapshot_of_several_pages_is_complete(bus: Bus, reader: Callable[..., Reader]) -> None:
    await publish(bus, *(link(f"e{number}", number) for number in range(1001)))
    found = reader(bus)
    await found.caught_up()
    assert len(found.values) == 1001


async def test_reading_goes_on_after_a_killed_broker(
    bus: Bus, nats_server: NatsServer, reader: Callable[..., Reader]
) -> None:
    await publish(bus, link("a", 1))
    found = reader(bus)
    await found.caught_up()
    os.kill(nats_server.child.pid, signal.SIGKILL)
    await nats_server.child.wait()
    await nats_server.start()
    await publish(bus, link("a", 2))
    await wait_until(lambda: found.values["lb.v1.environment.link.a"] == b"2", "the change arrived", timeout_s=5)
    assert found.seen == [1, 2]


async def test_a_reader_that_was_cut_off_sees_what_happened_meanwhile(
    bus: Bus, nats_server: NatsServer, reader: Callable[..., Reader], open_bus: OpenBus
) -> None:
    found = reader(await open_bus("reader"))
    await found.caught_up()
    await nats_server.stop()
    await nats_server.start()
    await publish(bus, *(link("a", value) for value in range(100)))
    await wait_until(lambda: found.values.get("lb.v1.environment.link.a") == b"99", "the last value arrived")


async def test_a_stream_that_was_rebuilt_is_read_from_its_start(bus: Bus, reader: Callable[..., Reader]) -> None:
    await publish(bus, *(link("a", value) for value in range(10)))
    found = reader(bus)
    await found.caught_up()
    await api(bus, "STREAM.DELETE.ENVIRONMENTS")
    await declare(bus, budget_bytes=TEST_BUDGET_BYTES)
    await publish(bus, link("a", 100))
    await wait_until(lambda: found.values["lb.v1.environment.link.a"] == b"100", "the rebuilt stream is read")


async def test_a_reader_waits_for_a_stream_that_is_not_there_yet(
    open_bus: OpenBus, reader: Callable[..., Reader]
) -> None:
    bus = await open_bus("test")
    found = reader(bus)
    await declare(bus, budget_bytes=TEST_BUDGET_BYTES)
    await found.caught_up()
    await publish(bus, link("a", 1))
    await wait_until(lambda: found.values, "the value arrived")


async def test_what_was_stored_before_a_message_is_known_to_who_asks_for_it_before_handling_that_message(
    open_bus: OpenBus, bus: Bus, reader: Callable[..., Reader]
) -> None:
    publisher = await open_bus()
    found, consumer = reader(bus), Consumer(bus, "OPERATIONS", "lineage")
    await found.caught_up()
    await consumer.start()
    for value in range(100):
        await publish(publisher, link("a", value))
        await publish_batch(publisher, "OPERATIONS", [Outbound(subjects.operation("accepted", "retail"), "t", b"")])
        [message] = await consumer.take(5)
        await found.state.current()
        assert found.values["lb.v1.environment.link.a"] == b"%d" % value
        await consumer.ack([message])
    await consumer.stop()


async def test_nobody_waits_long_for_what_was_announced_and_never_stored(
    bus: Bus, reader: Callable[..., Reader]
) -> None:
    found = reader(bus)
    await found.caught_up()
    refused = Outbound(subjects.environment("link", "a"), "t", b"1", extra=(("Nats-Expected-Last-Sequence", "999"),))
    with pytest.raises(Conflict):
        await publish(bus, refused)
    started = time.monotonic()
    await found.state.current()
    waited = time.monotonic() - started
    assert waited < 3 * CURRENT_WITHIN_S
    await wait_until(lambda: _is_current(found), "it is given up", timeout_s=10)
    assert found.values == {}


async def _is_current(found: Reader) -> bool:
    started = time.monotonic()
    await found.state.current()
    return time.monotonic() - started < CURRENT_WITHIN_S / 2
