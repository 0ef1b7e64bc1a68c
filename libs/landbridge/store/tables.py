"""The tables that every service's schema has: event log, pending publications, inbox, dead letters.

`event_log` and `inbox` are partitioned by the day in which the event's id (UUIDv7) was minted. Partitioning by the id
itself keeps the primary key at sixteen bytes, lets a range of ids prune to one partition, and never misses a duplicate
at midnight. Rows outside every day's partition (ids of another kind, clocks far off) fall into the default partition.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

_STATEMENTS = (
    """
    create table event_log (
        id uuid primary key,
        subject text not null,
        type text not null,
        about text not null,
        traceparent text not null,
        details text not null,
        body bytea not null
    ) partition by range (id)
    """,
    "create table event_log_default partition of event_log default",
    """
    create table pending (
        id uuid primary key,
        lo uuid not null,
        hi uuid not null,
        events integer not null,
        at timestamptz not null default now()
    )
    """,
    """
    create table inbox (
        id uuid not null,
        consumer text not null,
        at timestamptz not null default now(),
        primary key (id, consumer)
    ) partition by range (id)
    """,
    "create table inbox_default partition of inbox default",
    """
    create table dead_letter (
        id uuid primary key,
        consumer text not null,
        message_id text not null,
        subject text not null,
        type text not null,
        about text not null,
        headers jsonb not null,
        body bytea not null,
        error text not null,
        deliveries integer not null,
        at timestamptz not null default now()
    )
    """,
    "create index dead_letter_at on dead_letter (at)",
)


def create_message_tables(execute: Callable[[str], object]) -> None:
    """Create the tables; call it with `op.execute` in a service's first migration."""
    for statement in _STATEMENTS:
        execute(statement)


def drop_message_tables(execute: Callable[[str], object]) -> None:
    """Drop the tables again (the downgrade of a service's first migration)."""
    for table in ("dead_letter", "inbox", "pending", "event_log"):
        execute(f"drop table if exists {table}")


def first_id_of_day(day: datetime) -> UUID:
    """Return the lowest UUIDv7-ordered id of the UTC day that `day` lies in."""
    midnight = day.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return UUID(int=int(midnight.timestamp() * 1000) << 80)


def partition_name(table: str, day: datetime) -> str:
    """Return the name of a day's partition, such as `inbox_20261130`."""
    return f"{table}_{day.astimezone(UTC):%Y%m%d}"


def partition_day(table: str, name: str) -> datetime | None:
    """Return the UTC day of a partition's name, or None for the default partition."""
    suffix = name.removeprefix(f"{table}_")
    if len(suffix) != len("20261130") or not suffix.isdigit():
        return None
    return datetime.strptime(suffix, "%Y%m%d").replace(tzinfo=UTC)


def days_from(day: datetime, count: int) -> list[datetime]:
    """Return `count` consecutive days starting with the one of `day`."""
    return [day + timedelta(days=offset) for offset in range(count)]
