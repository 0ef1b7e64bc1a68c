"""A service for tests of the runtime, run as a child process: counts each submission once and tells of it.

`python -m support.sample_service` migrates nothing and declares nothing; `SAMPLE_MIGRATIONS` names its migrations.
Bodies: `poison` fails for ever, `boom` is a bug, `later:N` fails for now until it was delivered N times.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI

from landbridge.bus import streams, subjects
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.runtime.failures import PermanentFailure, TransientFailure
from landbridge.runtime.loop import Handler
from landbridge.runtime.runner import run_service
from landbridge.runtime.service import Service, Subscription
from landbridge.runtime.settings import Settings
from landbridge.store import Tx
from landbridge.store import migrate as migrations

MIGRATION = '''"""Message tables and the effect."""
from alembic import op
from landbridge.store.tables import create_message_tables, drop_message_tables

revision = "0001"
down_revision = None


def upgrade():
    create_message_tables(op.execute)
    op.execute("create table effect (key text not null, at timestamptz not null default now())")


def downgrade():
    op.execute("drop table effect")
    drop_message_tables(op.execute)
'''


def write_migrations(folder: Path) -> migrations.Migrations:
    """Write the sample's migrations below `folder`."""
    versions = folder / "migrations" / "versions"
    versions.mkdir(parents=True, exist_ok=True)
    # At once: other replicas read it while this one starts.
    scratch = folder / f"messages-{os.getpid()}"
    scratch.write_text(MIGRATION)
    scratch.replace(versions / "0001_messages.py")
    return migrations.Migrations("intake", "intake", versions)


async def handle(tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
    """Record one effect for each message; return one event for each."""
    for message in batch:
        if message.body == b"poison":
            raise PermanentFailure("this is poison")
        if message.body == b"boom":
            raise KeyError("a bug")
        if message.body.startswith(b"later:") and message.deliveries < int(message.body[6:]):
            raise TransientFailure(0.05)
    await tx.execute("insert into effect (key) select unnest($1::text[])", [m.id for m in batch])
    return [
        Outbound(subjects.operation("accepted", "p"), "io.landbridge.test.v1.Told", m.body, about=m.id) for m in batch
    ]


class SampleService(Service):
    """Reads SUBMISSIONS as intake does."""

    name = "intake"
    subscriptions = (
        Subscription(streams.SUBMISSIONS, "intake", (subjects.submit("*"),), ("Submission",), lambda _: _handler()),
    )

    def routes(self, app: FastAPI) -> None:
        @app.get("/handled")
        async def handled() -> dict[str, int]:
            return {"handled": sum(loop.handled for loop in self.loops)}

    async def prepare(self) -> None:
        if os.environ.get("SAMPLE_CRASHES"):
            self.spawn("crash", self._crash())

    async def _crash(self) -> None:
        raise RuntimeError("background work failed")


def _handler() -> Handler:
    return handle


def main() -> int:
    folder = Path(os.environ["SAMPLE_MIGRATIONS"])
    found = write_migrations(folder)
    migrations.migrations_of = lambda _: found  # type: ignore[assignment]
    return run_service(SampleService, Settings, "intake", needs=("postgres_dsn",))


if __name__ == "__main__":
    sys.exit(main())
