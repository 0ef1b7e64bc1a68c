"""Lineage as a process: killed at its worst moments, shared by replicas, it folds everything exactly once."""

import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from landbridge.bus import streams
from landbridge.bus.connection import Bus
from landbridge.bus.envelope import Inbound
from landbridge.bus.publish import publish_batch
from landbridge.store import Database
from landbridge_embedded.nats import NatsServer
from landbridge_lineage import reads, replay
from landbridge_lineage.writes import Cell
from support.children import Child
from support.lineage_messages import (
    a_decision,
    a_verdict,
    a_whole_life,
    an_assessment,
    an_operation,
    assessed,
    decided,
    outbound,
)
from support.wait import wait_until

OPERATIONS = [an_operation(f"process-{n}") for n in range(60)]
DONE = {Cell("coast", "batch", "quay", "completed"): len(OPERATIONS)}


@pytest.fixture
async def dsn(migrated_dsn: Callable[..., Awaitable[str]]) -> str:
    return await migrated_dsn("lineage")


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    opened = await Database.open(dsn, "lineage", size=1)
    yield opened
    await opened.close()


def a_replica(nats_server: NatsServer, dsn: str, folder: Path, name: str) -> Child:
    environ = {"LANDBRIDGE_NATS_URL": nats_server.url, "LANDBRIDGE_POSTGRES_DSN": dsn}
    return Child("landbridge_lineage.__main__", environ, folder, name=name)


async def everything(bus: Bus) -> None:
    """Publish every life, shuffled, some of it twice."""
    assessment = an_assessment("a-1", a_verdict("quay"))
    messages: list[Inbound] = [
        assessed(assessment, *OPERATIONS),
        decided(a_decision("d-1", "a-1", "quay"), "quay", *OPERATIONS),
    ]
    messages += [each for operation in OPERATIONS for each in a_whole_life(operation)]
    random.Random(11).shuffle(messages)
    messages += messages[:100]
    for start in range(0, len(messages), 40):
        await publish_batch(bus, streams.OPERATIONS, [outbound(each) for each in messages[start : start + 40]])


async def all_done(database: Database) -> bool:
    return await reads.tally(database) == DONE


@pytest.mark.parametrize("moment", ["loop.before-commit", "loop.after-commit", "loop.after-ack"])
async def test_a_killed_process_loses_nothing_and_counts_nothing_twice(
    bus: Bus, nats_server: NatsServer, dsn: str, database: Database, tmp_path: Path, moment: str
) -> None:
    await everything(bus)
    child = a_replica(nats_server, dsn, tmp_path, "lineage")
    child.start(LANDBRIDGE_FAILPOINTS=f"{moment}=kill")
    assert await child.ended() == -signal.SIGKILL
    child.start()
    await wait_until(lambda: all_done(database), "every operation is completed")
    child.signal(signal.SIGTERM)
    assert await child.ended() == 0
    found = await replay.compare(database)
    assert found.equal, found.text()


async def test_replicas_share_the_work_and_agree(
    bus: Bus, nats_server: NatsServer, dsn: str, database: Database, tmp_path: Path
) -> None:
    replicas = [a_replica(nats_server, dsn, tmp_path, f"lineage-{n}") for n in range(2)]
    for each in replicas:
        each.start()
    for each in replicas:
        await each.ready()
    await everything(bus)
    await wait_until(lambda: all_done(database), "every operation is completed", timeout_s=40)
    for each in replicas:
        each.signal(signal.SIGTERM)
    assert [await each.ended() for each in replicas] == [0, 0]
    found = await replay.compare(database)
    assert found.equal, found.text()
    assert await database.fetchval("select count(*) from dead_letter") == 0
