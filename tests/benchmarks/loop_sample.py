"""Two minimal services for the microbenchmark of the loop: one as intake, one as lineage."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from landbridge.bus import streams, subjects
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.runtime.loop import Handler
from landbridge.runtime.runner import run_service
from landbridge.runtime.service import Service, Subscription
from landbridge.runtime.settings import Settings
from landbridge.store import Tx
from landbridge.store import migrate as migrations

_MIGRATION = '''"""Message tables and state."""
from alembic import op
from landbridge.store.tables import create_message_tables

revision = "0001"
down_revision = None


def upgrade():
    create_message_tables(op.execute)
    op.execute("create table operation (id text primary key, seq integer not null, body bytea not null)")


def downgrade():
    pass
'''
_INSERT = "insert into operation select u.id, 1, u.body from unnest($1::text[], $2::bytea[]) u(id, body)"


def write_migrations(folder: Path, service: str) -> migrations.Migrations:
    """Write the migration of a sample service below `folder`."""
    versions = folder / service / "migrations" / "versions"
    versions.mkdir(parents=True, exist_ok=True)
    (versions / "0001_messages.py").write_text(_MIGRATION)
    return migrations.Migrations(service, migrations.schema_of(service), versions)


async def accept(tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
    """As intake does: a row for each submission and an event for each."""
    await tx.execute(_INSERT, [m.id for m in batch], [m.body for m in batch])
    subject = subjects.operation("accepted", "p")
    return [Outbound(subject, "io.landbridge.operation.v1.OperationAccepted", m.body, m.id) for m in batch]


async def record(tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
    """As lineage does: a row for each event."""
    await tx.execute(_INSERT, [m.id for m in batch], [m.body for m in batch])
    return ()


def _accept(_: object) -> Handler:
    return accept


def _record(_: object) -> Handler:
    return record


class IntakeLike(Service):
    """Reads SUBMISSIONS, writes OPERATIONS."""

    name = "intake"
    subscriptions = (Subscription(streams.SUBMISSIONS, "intake", (subjects.submit("*"),), ("Submission",), _accept),)


class LineageLike(Service):
    """Reads all of OPERATIONS."""

    name = "lineage"
    subscriptions = (Subscription(streams.OPERATIONS, "lineage", (subjects.operation("*", "*"),), ("Event",), _record),)


def main() -> int:
    kind = IntakeLike if sys.argv[1] == "intake" else LineageLike
    found = write_migrations(Path(os.environ["SAMPLE_MIGRATIONS"]), sys.argv[1])
    migrations.migrations_of = lambda _: found  # type: ignore[assignment]
    if profile := os.environ.get("SAMPLE_PROFILE"):
        import cProfile

        with cProfile.Profile() as profiler:
            code = run_service(kind, Settings, sys.argv[1], needs=("postgres_dsn",))
        profiler.dump_stats(f"{profile}.{sys.argv[1]}")
        return code
    return run_service(kind, Settings, sys.argv[1], needs=("postgres_dsn",))


if __name__ == "__main__":
    sys.exit(main())
