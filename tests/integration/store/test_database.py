"""Transactions: failures have types, memory changes follow the commit, lost connections are replaced."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from landbridge.store import ContentionError, Database, StoreError, TransientStoreError, UnavailableError
from landbridge_embedded.postgres import PostgresServer


@pytest.fixture
async def db(postgres_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(postgres_dsn, "public", size=3)
    await database.execute("create table counter (id integer primary key, n integer not null)")
    await database.execute("insert into counter values (1, 0), (2, 0)")
    yield database
    await database.close()


async def test_a_serialisation_failure_is_contention_and_keeps_nothing(db: Database) -> None:
    async def bump() -> None:
        async with db.transaction(isolation="serializable") as tx:
            n = await tx.fetchval("select sum(n) from counter")
            await asyncio.sleep(0.05)
            await tx.execute("update counter set n = $1 where id = 1", n + 1)

    outcomes = await asyncio.gather(bump(), bump(), return_exceptions=True)
    assert [type(o) for o in outcomes if o is not None] == [ContentionError]
    assert await db.fetchval("select n from counter where id = 1") == 1


async def test_a_deadlock_is_contention(db: Database) -> None:
    both = asyncio.Barrier(2)

    async def lock(first: int, second: int) -> None:
        async with db.transaction() as tx:
            await tx.execute("update counter set n = n + 1 where id = $1", first)
            await both.wait()
            await tx.execute("update counter set n = n + 1 where id = $1", second)

    outcomes = await asyncio.gather(lock(1, 2), lock(2, 1), return_exceptions=True)
    assert sorted(type(o).__name__ for o in outcomes) == ["ContentionError", "NoneType"]


async def test_memory_changes_after_the_commit_only(db: Database) -> None:
    seen: list[str] = []

    async def work(fail: bool) -> None:
        async with db.transaction() as tx:
            tx.after_commit(lambda: seen.append("committed"))
            tx.after_rollback(lambda: seen.append("rolled back"))
            await tx.execute("update counter set n = n + 1")
            if fail:
                raise RuntimeError

    await work(fail=False)
    with pytest.raises(RuntimeError):
        await work(fail=True)
    assert seen == ["committed", "rolled back"]
    assert await db.fetchval("select sum(n) from counter") == 2


async def test_wrong_sql_is_no_transient_failure(db: Database) -> None:
    for statement in ("selec 1", "insert into counter values (1, 1)", "select 1/0"):
        with pytest.raises(StoreError) as refused:
            await db.execute(statement)
        assert not isinstance(refused.value, TransientStoreError)
    assert await db.healthy()


async def test_row_counts_are_returned(db: Database) -> None:
    assert await db.execute("update counter set n = 5 where n = 0") == 2
    assert await db.execute("create table other (n integer)") == 0


async def test_a_connection_that_is_cut_is_replaced(db: Database, postgres_dsn: str) -> None:
    other = await Database.open(postgres_dsn, "public", size=1)
    others = "datname = current_database() and pid <> pg_backend_pid()"
    cut = f"select pg_terminate_backend(pid) from pg_stat_activity where {others}"
    await db.fetchval("select 1")

    async def work() -> None:
        async with db.transaction() as tx:
            await tx.execute("update counter set n = 9")
            await other.execute(cut)
            await tx.fetchval("select 1")

    with pytest.raises(UnavailableError):
        await work()
    assert await db.fetchval("select max(n) from counter") == 0
    await other.close()


async def test_the_pool_recovers_when_postgres_returns(own_postgres: PostgresServer) -> None:
    await own_postgres.start()
    database = await Database.open(own_postgres.dsn, "public")
    assert await database.healthy()
    await own_postgres.stop()
    assert not await database.healthy()
    with pytest.raises(UnavailableError):
        await database.fetchval("select 1")
    await own_postgres.start()
    await asyncio.wait_for(database.wait_until_healthy(), 5)
    assert await database.fetchval("select 1") == 1
    await database.close()


async def test_a_dsn_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(StoreError, match="DSN"):
        await Database.open("postgresql://host:notaport/x", "public")
