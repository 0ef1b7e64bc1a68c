"""How many operations there are of each kind: kept in Redis for the many who look, read from Postgres without it."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from landbridge.store import Database
from landbridge.store.redis_views import RedisViews
from landbridge_lineage import reads
from landbridge_lineage.state import WAITING_PHASES
from landbridge_lineage.writes import Cell

KEY: Final = "lineage:counts"
TTL_SECONDS: Final = 10
_ACTIVE: Final = frozenset({"pending", "running"})


class Counted(msgspec.Struct, frozen=True):
    """Operations of one kind."""

    project: str
    queue: str
    environment: str
    phase: str
    operations: int


class Oldest(msgspec.Struct, frozen=True):
    """Since when the oldest waiting operation of a project waits in a queue."""

    project: str
    queue: str
    at: datetime


class Counts(msgspec.Struct, frozen=True):
    """All counts at one moment, and where they were read."""

    cells: tuple[Counted, ...]
    oldest: tuple[Oldest, ...]
    source: str = "postgres"

    def seen_by(self, sees: Callable[[str], bool]) -> "Counts":
        """Return what belongs to projects that `sees` allows."""
        cells = tuple(cell for cell in self.cells if sees(cell.project))
        oldest = tuple(each for each in self.oldest if sees(each.project))
        return Counts(cells, oldest, self.source)


_decoder: Final = msgspec.json.Decoder(Counts)


async def read(db: Database, redis: RedisViews) -> Counts:
    """Return the counts, at most a few seconds old. Redis being away costs only a statement."""
    held = (await redis.get([KEY])).get(KEY)
    if held is not None:
        try:
            return msgspec.structs.replace(_decoder.decode(held), source="redis")
        except msgspec.MsgspecError:
            pass  # written by another release
    return await from_tables(db)


async def from_tables(db: Database) -> Counts:
    """Return the counts as they are."""
    tally: Mapping[Cell, int] = await reads.tally(db)
    oldest = await reads.oldest_waiting(db)
    return Counts(
        tuple(Counted(*cell, count) for cell, count in sorted(tally.items())),
        tuple(Oldest(project, queue, at) for (project, queue), at in sorted(oldest.items())),
    )


async def publish(db: Database, redis: RedisViews) -> bool:
    """Bring the read model in Redis up to date; return whether Redis took it."""
    return await redis.put({KEY: msgspec.json.encode(await from_tables(db))}, ttl_s=TTL_SECONDS)


def by_phase(counts: Counts) -> dict[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for cell in counts.cells:
        found[cell.phase] += cell.operations
    return dict(sorted(found.items()))


def grouped(counts: Counts, key: Callable[[Counted], str]) -> dict[str, dict[str, int]]:
    """Return counts by phase for each environment, queue or project."""
    found: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for cell in counts.cells:
        if key(cell):
            found[key(cell)][cell.phase] += cell.operations
    return {name: dict(sorted(phases.items())) for name, phases in sorted(found.items())}


def overview(counts: Counts, now: datetime) -> dict[str, Any]:
    """Return everything at a glance."""
    phases = by_phase(counts)
    return {
        "at": now,
        "source": counts.source,
        "total": sum(phases.values()),
        "inFlight": sum(count for phase, count in phases.items() if phase in _ACTIVE),
        "waiting": sum(count for phase, count in phases.items() if phase in WAITING_PHASES),
        "phases": phases,
        "environments": grouped(counts, lambda cell: cell.environment),
        "queues": grouped(counts, lambda cell: cell.queue),
        "projects": grouped(counts, lambda cell: cell.project),
        "oldestWaiting": oldest_by_queue(counts, now),
    }


def oldest_by_queue(counts: Counts, now: datetime) -> dict[str, dict[str, Any]]:
    """Return since when, and for how many seconds, the oldest operation of each queue waits."""
    found: dict[str, datetime] = {}
    for each in counts.oldest:
        found[each.queue] = min(each.at, found.get(each.queue, each.at))
    return {
        queue: {"since": at, "seconds": max(round((now - at).total_seconds(), 3), 0.0)}
        for queue, at in sorted(found.items())
    }


def queue_row(name: str, spec: Mapping[str, Any], phases: Mapping[str, int], oldest: Any) -> dict[str, Any]:
    """Return one queue: what its document says and what is in it."""
    return {
        "queue": name,
        "spec": dict(spec),
        "phases": dict(phases),
        "waiting": sum(count for phase, count in phases.items() if phase in WAITING_PHASES),
        "active": sum(count for phase, count in phases.items() if phase in _ACTIVE),
        "oldestWaiting": oldest,
    }
