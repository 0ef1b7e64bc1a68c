"""A whole small world: NATS with the declared streams, Postgres with the sample's schema, the sample as a child."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from landbridge.bus import subjects
from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.bus.declare import api, declare, durable_config
from landbridge.bus.envelope import Outbound
from landbridge.bus.publish import publish_batch
from landbridge.bus.streams import DURABLES
from landbridge.runtime.ids import new_id
from landbridge.store import Database
from landbridge.store.migrate import migrate_folder
from landbridge_embedded.nats import NatsServer
from support.children import Child
from support.sample_service import write_migrations


@dataclass
class World:
    """What a test of the loop needs."""

    nats: NatsServer
    bus: Bus
    db: Database
    dsn: str
    folder: Path
    children: list[Child] = field(default_factory=list)

    def child(self, name: str = "sample", **environ: str) -> Child:
        child = Child("support.sample_service", {**self.environ(), **environ}, self.folder, name=name)
        self.children.append(child)
        return child

    def environ(self) -> dict[str, str]:
        return {
            "LANDBRIDGE_NATS_URL": self.nats.url,
            "LANDBRIDGE_POSTGRES_DSN": self.dsn,
            "SAMPLE_MIGRATIONS": str(self.folder / "sample"),
        }

    async def submit(self, bodies: Sequence[bytes]) -> list[str]:
        """Publish submissions; return their ids."""
        messages = [Outbound(subjects.submit("p"), "io.landbridge.test.v1.Submission", b, id=new_id()) for b in bodies]
        await publish_batch(self.bus, "SUBMISSIONS", messages)
        return [message.id for message in messages]

    async def effects(self) -> list[str]:
        return [row[0] for row in await self.db.fetch("select key from effect order by key")]

    async def pending(self) -> int:
        return int(await self.db.fetchval("select count(*) from pending"))

    async def stored(self, stream: str) -> int:
        return int((await api(self.bus, f"STREAM.INFO.{stream}"))["state"]["messages"])

    async def unacknowledged(self) -> int:
        info = await api(self.bus, "CONSUMER.INFO.SUBMISSIONS.intake")
        return int(info["num_pending"]) + int(info["num_ack_pending"])


@asynccontextmanager
async def make_world(nats: NatsServer, dsn: str, folder: Path) -> AsyncIterator[World]:
    """Declare, migrate, connect; end all children afterwards."""
    bus = await connect(BusSettings(url=nats.url), name="test")
    await declare(bus, budget_bytes=256 * 1024 * 1024)
    await _notice_the_dead_soon(bus)
    await migrate_folder(dsn, write_migrations(folder / "sample"))
    db = await Database.open(dsn, "intake")
    made = World(nats, bus, db, dsn, folder)
    try:
        yield made
    finally:
        for child in made.children:
            await child.stop()
        await db.close()
        await bus.drain()


async def _notice_the_dead_soon(bus: Bus) -> None:
    """Deliver again after two seconds instead of ten: tests of crashes need not wait, and see more redeliveries."""
    [spec] = [spec for spec in DURABLES if (spec.stream, spec.name) == ("SUBMISSIONS", "intake")]
    config = {**durable_config(spec), "ack_wait": 2_000_000_000}
    path = f"CONSUMER.CREATE.{spec.stream}.{spec.name}.{spec.filters[0]}"
    await api(bus, path, {"stream_name": spec.stream, "config": config, "action": ""})
