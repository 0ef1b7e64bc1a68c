"""The outbox: what is committed goes out, whatever happens to the stream, the process or a single event."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from landbridge.bus.envelope import Outbound
from landbridge.bus.errors import BusError, TooLarge, Unavailable
from landbridge.runtime import outbox as module
from landbridge.runtime.outbox import Outbox
from landbridge.runtime.telemetry import stamp
from landbridge.store import ContentionError, Database, Tx, eventlog
from landbridge.store.migrate import migrate_folder
from support.sample_service import write_migrations
from support.wait import wait_until


class Stream:
    """Stands for the broker: refuses what `refuse` says."""

    def __init__(self) -> None:
        self.stored: list[Outbound] = []
        self.errors: list[BusError] = []

    async def publish(self, messages: Sequence[Outbound]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        if any(len(message.body) > 100 for message in messages):
            raise TooLarge("too large")
        self.stored += messages


@pytest.fixture
async def db(postgres_dsn: str, tmp_path: Path) -> AsyncIterator[Database]:
    await migrate_folder(postgres_dsn, write_migrations(tmp_path))
    database = await Database.open(postgres_dsn, "intake")
    yield database
    await database.close()


def events(*bodies: bytes) -> list[Outbound]:
    return [
        Outbound("lb.v1.operation.accepted.p", "T", body, "op", extra=(("lb-error", "é"),), time="2026-01-01T00:00:00Z")
        for body in bodies
    ]


async def marks(db: Database) -> int:
    return len(await eventlog.pending_ranges(db))


async def test_committed_events_are_published_and_their_mark_is_dropped_when_idle(db: Database) -> None:
    stream = Stream()
    outbox = Outbox(db, stream)

    async def work(_: Tx) -> list[Outbound]:
        return events(b"1", b"2")

    published = await outbox.commit(work)
    assert stream.stored == published
    await wait_until(lambda: _none(db), "the mark is dropped")
    await outbox.close()


async def _none(db: Database) -> bool:
    return await marks(db) == 0


async def test_a_broker_that_is_away_is_waited_for(db: Database) -> None:
    stream = Stream()
    stream.errors = [Unavailable("away"), Unavailable("away")]
    outbox = Outbox(db, stream)
    published = await outbox.commit(_work(b"1"))
    assert stream.stored == published
    await outbox.close()


def _work(*bodies: bytes) -> module.Work:
    async def work(_: Tx) -> list[Outbound]:
        return events(*bodies)

    return work


async def test_an_event_that_no_stream_takes_is_set_aside_and_holds_up_no_other(db: Database) -> None:
    stream = Stream()
    outbox = Outbox(db, stream)
    await outbox.commit(_work(b"1", b"x" * 200, b"3"))
    assert [event.body for event in stream.stored] == [b"1", b"3"]
    row = await db.fetchrow("select consumer, error, body from dead_letter")
    assert row is not None
    assert (row["consumer"], bytes(row["body"])) == ("outbox", b"x" * 200)
    assert "too large" in row["error"]
    await outbox.close()
    assert await marks(db) == 0


async def test_what_a_dead_replica_left_is_published_exactly_as_it_would_have_been(db: Database) -> None:
    dead, living = Outbox(db, Stream()), Stream()
    async with db.transaction() as tx:
        written = await dead.write(tx, stamp(events(b"1", b"2"), ()))
    assert await Outbox(db, living).republish() == 2
    assert living.stored == list(written.events)
    assert await marks(db) == 0


async def test_marks_of_the_living_are_left_alone_by_the_sweep(db: Database) -> None:
    outbox = Outbox(db, Stream())
    async with db.transaction() as tx:
        await outbox.write(tx, stamp(events(b"1"), ()))
    assert await outbox.republish(older_than_s=30) == 0
    assert await marks(db) == 1


async def test_work_is_repeated_after_contention_and_published_once(db: Database) -> None:
    stream = Stream()
    outbox = Outbox(db, stream)
    tries = 0

    async def work(tx: Tx) -> list[Outbound]:
        nonlocal tries
        tries += 1
        await tx.execute("insert into effect (key) values ($1)", str(tries))
        if tries < 3:
            raise ContentionError("deadlock")
        return events(b"1")

    await outbox.commit(work)
    assert len(stream.stored) == 1
    assert await db.fetchval("select string_agg(key, ',') from effect") == "3"
    await outbox.close()


async def test_marks_of_a_batch_that_was_rolled_back_are_dropped_later(db: Database) -> None:
    outbox = Outbox(db, Stream())
    await outbox.commit(_work(b"1"))

    async def fail(tx: Tx) -> list[Outbound]:
        await outbox.write(tx, stamp(events(b"2"), ()))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await outbox.commit(fail)
    await outbox.close()
    assert await marks(db) == 0


async def test_publications_that_fail_or_whose_answers_are_lost_lose_nothing(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in twenty fails, of another one in twenty only the answer is lost; nobody has to restart anything."""
    monkeypatch.setattr(module, "_PAUSES_SECONDS", (0.0,))
    chance = random.Random(8)

    class Shaky(Stream):
        async def publish(self, messages: Sequence[Outbound]) -> None:
            luck = chance.random()
            if luck < 0.05:
                raise Unavailable("not stored")
            await super().publish(messages)
            if luck < 0.1:
                raise Unavailable("stored, but the answer is lost")

    stream = Shaky()
    outbox = Outbox(db, stream)

    async def produce(producer: int) -> list[str]:
        ids = []
        for number in range(50):
            body = f"{producer}-{number}".encode()

            async def work(_: Tx, body: bytes = body) -> list[Outbound]:
                return events(body, body)

            ids += [event.id for event in await outbox.commit(work)]
        return ids

    ids = [each for found in await asyncio.gather(*map(produce, range(8))) for each in found]
    stored = [event.id for event in stream.stored]

    assert len(ids) == len(set(ids)) == 800
    assert set(stored) == set(ids)
    assert len(stored) > len(ids), "a lost answer means that it is sent again, with its id"
    await outbox.close()
    assert await marks(db) == 0


