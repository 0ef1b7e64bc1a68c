"""Benchmark of the lineage service: whole lives of operations from the stream into projections.

`python -m tests.benchmarks.lineage [--operations N]` prints operations per second and processor time per operation by
process. Servers are durable: NATS syncs always, Postgres has fsync on. The stream is filled before the service starts,
so that the figure is how fast lineage can go; list messages carry 100 operations each.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from landbridge.bus import subjects
from landbridge.bus.connection import BusSettings, connect
from landbridge.bus.declare import declare
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.ids import new_event_ids
from landbridge.bus.publish import publish_batch
from landbridge.domain.ids import operation_id
from landbridge.runtime.clock import SystemClock
from landbridge.schema.wire import event_v1 as events
from landbridge.schema.wire import report_v1 as reports
from landbridge.store import Database
from landbridge.store.migrate import migrate
from landbridge_embedded.nats import NatsServer
from landbridge_embedded.postgres import PostgresServer
from landbridge_lineage import replay

from .measure import fdatasync_ms, usage

_LIST = 100
# In how many groups of _LIST operations a stage follows the first one: lives overlap as they do under load.
_STAGE_DELAYS = (0, 2, 3, 5, 7, 9)
_WARM_UP = 2000
_SPEC = msgspec.json.encode(
    {
        "apiVersion": "landbridge/v1",
        "kind": "Operation",
        "metadata": {"name": "bench", "project": "bench", "labels": {"team": "bench"}},
        "spec": {"type": "job", "command": ["python3", "-c", "pass"], "env": {f"V{n}": "x" * 20 for n in range(15)}},
    }
)
_NOW = SystemClock().wall()
_EPOCH = events.Epoch(generation=1, counter=1)
_ASSESSMENT = events.Assessment(
    id="bench-assessment",
    requirement_class="bench-class",
    at=_NOW,
    eligible=True,
    environments=tuple(
        events.EnvironmentVerdict(environment=f"env-{n}", contract_version=1, eligible=n < 2) for n in range(5)
    ),
)
_DECISION = events.Decision(
    id="bench-decision",
    assessment_id="bench-assessment",
    at=_NOW,
    route=events.Route.PREFERRED,
    ranked=tuple(events.ScoreCard(environment=f"env-{n}", total=0.5) for n in range(2)),
)
_RESOLVED = reports.Resolved(
    workload="guardian-1", host="host-1", hardware="2 vCPU", executor="process", connections={"results": "file:///r"}
)


def _message(event: str, body: msgspec.Struct) -> Outbound:
    kind = event_type("operation", type(body).__name__)
    return Outbound(subjects.operation(event, "bench"), kind, msgspec.json.encode(body))


def _changed(operation: str, number: int, phase: str, report: reports.AttemptReport | None = None) -> Outbound:
    body = events.OperationChanged(
        operation=operation,
        project="bench",
        op_seq=number,
        phase=events.Phase(phase),
        at=_NOW,
        round=1,
        attempt=1,
        epoch=_EPOCH,
        environment="env-0",
        decision_id=_DECISION.id,
        report=report,
    )
    return _message(phase, body)


def _report(operation: str, state: reports.AttemptState, **rest: Any) -> reports.AttemptReport:
    return reports.AttemptReport(
        operation=operation, epoch=_EPOCH, state=state, at=_NOW, started_at=_NOW, resolved=_RESOLVED, **rest
    )


def _stages(operations: list[str]) -> list[list[Outbound]]:
    """Return what happens to a group of operations, stage by stage."""
    rounds = tuple(events.OperationRound(operation=each, round=1) for each in operations)
    decided = tuple(events.DecidedOperation(operation=each, round=1, environment="env-0") for each in operations)
    output = reports.OutputRef(connection="results", path="x/y", bytes=10, sha256="a" * 64, exists=True)
    accepted = [
        events.OperationAccepted(
            operation=each, project="bench", name="bench", queue="default", op_seq=1, at=_NOW, effective=_SPEC
        )
        for each in operations
    ]
    ended = [
        _report(
            each,
            reports.AttemptState.FINISHED,
            outcome=reports.AttemptOutcome.COMPLETED,
            exit_code=0,
            outputs={"result": output},
        )
        for each in operations
    ]
    return [
        [_message("accepted", each) for each in accepted],
        [_message("assessed", events.OperationsAssessed(assessment=_ASSESSMENT, operations=rounds))],
        [_message("decided", events.OperationsDecided(decision=_DECISION, operations=decided))],
        [_changed(each, 2, "pending") for each in operations],
        [_changed(each, 3, "running", _report(each, reports.AttemptState.STARTED)) for each in operations],
        [_changed(each.operation, 4, "completed", each) for each in ended],
    ]


def _lives(count: int, prefix: str) -> Iterator[list[Outbound]]:
    """Yield the messages of `count` operations in the order in which they would be published."""
    names = [operation_id("bench", f"{prefix}-{number}") for number in range(count)]
    groups = [_stages(names[start : start + _LIST]) for start in range(0, count, _LIST)]
    for step in range(len(groups) + max(_STAGE_DELAYS)):
        for stage, delay in enumerate(_STAGE_DELAYS):
            if 0 <= step - delay < len(groups):
                yield groups[step - delay][stage]


async def _publish(bus: object, count: int, prefix: str) -> int:
    waiting: list[Outbound] = []
    sent = 0
    for messages in _lives(count, prefix):
        ids = new_event_ids(len(messages))
        waiting += [
            Outbound(each.subject, each.type, each.body, id=key) for each, key in zip(messages, ids, strict=True)
        ]
        if len(waiting) >= 900:
            await publish_batch(bus, "OPERATIONS", waiting)  # type: ignore[arg-type]
            sent, waiting = sent + len(waiting), []
    await publish_batch(bus, "OPERATIONS", waiting)  # type: ignore[arg-type]
    return sent + len(waiting)


async def _run(folder: Path, count: int) -> dict[str, object]:
    nats, postgres = NatsServer(folder), PostgresServer(folder)
    await nats.start()
    await postgres.start()
    bus = await connect(BusSettings(url=nats.url), name="bench")
    await declare(bus, budget_bytes=2 * 1024**3)
    await migrate(postgres.dsn, "lineage")
    database = await Database.open(postgres.dsn, "lineage", size=1)
    await _publish(bus, _WARM_UP, "warm")
    messages = await _publish(bus, count, "run")
    environ = {**os.environ, "LANDBRIDGE_NATS_URL": nats.url, "LANDBRIDGE_POSTGRES_DSN": postgres.dsn}
    service = subprocess.Popen([sys.executable, "-m", "landbridge_lineage"], env=environ)

    async def completed() -> int:
        return int(await database.fetchval("select coalesce(sum(operations), 0) from tally where phase = 'completed'"))

    while (first := await completed()) < _WARM_UP:
        await asyncio.sleep(0.02)
    pids = {"lineage": service.pid, "nats": nats.child.pid, "postgres": postgres.child.pid}
    before = {name: usage(pid) for name, pid in pids.items()}
    started = time.perf_counter()
    while (last := await completed()) < _WARM_UP + count:
        await asyncio.sleep(0.02)
    elapsed, measured = time.perf_counter() - started, last - first
    after = {name: usage(pid) for name, pid in pids.items()}
    cpu = {name: round((after[name].cpu_s - before[name].cpu_s) / measured * 1e6, 1) for name in pids}
    service.send_signal(signal.SIGTERM)
    service.wait(20)
    found = await replay.compare(database)
    await database.close()
    await bus.drain()
    await postgres.stop()
    await nats.stop()
    return {
        "operations": measured,
        "messages_per_operation": round(messages / count, 2),
        "operations_per_second": round(measured / elapsed),
        "cpu_us_per_operation": {**cpu, "total": round(sum(cpu.values()), 1)},
        "lineage_rss_mb": round(after["lineage"].rss_mb),
        "replay": found.text(),
        "fdatasync_ms": fdatasync_ms(folder),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.lineage")
    parser.add_argument("--operations", type=int, default=20_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="landbridge-bench-") as folder:
        figures = asyncio.run(_run(Path(folder), arguments.operations))
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
