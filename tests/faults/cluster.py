"""A cluster of three NATS servers whose leader is killed again and again, under load that comes in both ways."""

import asyncio
import contextlib
import itertools
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import instance as bench
from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.bus.declare import api
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.errors import BusError
from landbridge.bus.publish import publish_batch
from landbridge.bus.scan import scan
from landbridge.client import LandbridgeError
from landbridge.domain.ids import cloud_event_key, operation_id
from landbridge.store import Database, StoreError
from support.deployed_nats import Deployment

BUDGET_BYTES = 2 * streams.GIB
SITES = ("sim-a", "sim-b")
WAYS = ("http", "nats")
_SOURCE = "/tests/cluster"
_SUBMISSION = event_type("submission", "Operation")
_REST_S = 150.0
_UP_S = 180
_DOWN_S = 8.0


class ClusterInstance(bench.Instance):
    """Landbridge on a cluster that was started from `deploy/nats/cluster.conf`."""

    def __init__(self, root: Path) -> None:
        self.deployment = Deployment(root)
        self.deployment.cluster()
        super().__init__(self.deployment.data)

    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LANDBRIDGE_")}
        return kept | {
            "LANDBRIDGE_NATS_URL": self.deployment.url,
            "LANDBRIDGE_NATS_REPLICAS": "3",
            "LANDBRIDGE_NATS_BUDGET_BYTES": str(BUDGET_BYTES),
        }

    async def _landbridge(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "landbridge.cli.main", *arguments]
        done = await asyncio.to_thread(
            subprocess.run,
            command,
            cwd=bench.ROOT,
            env=self.environ(),
            capture_output=True,
            text=True,
            timeout=_UP_S,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"landbridge {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")

    async def open(self) -> None:
        await self.deployment.start()
        await self.up()
        await self.register(SITES, executor="simulated")
        await self.grant()

    async def close(self) -> None:
        try:
            await self.down()
        finally:
            await self.deployment.stop()

    async def leader(self) -> str:
        """Return the name of the server that leads the stream of operations."""
        bus = await self.deployment.bus("streams")
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    found = await api(bus, f"STREAM.INFO.{streams.OPERATIONS}", timeout_s=2.0)
                    leader = str(found.get("cluster", {}).get("leader", ""))
                except BusError:
                    leader = ""
                if leader:
                    return leader
                if time.monotonic() > deadline:
                    raise RuntimeError("the stream of operations has no leader for 60 s")
                await asyncio.sleep(0.2)
        finally:
            await bus.drain()

    async def database(self) -> Database:
        password = (self.data.root / "postgres" / "password").read_text().strip()
        port = self.state["services"]["postgres"]["port"]
        dsn = f"postgresql://landbridge:{password}@127.0.0.1:{port}/landbridge"
        return await Database.open(dsn, "lineage", size=1, application="cluster-test")


@dataclass
class Told:
    """What clients were told, with times: which operations were acknowledged, by way, and when."""

    acknowledged: dict[str, tuple[str, float]] = field(default_factory=dict)

    def note(self, way: str, operation: str) -> None:
        self.acknowledged[operation] = (way, time.time())


