"""What must be there before the services: schemas in Postgres, streams and durables in NATS. Safe to repeat."""

import asyncio
import os
import shutil
import sys
import time
from pathlib import Path

from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.bus.declare import declare
from landbridge.bus.errors import BusError, Unavailable
from landbridge.bus.streams import DEFAULT_BUDGET_BYTES
from landbridge.store.database import Database
from landbridge.store.errors import SchemaOutOfDateError, StoreError
from landbridge.store.migrate import check_head, migrate, schema_of
from landbridge_embedded.services import SERVICES

_PATIENCE_S = 60.0  # a broker on a slow or crowded machine makes its first streams in its own time
_DISK_SHARE = 0.5  # of what is free now; the broker reserves it, but fills it only with messages


def main() -> int:
    """Prepare from LANDBRIDGE_POSTGRES_DSN, _NATS_URL, _NATS_CREDS; say what changed; exit code 1 with the reason."""
    failed = False
    try:
        asyncio.run(_prepare())
    except* (StoreError, BusError, OSError) as group:
        failed = True
        for error in group.exceptions:
            sys.stderr.write(f"{error}\n")
    return int(failed)


async def _prepare() -> None:
    dsn = os.environ["LANDBRIDGE_POSTGRES_DSN"]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(migrate_needed(dsn), name="migrate")
        tasks.create_task(declare_streams(), name="declare")


async def migrate_needed(dsn: str) -> None:
    """Migrate the services whose schema is not at its newest revision; alembic is loaded only then."""
    for service in (spec.name for spec in SERVICES if spec.postgres):
        db = await Database.open(dsn, schema_of(service), size=1)
        try:
            await check_head(db, service)
            continue
        except SchemaOutOfDateError:
            pass
        finally:
            await db.close()
        reached = await migrate(dsn, service)
        if reached:
            print(f"{service}: schema {schema_of(service)} is now at {reached}", flush=True)  # noqa: T201


async def declare_streams() -> None:
    """Declare the table of streams, within what the disk has.

    For servers of yours: LANDBRIDGE_NATS_REPLICAS copies of each, LANDBRIDGE_NATS_BUDGET_BYTES for all together.
    """
    creds = os.environ.get("LANDBRIDGE_NATS_CREDS", "")
    settings = BusSettings(url=os.environ["LANDBRIDGE_NATS_URL"], creds=Path(creds) if creds else None)
    bus = await connect(settings, name="streams")
    try:
        given = int(os.environ.get("LANDBRIDGE_NATS_BUDGET_BYTES") or 0)
        budget = given or budget_bytes(Path(os.environ["LANDBRIDGE_STORE_DIR"]))
        replicas = int(os.environ.get("LANDBRIDGE_NATS_REPLICAS") or 1)
        for change in await _declare_patiently(bus, budget, replicas):
            print(change, flush=True)  # noqa: T201
    finally:
        await bus.drain()


async def _declare_patiently(bus: Bus, budget: int, replicas: int) -> list[str]:
    """Declare, and go on declaring while the broker is slow to answer: what is there already stays as it is."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return await declare(bus, budget_bytes=budget, replicas=replicas)
        except Unavailable as error:
            if time.monotonic() >= deadline:
                raise
            print(f"{error}; asked again", flush=True)  # noqa: T201


def budget_bytes(store: Path) -> int:
    """Bytes that all streams may take: the usual budget, less on a small disk.

    Remembered in the directory, because a stream's size must not change with what is free today.
    """
    memory = store / "budget"
    if memory.exists():
        return int(memory.read_text())
    budget = min(DEFAULT_BUDGET_BYTES, int(shutil.disk_usage(store).free * _DISK_SHARE))
    memory.write_text(f"{budget}\n")
    return budget
