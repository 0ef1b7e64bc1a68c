"""Folding everything again and comparing it with what is stored: replay equals live state, byte for byte.

`python -m landbridge_lineage.replay` compares in one snapshot, so the service may go on; `--repair` writes what was
found to differ. With `--stream` the OPERATIONS stream is folded instead of the stored facts (LANDBRIDGE_NATS_URL, and
LANDBRIDGE_NATS_CREDS of the `streams` user): also what was published and never stored shows then. The stream must not
be ahead, so nothing may be under way. Exit code 0: equal (or repaired); 1: different.
"""

import argparse
import asyncio
import hashlib
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.bus.errors import BusError
from landbridge.bus.scan import scan
from landbridge.bus.streams import OPERATIONS
from landbridge.store import Database, StoreError, Tx
from landbridge_lineage import facts as reading
from landbridge_lineage import writes
from landbridge_lineage.fold import LIFECYCLE, WAITING, Fact, fold
from landbridge_lineage.state import State, encode
from landbridge_lineage.writes import Cell, Versioned, cell_of

_CHUNK = 5000
_NAMED = 10
_START = ("00000000-0000-0000-0000-000000000000", -1, 0, "")
_FACTS = """
select operation, project, lane, number, ref, event, id, body from fact
where (operation, lane, number, ref) > ($1, $2, $3, $4) order by operation, lane, number, ref limit $5
"""
_STATES = "select id, version, state from operation where id > $1 order by id limit $2"


@dataclass
class Comparison:
    """What a replay found. `differing` are operations whose stored state is not what their facts say."""

    operations: int = 0
    replayed_digest: str = ""
    stored_digest: str = ""
    differing: list[str] = field(default_factory=list)
    counts_differ: bool = False
    source: str = "their facts say"

    @property
    def equal(self) -> bool:
        return self.replayed_digest == self.stored_digest and not self.counts_differ

    def text(self) -> str:
        """Return the finding for people."""
        if self.equal:
            return f"{self.operations} operations: replay equals what is stored ({self.stored_digest[:16]})"
        named = ", ".join(self.differing[:_NAMED])
        lines = [f"{self.operations} operations: {len(self.differing)} differ from what {self.source}: {named}"]
        if self.counts_differ:
            lines.append("counts: differ from what the operations say")
        lines.append("next step: python -m landbridge_lineage.replay --repair")
        return "\n".join(lines)


def fold_all(facts: Iterable[Fact]) -> State | None:
    """Return the state after all facts of one operation."""
    state: State | None = None
    for fact in facts:
        state = fold(state, fact)
    return state


async def compare(db: Database) -> Comparison:
    """Fold every stored fact again, in one snapshot, and compare states and counts byte for byte."""
    found = Comparison()
    replayed, stored = hashlib.sha256(), hashlib.sha256()
    tally: Counter[Cell] = Counter()
    async with db.transaction(isolation="repeatable_read", readonly=True) as tx:
        async for operation, state, live in _side_by_side(tx):
            text = encode(state) if state is not None else b""
            found.operations += 1
            replayed.update(operation.encode() + text)
            stored.update(operation.encode() + live)
            if text != live:
                found.differing.append(operation)
            if state is not None and (cell := cell_of(state)) is not None:
                tally[cell] += 1
        found.counts_differ = dict(tally) != await _counted(tx)
    found.replayed_digest, found.stored_digest = replayed.hexdigest(), stored.hexdigest()
    return found


async def compare_with_stream(db: Database, bus: Bus) -> Comparison:
    """Fold the whole OPERATIONS stream and compare with what is stored, byte for byte. Raises BusError.

    Older operations than the stream's first message would differ: it is for streams that were never cut.
    """
    states: dict[str, State] = {}
    page = reading.Read()
    async for message in scan(bus, OPERATIONS):
        page = reading.read([message], page)
        if len(page.facts) >= _CHUNK:
            _fold_into(states, page.facts)
            page = reading.Read()
    _fold_into(states, page.facts)
    found = Comparison(source="the stream says")
    replayed, stored = hashlib.sha256(), hashlib.sha256()
    async with db.transaction(isolation="repeatable_read", readonly=True) as tx:
        live = {operation: text async for operation, text in _stored(tx)}
        for operation in sorted(states.keys() | live.keys()):
            text = encode(states[operation]) if operation in states else b""
            found.operations += 1
            replayed.update(operation.encode() + text)
            stored.update(operation.encode() + live.get(operation, b""))
            if text != live.get(operation):
                found.differing.append(operation)
        tally = Counter(cell for state in states.values() if (cell := cell_of(state)) is not None)
        found.counts_differ = dict(tally) != await _counted(tx)
    found.replayed_digest, found.stored_digest = replayed.hexdigest(), stored.hexdigest()
    return found


def _fold_into(states: dict[str, State], facts: Iterable[Fact]) -> None:
    for fact in facts:
        if fact.lane in (LIFECYCLE, WAITING):
            states[fact.operation] = fold(states.get(fact.operation), fact)