async def test_what_commits_late_is_published_although_later_events_have_passed_it(db: Database) -> None:
    """Ids 10 and 11 are taken, 11 commits, everything is published, then 10 commits and its process dies."""
    stream = Stream()
    outbox = Outbox(db, stream)
    async with db.transaction() as tx:
        [late] = (await outbox.write(tx, stamp(events(b"10"), ()))).events
        [early] = await outbox.commit(_saying(b"11"))
        assert early.id > late.id
        await outbox.clear_marks()
        assert await Outbox(db, stream).republish() == 0
    assert await Outbox(db, stream).republish() == 1

    assert [event.body for event in stream.stored] == [b"11", b"10"]
    assert await marks(db) == 0


async def test_writers_that_die_between_commit_and_publication_leave_nothing_behind_whatever_the_order(
    db: Database,
) -> None:
    stream, chance = Stream(), random.Random(10)
    committed: list[str] = []

    async def write(number: int) -> None:
        for turn in range(20):
            async with db.transaction() as tx:
                written = await Outbox(db, stream).write(tx, stamp(events(f"{number}-{turn}".encode()), ()))
                await asyncio.sleep(chance.random() * 0.02)
            committed.extend(event.id for event in written.events)

    async def sweep() -> None:
        while True:
            await Outbox(db, stream).republish()
            await asyncio.sleep(0.005)

    sweeping = asyncio.create_task(sweep())
    await asyncio.gather(*map(write, range(8)))
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)
    await Outbox(db, stream).republish()

    assert len(committed) == 160
    assert {event.id for event in stream.stored} == set(committed)
    assert await marks(db) == 0


def _saying(body: bytes) -> Callable[[Tx], Awaitable[list[Outbound]]]:
    async def work(_: Tx) -> list[Outbound]:
        return events(body)

    return work
