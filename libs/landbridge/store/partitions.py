"""Upkeep of the day partitions: make those that will be needed, drop those that have outlived their use."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from landbridge.store.database import Database
from landbridge.store.errors import ContentionError, StoreError
from landbridge.store.tables import days_from, first_id_of_day, partition_day, partition_name
from landbridge.store.tx import Tx

# Longer than any stream keeps a message (COMMANDS: 14 days) and than any backlog that is supported.
INBOX_DAYS = 21
EVENT_LOG_DAYS = 30
_AHEAD_DAYS = 3
_LOCK = "select pg_advisory_xact_lock(hashtextextended('landbridge partitions ' || current_schema(), 0))"
_CHILDREN = """
select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = to_regclass($1)
"""


async def maintain(
    db: Database, now: datetime, *, inbox_days: int = INBOX_DAYS, event_log_days: int = EVENT_LOG_DAYS
) -> list[str]:
    """Create the partitions of today and the coming days, drop old ones, prune default partitions.

    Returns what was done, one phrase each. Safe to run from several replicas. Rows that a day's partition should have
    held but that lie in the default one stay there: they are found all the same and pruned by age.
    """
    done: list[str] = []
    for table, keep in (("inbox", inbox_days), ("event_log", event_log_days)):
        done += await _create(db, table, days_from(now, _AHEAD_DAYS))
        done += await _drop_older(db, table, now - timedelta(days=keep))
    oldest = first_id_of_day(now - timedelta(days=event_log_days))
    async with db.transaction() as tx:
        await tx.execute("delete from inbox_default where at < $1", now - timedelta(days=inbox_days))
        await tx.execute("delete from event_log_default where id < $1", oldest)
    return done


async def _children(tx: Tx, table: str) -> set[str]:
    return {row[0] for row in await tx.fetch(_CHILDREN, table)}


async def _create(db: Database, table: str, days: Sequence[datetime]) -> list[str]:
    """Create what is missing for `days` in one transaction; day by day where that fails."""
    try:
        async with db.transaction() as tx:
            missing = await _missing(tx, table, days)
            if not missing:
                return []
            await tx.execute("set local lock_timeout = '2s'")
            await tx.execute(_LOCK)
            missing = await _missing(tx, table, days)  # another replica may have been first
            for day in missing:
                lo, hi = first_id_of_day(day), first_id_of_day(day + timedelta(days=1))
                name = partition_name(table, day)
                await tx.execute(f"create table {name} partition of {table} for values from ('{lo}') to ('{hi}')")
    except ContentionError:
        return [f"{table}: partitions not created, the table is busy; tried again later"]
    except StoreError as error:
        if "default partition" not in str(error):
            raise
        if len(days) == 1:
            return [f"{partition_name(table, days[0])} not created: the default partition already holds rows of it"]
        return [phrase for day in days for phrase in await _create(db, table, [day])]
    return [f"{partition_name(table, day)} created" for day in missing]


async def _missing(tx: Tx, table: str, days: Sequence[datetime]) -> list[datetime]:
    present = await _children(tx, table)
    return [day for day in days if partition_name(table, day) not in present]


async def _drop_older(db: Database, table: str, limit: datetime) -> list[str]:
    done: list[str] = []
    async with db.transaction() as tx:
        names = await _children(tx, table)
    for name in sorted(names):
        day = partition_day(table, name)
        if day is None or day + timedelta(days=1) > limit:
            continue
        try:
            async with db.transaction() as tx:
                await tx.execute("set local lock_timeout = '2s'")
                await tx.execute(f"drop table if exists {name}")
        except ContentionError:
            done.append(f"{name} not dropped: the table is busy, tried again later")
        else:
            done.append(f"{name} dropped")
    return done
