"""Microbenchmark of the message loop: submission → intake-like → event log → stream → lineage-like.

`python -m tests.benchmarks.loop [--messages N] [--profile]` prints rate and processor time per message by process.
Servers are durable: NATS syncs always, Postgres has fsync on.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nats.aio.msg import Msg

from landbridge.bus import subjects
from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.bus.declare import api, declare
from landbridge.bus.envelope import Outbound
from landbridge.bus.ids import new_event_ids
from landbridge.bus.publish import publish_batch
from landbridge.store import Database
from landbridge.store.migrate import migrate_folder
from landbridge_embedded.nats import NatsServer
from landbridge_embedded.postgres import PostgresServer

from .loop_sample import write_migrations
from .measure import Usage, fdatasync_ms, summary_ms, usage

_BODY_BYTES = 900


async def _load(bus: Bus, count: int) -> None:
    body = json.dumps({"operation": "x" * 36, "padding": "y" * _BODY_BYTES}).encode()
    for start in range(0, count, 1000):
        size = min(1000, count - start)
        ids = new_event_ids(size)
        await publish_batch(
            bus, "SUBMISSIONS", [Outbound(subjects.submit("p"), "T", body, id=identifier) for identifier in ids]
        )


async def _lag(bus: Bus, stream: str, durable: str) -> int:
    info = await api(bus, f"CONSUMER.INFO.{stream}.{durable}")
    return int(info["num_pending"]) + int(info["num_ack_pending"])


async def _hop(bus: Bus, *, rate: float = 50.0, seconds: float = 4.0) -> dict[str, float]:
    """Time from publishing one submission until its event is heard, at `rate` a second."""
    heard: dict[str, float] = {}
    sent: dict[str, float] = {}

    async def on_message(msg: Msg) -> None:
        heard[(msg.headers or {})["ce-subject"]] = time.perf_counter()

    subscription = await bus.subscribe(subjects.operation("accepted", "p"), on_message)
    started = time.perf_counter()
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
        [identifier] = new_event_ids(1)
        sent[identifier] = time.perf_counter()
        await publish_batch(bus, "SUBMISSIONS", [Outbound(subjects.submit("p"), "T", b"{}", id=identifier)])
    await asyncio.sleep(0.5)
    await subscription.close()
    return summary_ms(heard[identifier] - at for identifier, at in sent.items() if identifier in heard)


def _start(name: str, environ: dict[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "tests.benchmarks.loop_sample", name], env=environ)


async def _run(folder: Path, count: int, profile: str) -> dict[str, object]:
    nats, postgres = NatsServer(folder), PostgresServer(folder)
    await nats.start()
    await postgres.start()
    bus = await connect(BusSettings(url=nats.url), name="bench")
    await declare(bus, budget_bytes=2 * 1024**3)
    for service in ("intake", "lineage"):
        await migrate_folder(postgres.dsn, write_migrations(folder, service))
    environ = {
        **os.environ,
        "LANDBRIDGE_NATS_URL": nats.url,
        "LANDBRIDGE_POSTGRES_DSN": postgres.dsn,
        "LANDBRIDGE_LOG_LEVEL": "info",
        "SAMPLE_MIGRATIONS": str(folder),
        "SAMPLE_PROFILE": profile,
    }
    children = {name: _start(name, environ) for name in ("intake", "lineage")}
    database = await Database.open(postgres.dsn, "lineage", size=1)
    await _load(bus, 2000)  # warm-up
    while await database.fetchval("select count(*) from operation") < 2000:
        await asyncio.sleep(0.05)
    pids = {
        **{name: child.pid for name, child in children.items()},
        "nats": nats.child.pid,
        "postgres": postgres.child.pid,
    }
    before: dict[str, Usage] = {name: usage(pid) for name, pid in pids.items()}
    started = time.perf_counter()
    await _load(bus, count)
    while await database.fetchval("select count(*) from operation") < 2000 + count:
        await asyncio.sleep(0.02)
    elapsed = time.perf_counter() - started
    after = {name: usage(pid) for name, pid in pids.items()}
    cpu = {name: round((after[name].cpu_s - before[name].cpu_s) / count * 1e6, 1) for name in pids}
    figures: dict[str, object] = {
        "hop_ms": await _hop(bus),
        "messages": count,
        "messages_per_second": round(count / elapsed),
        "cpu_us_per_message": {**cpu, "total": round(sum(cpu.values()), 1)},
        "lag": {
            "intake": await _lag(bus, "SUBMISSIONS", "intake"),
            "lineage": await _lag(bus, "OPERATIONS", "lineage"),
        },
        "fdatasync_ms": fdatasync_ms(folder),
    }
    for child in children.values():
        child.send_signal(signal.SIGTERM)
        child.wait(20)
    await database.close()
    await bus.drain()
    await postgres.stop()
    await nats.stop()
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.loop")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--profile", default="", help="write cProfile data of both services to this path and a suffix")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="landbridge-bench-") as folder:
        figures = asyncio.run(_run(Path(folder), arguments.messages, arguments.profile))
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
