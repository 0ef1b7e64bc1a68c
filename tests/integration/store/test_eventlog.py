"""Event log, pending marks and inbox against a real Postgres."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from uuid import UUID

import pytest
from uuid_utils import uuid7

from landbridge.store import Database, eventlog
from landbridge.store.eventlog import LoggedEvent
from landbridge.store.inbox import first_seen, inbox_key
from landbridge.store.migrate import Migrations, migrate_folder
from landbridge.store.partitions import maintain
from landbridge.store.tables import first_id_of_day

FIRST_MIGRATION = dedent(
    '''
    """Message tables."""
    from alembic import op
    from landbridge.store.tables import create_message_tables, drop_message_tables

    revision = "0001"
    down_revision = None

    def upgrade():
        create_message_tables(op.execute)

    def downgrade():
        drop_message_tables(op.execute)
    '''
)


def make_migrations(folder: Path) -> Migrations:
    versions = folder / "migrations" / "versions"
    versions.mkdir(parents=True)
    (versions / "0001_messages.py").write_text(FIRST_MIGRATION)
    return Migrations("sample", "sample", versions)


@pytest.fixture
async def db(postgres_dsn: str, tmp_path: Path) -> AsyncIterator[Database]:
    await migrate_folder(postgres_dsn, make_migrations(tmp_path))
    database = await Database.open(postgres_dsn, "sample")
    yield database
    await database.close()


def event(body: bytes = b"{}") -> LoggedEvent:
    return LoggedEvent(str(uuid7()), "lb.v1.operation.accepted.p", "T", "op", "00-a-b-01", "", body)


async def test_events_of_a_pending_range_are_read_back_as_they_were_logged(db: Database) -> None:
    events = [event(b"\x00\xff%d" % n) for n in range(25)]
    async with db.transaction() as tx:
        await eventlog.append_and_mark(tx, events, [])
    [mark] = await eventlog.pending_ranges(db)
    read = [e async for chunk in eventlog.events_between(db, mark.lo, mark.hi, chunk=7) for e in chunk]
    assert read == events
    assert (await eventlog.backlog(db)).events == 25


async def test_a_batch_replaces_the_marks_of_published_batches(db: Database) -> None:
    first, second = [event()], [event(), event()]
    async with db.transaction() as tx:
        mark = await eventlog.append_and_mark(tx, first, [])
    async with db.transaction() as tx:
        await eventlog.append_and_mark(tx, second, [mark])
    assert [(m.lo, m.hi) for m in await eventlog.pending_ranges(db)] == [(second[0].id, second[1].id)]


async def test_a_message_is_first_seen_once_by_each_consumer(db: Database) -> None:
    ids = [str(uuid7()) for _ in range(5)]
    async with db.transaction() as tx:
        assert await first_seen(tx, "a", ids[:3]) == set(ids[:3])
    async with db.transaction() as tx:
        assert await first_seen(tx, "a", [*ids, ids[4]]) == set(ids[3:])
        assert await first_seen(tx, "b", ids) == set(ids)


async def test_a_rolled_back_claim_leaves_the_message_unseen(db: Database) -> None:
    ids = [str(uuid7())]

    async def claim_and_fail() -> None:
        async with db.transaction() as tx:
            await first_seen(tx, "a", ids)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await claim_and_fail()
    async with db.transaction() as tx:
        assert await first_seen(tx, "a", ids) == set(ids)


async def test_ids_that_applications_choose_are_claimed_too(db: Database) -> None:
    async with db.transaction() as tx:
        assert await first_seen(tx, "a", ["order-17", "order-18"]) == {"order-17", "order-18"}
    async with db.transaction() as tx:
        assert await first_seen(tx, "a", ["order-17", "order-19"]) == {"order-19"}
    assert UUID(inbox_key("order-17"))


async def test_two_replicas_that_claim_the_same_messages_share_them_without_overlap(db: Database) -> None:
    ids = [str(uuid7()) for _ in range(200)]

    async def claim(mine: list[str]) -> set[str]:
        async with db.transaction() as tx:
            return await first_seen(tx, "a", mine)

    got = await asyncio.gather(claim(ids), claim(ids[::-1]), claim(ids[50:150]))
    assert sum(map(len, got)) == 200
    assert set().union(*got) == set(ids)


async def test_partitions_of_the_coming_days_exist_and_old_ones_are_dropped(db: Database) -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert len(await maintain(db, now)) == 6
    assert await maintain(db, now) == []
    old = UUID(int=first_id_of_day(now).int + 5)
    async with db.transaction() as tx:
        await first_seen(tx, "a", [inbox_key("x"), str(old)])
        partition = await tx.fetchval("select tableoid::regclass::text from inbox where id = $1", old)
    assert partition == "inbox_20261130"
    done = await maintain(db, now + timedelta(days=40))
    assert {"inbox_20261130 dropped", "event_log_20261130 dropped"} <= set(done)


async def test_rows_already_in_the_default_partition_do_not_stop_maintenance(db: Database) -> None:
    async with db.transaction() as tx:
        await eventlog.append(tx, [event()])
    done = await maintain(db, datetime.now(UTC))
    assert any("default partition already holds" in phrase for phrase in done)