async def _side_by_side(tx: Tx) -> AsyncIterator[tuple[str, State | None, bytes]]:
    """Yield every operation with its replayed and its stored state; both sides come in order of the ids."""
    states = _stored(tx)
    held = await anext(states, None)
    async for operation, facts in _by_operation(tx):
        while held is not None and held[0] < operation:
            yield held[0], None, held[1]
            held = await anext(states, None)
        live = b""
        if held is not None and held[0] == operation:
            live = held[1]
            held = await anext(states, None)
        state = fold_all(facts) if _is_folded(facts) else None
        if state is not None or live:
            yield operation, state, live
    while held is not None:
        yield held[0], None, held[1]
        held = await anext(states, None)


def _is_folded(facts: Iterable[Fact]) -> bool:
    """Tell whether any of the facts is one that makes a state."""
    return any(fact.lane in (LIFECYCLE, WAITING) for fact in facts)


async def _by_operation(tx: Tx) -> AsyncIterator[tuple[str, list[Fact]]]:
    """Yield operations in order of their ids, each with all its facts."""
    after = _START
    pending: list[Fact] = []
    while True:
        rows = await tx.fetch(_FACTS, *after, _CHUNK)
        pending += [Fact(str(r[0]), r[1], r[2], r[3], r[4], r[5], str(r[6]), r[7]) for r in rows]
        groups = [(key, list(group)) for key, group in groupby(pending, key=lambda fact: fact.operation)]
        last = len(rows) < _CHUNK
        for key, group in groups if last else groups[:-1]:
            yield key, group
        if last:
            return
        pending = groups[-1][1]
        after = (pending[-1].operation, pending[-1].lane, pending[-1].number, pending[-1].ref)


async def _stored(tx: Tx) -> AsyncIterator[tuple[str, bytes]]:
    """Yield stored states in order of their ids."""
    after = _START[0]
    while True:
        rows = await tx.fetch(_STATES, after, _CHUNK)
        for row in rows:
            yield str(row[0]), row[2]
        if len(rows) < _CHUNK:
            return
        after = str(rows[-1][0])


async def _counted(tx: Tx) -> dict[Cell, int]:
    rows = await tx.fetch("select project, queue, environment, phase, operations from tally where operations <> 0")
    return {Cell(row[0], row[1], row[2], row[3]): row[4] for row in rows}


async def repair(db: Database, found: Comparison) -> int:
    """Write the states that differ, each only if nobody wrote it meanwhile, and count anew; return how many."""
    written = 0
    for operation in found.differing:
        async with db.transaction() as tx:
            rows = await tx.fetch(
                """select operation, project, lane, number, ref, event, id, body from fact
                   where operation = $1 order by lane, number""",
                operation,
            )
            facts = [Fact(str(r[0]), r[1], r[2], r[3], r[4], r[5], str(r[6]), r[7]) for r in rows]
            known = await writes.load_versions(tx, [operation])
            state = fold_all(facts)
            if state is None or not _is_folded(facts):
                written += await tx.execute("delete from operation where id = $1", operation)
            else:
                following = Versioned(known.get(operation, 0) + 1, state)
                written += await writes.upsert_operations(tx, {operation: following})
    async with db.transaction() as tx:
        # Whoever folds now has written its operations already and adds its counts once this is committed.
        await tx.execute("lock table tally in share row exclusive mode")
        await tx.execute("delete from tally")
        await tx.execute(
            """insert into tally (project, queue, environment, phase, operations)
               select project, queue, environment, phase, count(*) from operation
               where phase <> '' group by project, queue, environment, phase"""
        )
    return written


async def _compare(db: Database, *, stream: bool) -> Comparison:
    if not stream:
        return await compare(db)
    creds = os.environ.get("LANDBRIDGE_NATS_CREDS")
    url = os.environ.get("LANDBRIDGE_NATS_URL", "nats://127.0.0.1:4222")
    bus = await connect(BusSettings(url=url, creds=Path(creds) if creds else None), name="streams")
    try:
        return await compare_with_stream(db, bus)
    finally:
        await bus.drain()


async def _run(dsn: str, *, mend: bool, stream: bool) -> int:
    db = await Database.open(dsn, "lineage", size=2)
    try:
        found = await _compare(db, stream=stream)
        sys.stdout.write(f"{found.text()}\n")
        if found.equal or not mend:
            return 0 if found.equal else 1
        sys.stdout.write(f"{await repair(db, found)} operations written again\n")
        again = await compare(db)
        sys.stdout.write(f"{again.text()}\n")
        return 0 if again.equal else 1
    except (StoreError, BusError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        await db.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="landbridge_lineage.replay", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dsn", default=os.environ.get("LANDBRIDGE_POSTGRES_DSN", ""), help="the Postgres DSN")
    parser.add_argument("--repair", action="store_true", help="write what differs")
    parser.add_argument("--stream", action="store_true", help="fold the OPERATIONS stream, not the stored facts")
    options = parser.parse_args()
    if not options.dsn:
        parser.error("no DSN: give --dsn or set LANDBRIDGE_POSTGRES_DSN")
    if options.stream and options.repair:
        parser.error("--repair writes what the stored facts say; it cannot be combined with --stream")
    return asyncio.run(_run(options.dsn, mend=options.repair, stream=options.stream))


if __name__ == "__main__":
    sys.exit(main())
