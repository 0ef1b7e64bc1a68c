"""Writes that wait for the commit: sent together, in order with everything else, and as typed failures."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from landbridge.store import Database, StoreError, TransientStoreError

SET_TO = "update counter set n = $2 where id = $1"


@pytest.fixture
async def db(postgres_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(postgres_dsn, "public", size=1)
    await database.execute("create table counter (id integer primary key, n integer not null)")
    await database.execute("create table note (text text primary key)")
    await database.execute("insert into counter values (1, 0), (2, 0)")
    yield database
    await database.close()


class _Counting:
    """A connection that counts what is asked of it."""

    def __init__(self, connection: object) -> None:
        self._connection = connection
        self.asked: list[str] = []

    async def execute(self, sql: str, *args: object) -> object:
        self.asked.append(sql)
        return await self._connection.execute(sql, *args)  # type: ignore[attr-defined]


async def test_writes_of_different_things_take_one_round_trip(db: Database) -> None:
    async with db.transaction() as tx:
        counting = tx._connection = _Counting(tx._connection)
        await tx.later("counter 1", SET_TO, 1, 7)
        await tx.later("note", "insert into note values ($1)", "seven")
        await tx.later("counter 2", SET_TO, 2, 8)
        assert counting.asked == []
    assert len(counting.asked) == 1
    assert [tuple(row) for row in await db.fetch("select id, n from counter order by id")] == [(1, 7), (2, 8)]
    assert await db.fetchval("select text from note") == "seven"


async def test_what_only_writes_is_one_statement_and_begins_nothing(db: Database) -> None:
    async with db.transaction() as tx:
        counting = tx._connection = _Counting(tx._connection)
        await tx.later("counter", SET_TO, 1, 7)
        tx.last("note", "insert into note values ($1)", "seven")
        assert not tx._begun
    assert len(counting.asked) == 1
    assert await db.fetchval("select n from counter where id = 1") == 7
    assert await db.fetchval("select text from note") == "seven"


async def test_what_only_writes_is_kept_whole_or_not_at_all(db: Database) -> None:
    await db.execute("insert into note values ('seven')")

    async def write() -> None:
        async with db.transaction() as tx:
            await tx.later("counter", SET_TO, 1, 7)
            tx.last("note", "insert into note values ($1)", "seven")

    with pytest.raises(StoreError):
        await write()
    assert await db.fetchval("select n from counter where id = 1") == 0


async def test_the_last_write_is_not_made_before_the_others_and_undoes_them_when_it_fails(db: Database) -> None:
    await db.execute("insert into note values ('seven')")

    async def write() -> None:
        async with db.transaction() as tx:
            tx.last("note", "insert into note values ($1)", "seven")
            await tx.later("counter", SET_TO, 1, 7)
            assert await tx.fetchval("select n from counter where id = 1") == 7
            assert await tx.fetchval("select count(*) from note") == 1

    with pytest.raises(StoreError, match="note"):
        await write()
    assert await db.fetchval("select n from counter where id = 1") == 0


async def test_a_transaction_that_is_abandoned_while_it_begins_leaves_no_open_one(db: Database) -> None:
    """The pool has one connection: what was left open in it would be seen by the next."""
    async with db.transaction() as tx:
        await tx.fetchval("select 1")

    async def begin() -> None:
        async with db.transaction() as tx:
            begun.set()
            await tx.fetchval("select 1")

    for steps in range(12):
        begun = asyncio.Event()
        task = asyncio.create_task(begin())
        await begun.wait()
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with db.transaction() as tx:
            await tx.execute(SET_TO, 1, steps)
        assert await db.fetchval("select count(*) from pg_stat_activity where state like 'idle in%'") == 0
        assert await db.fetchval("select n from counter where id = 1") == steps


async def test_writes_of_the_same_thing_run_in_order(db: Database) -> None:
    async with db.transaction() as tx:
        for n in range(1, 4):
            await tx.later("counter", "update counter set n = n * 10 + $1 where id = 1", n)
    assert await db.fetchval("select n from counter where id = 1") == 123


async def test_whatever_is_asked_next_sees_them(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.later("counter", SET_TO, 1, 5)
        assert await tx.fetchval("select n from counter where id = 1") == 5
        await tx.later("counter", SET_TO, 1, 6)
        assert (await tx.fetchrow("select n from counter where id = 1"))[0] == 6
        await tx.later("counter", SET_TO, 1, 7)
        assert [row[0] for row in await tx.fetch("select n from counter where id = 1")] == [7]
        await tx.later("counter", SET_TO, 1, 8)
        assert await tx.execute("update counter set n = n + 1 where n = 8") == 1
        await tx.later("counter", SET_TO, 1, 8)
        await tx.execute_many("update counter set n = n + $1 where n = 8", [(1,)])
    assert await db.fetchval("select n from counter where id = 1") == 9


async def test_nothing_is_kept_of_a_transaction_that_was_given_up(db: Database) -> None:
    async def give_up() -> None:
        async with db.transaction() as tx:
            await tx.later("counter", SET_TO, 1, 5)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await give_up()
    assert await db.fetchval("select n from counter where id = 1") == 0


async def test_a_write_that_fails_at_the_end_fails_the_transaction_and_leaves_the_connection_clean(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    async def twice() -> None:
        async with db.transaction() as tx:
            tx.after_commit(lambda: seen.append("committed"))
            tx.after_rollback(lambda: seen.append("rolled back"))
            await tx.later("counter", SET_TO, 1, 5)
            await tx.later("note", "insert into note values ($1), ($1)", "same")

    with caplog.at_level(logging.WARNING, "asyncpg"), pytest.raises(StoreError) as refused:
        await twice()
    assert not isinstance(refused.value, TransientStoreError)
    assert seen == ["rolled back"]
    assert caplog.records == []
    # The pool has one connection: it is the one that failed.
    assert await db.fetchval("select n from counter where id = 1") == 0
    async with db.transaction() as tx:
        await tx.later("counter", SET_TO, 1, 6)
    assert await db.fetchval("select n from counter where id = 1") == 6