class ClusterRun:
    """`await run()` returns the report. `kills` times the leader dies, `every_s` apart."""

    def __init__(
        self, root: Path, *, kills: int, every_s: float, rate: float, say: Callable[[str], None] = print
    ) -> None:
        self.instance = ClusterInstance(root)
        self.kills, self.every_s, self.rate, self._say = kills, every_s, rate, say
        self.told = Told()
        self.killed_at: list[float] = []
        self.down_s: list[float] = []
        self.completed: list[tuple[float, int]] = []

    async def run(self) -> dict[str, Any]:
        try:
            await self.instance.open()
            self._say("the instance is ready on three servers")
            stop = asyncio.Event()
            bus = await connect(
                BusSettings(url=self.instance.deployment.url, creds=self.instance.creds), name="application"
            )
            async with asyncio.TaskGroup() as group:
                group.create_task(self._load(bus, stop))
                group.create_task(self._count(stop))
                await self._kill_leaders()
                stop.set()
            await bus.drain()
            lost = await self._rest()
            told = await self._told()
        finally:
            await self.instance.close()
        return {
            **self._report(lost),
            "ends_told": sum(kind == "ended" for _, kind in told),
            "told_twice": sorted(f"{operation} {kind}" for (operation, kind), ids in told.items() if len(ids) > 1),
        }

    # -- load ---------------------------------------------------------------------------------------------------------

    async def _load(self, bus: Bus, stop: asyncio.Event) -> None:
        """Submit at an even rate, alternating; each submission goes on until it is acknowledged."""
        number = 0
        async with self.instance.client() as client, asyncio.TaskGroup() as group:
            client_ = client
            began = time.monotonic()
            while not stop.is_set():
                document = bench.operation(number)
                if number % 2:
                    group.create_task(self._over_nats(bus, f"n-{number}", document))
                else:
                    group.create_task(self._over_http(client_, f"h-{number}", document))
                number += 1
                await asyncio.sleep(max(0.0, began + number / self.rate - time.monotonic()))

    async def _over_http(self, client: Any, key: str, document: bytes) -> None:
        while True:
            try:
                answer = await client.submit(document, idempotency_key=key)
            except LandbridgeError:
                await asyncio.sleep(0.5)
            else:
                self.told.note("http", answer.id)
                return

    async def _over_nats(self, bus: Bus, key: str, document: bytes) -> None:
        message = Outbound(subjects.submit(bench.PROJECT), _SUBMISSION, document, id=key, source=_SOURCE)
        while True:
            try:
                await publish_batch(bus, streams.SUBMISSIONS, [message], deadline_s=10.0)
            except BusError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(0.2)
            else:
                self.told.note("nats", operation_id(bench.PROJECT, cloud_event_key(_SOURCE, key)))
                return

    # -- faults -------------------------------------------------------------------------------------------------------

    async def _kill_leaders(self) -> None:
        servers = {server.name: server for server in self.instance.deployment.servers}
        await asyncio.sleep(self.every_s / 4)
        for number in range(self.kills):
            began = time.monotonic()
            name = await self.instance.leader()
            servers[name].kill()
            self.killed_at.append(time.time())
            after = await self.instance.leader()
            self.down_s.append(time.monotonic() - began)
            self._say(f"kill {number + 1}: {name} led, {after} leads {self.down_s[-1]:.1f} s later")
            await asyncio.sleep(max(0.0, began + _DOWN_S - time.monotonic()))
            servers[name].launch()
            await asyncio.sleep(max(0.0, began + self.every_s - time.monotonic()))
        for server in servers.values():
            await server.until_ready("/healthz")

    async def _count(self, stop: asyncio.Event) -> None:
        """Note how many operations have completed, twice a second."""
        database = await self.instance.database()
        try:
            while not stop.is_set():
                with contextlib.suppress(StoreError):
                    self.completed.append((time.time(), len(await _completed(database))))
                await asyncio.sleep(0.5)
        finally:
            await database.close()

    # -- the end ------------------------------------------------------------------------------------------------------

    async def _rest(self) -> list[str]:
        """Wait until everything acknowledged has completed; return what has not."""
        database = await self.instance.database()
        deadline = time.monotonic() + _REST_S
        lost = sorted(self.told.acknowledged)
        try:
            while lost and time.monotonic() < deadline:
                with contextlib.suppress(StoreError):
                    lost = sorted(set(self.told.acknowledged) - await _completed(database))
                await asyncio.sleep(0.5)
        finally:
            await database.close()
        return lost

    async def _told(self) -> dict[tuple[str, str], set[str]]:
        """Return the ids of all events that tell a start or an end, by operation."""
        told: dict[tuple[str, str], set[str]] = {}
        bus = await self.instance.deployment.bus("streams")
        try:
            filters = [subjects.operation(event, "*") for event in ("running", *streams.TERMINAL)]
            async for message in scan(bus, streams.OPERATIONS, filters):
                kind = "started" if subjects.token(message.subject, 3) == "running" else "ended"
                told.setdefault((message.about, kind), set()).add(message.id)
        finally:
            await bus.drain()
        return told

    def _report(self, lost: list[str]) -> dict[str, Any]:
        edges = [*self.killed_at, self.killed_at[-1] + self.every_s]
        between = []
        for low, high in itertools.pairwise(edges):
            told = Counter(way for way, at in self.told.acknowledged.values() if low <= at < high)
            seen = [count for at, count in self.completed if low <= at < high] or [0]
            between.append({**{way: told[way] for way in WAYS}, "completed": seen[-1] - seen[0]})
        ways = Counter(way for way, _ in self.told.acknowledged.values())
        return {
            "kills": len(self.killed_at),
            "every_s": self.every_s,
            "acknowledged": len(self.told.acknowledged),
            "acknowledged_by_way": dict(ways),
            "lost": len(lost),
            "lost_ids": lost[:5],
            "between_kills": between,
            "without_leader_s": [round(seconds, 1) for seconds in self.down_s],
        }


async def _completed(database: Database) -> set[str]:
    query = "select id from operation where project = $1 and phase = 'completed'"
    return {str(row[0]) for row in await database.fetch(query, bench.PROJECT)}
