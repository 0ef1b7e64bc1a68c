"""Every statement that writes lineage's tables. Rows are sorted by key, so that replicas lock them in one order."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from landbridge.schema.wire.event_v1 import Assessment, Decision
from landbridge.store import Tx
from landbridge_lineage.facts import ClassVerdict, Refusal
from landbridge_lineage.fold import Fact
from landbridge_lineage.state import State, decode, encode

_FACTS: Final = """
insert into fact (operation, lane, number, ref, project, event, id, body)
select * from unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::uuid[],
                     $8::bytea[])
on conflict do nothing
"""
_OPERATIONS: Final = """
insert into operation as known (id, project, queue, environment, phase, name, accepted_at, version, state)
select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[],
                     $8::bigint[], $9::bytea[])
on conflict (id) do update set project = excluded.project, queue = excluded.queue, environment = excluded.environment,
    phase = excluded.phase, name = excluded.name, accepted_at = excluded.accepted_at, version = excluded.version,
    state = excluded.state
where known.version = excluded.version - 1
"""
_TALLY: Final = """
insert into tally as known (project, queue, environment, phase, operations)
select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
on conflict (project, queue, environment, phase) do update set operations = known.operations + excluded.operations
"""
_ASSESSMENTS: Final = """
insert into assessment (id, requirement_class, at, body)
select * from unnest($1::text[], $2::text[], $3::timestamptz[], $4::bytea[]) on conflict do nothing
"""
_VERDICTS: Final = """
insert into class_verdict as known (requirement_class, assessment_id, project, message_id, at, eligible, condition)
select * from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::timestamptz[], $6::boolean[], $7::text[])
on conflict (requirement_class) do update set assessment_id = excluded.assessment_id, project = excluded.project,
    message_id = excluded.message_id, at = excluded.at, eligible = excluded.eligible, condition = excluded.condition
where known.message_id < excluded.message_id
"""
_DECISIONS: Final = """
insert into decision (id, assessment_id, at, body)
select * from unnest($1::text[], $2::text[], $3::timestamptz[], $4::bytea[]) on conflict do nothing
"""
_REFUSALS: Final = """
insert into refusal (id, project, source, submission, at, body)
select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bytea[])
on conflict do nothing
"""
_STATES: Final = "select id, version, state from operation where id = any($1::uuid[])"


class Versioned(NamedTuple):
    """A state with the version of the row that holds it; version 0 is no row yet."""

    version: int
    state: State


class Cell(NamedTuple):
    """What operations are counted by."""

    project: str
    queue: str
    environment: str
    phase: str


def cell_of(state: State) -> Cell | None:
    """Return where an operation is counted, or None before its acceptance is known."""
    return Cell(state.project, state.queue, state.environment, state.phase) if state.seq else None


async def load_states(tx: Tx, operations: Sequence[str]) -> dict[str, Versioned]:
    """Return the stored states of those operations that have one."""
    rows = await tx.fetch(_STATES, sorted(operations))
    return {str(row[0]): Versioned(row[1], decode(row[2])) for row in rows}


async def load_versions(tx: Tx, operations: Sequence[str]) -> dict[str, int]:
    """Return the versions of stored states, without reading them."""
    rows = await tx.fetch("select id, version from operation where id = any($1::uuid[])", sorted(operations))
    return {str(row[0]): row[1] for row in rows}


async def insert_facts(tx: Tx, facts: Iterable[Fact]) -> None:
    """Keep facts; one that is there already stays as it is."""
    rows = sorted(facts, key=lambda fact: (fact.operation, fact.lane, fact.number, fact.ref))
    if rows:
        await tx.execute(
            _FACTS,
            [fact.operation for fact in rows],
            [fact.lane for fact in rows],
            [fact.number for fact in rows],
            [fact.ref for fact in rows],
            [fact.project for fact in rows],
            [fact.event for fact in rows],
            [fact.id for fact in rows],
            [fact.body for fact in rows],
        )


async def upsert_operations(tx: Tx, changed: Mapping[str, Versioned]) -> int:
    """Write states, each over the version before it; return how many rows still had that version."""
    if not changed:
        return 0
    ids = sorted(changed)
    states = [changed[each].state for each in ids]
    return await tx.execute(
        _OPERATIONS,
        ids,
        [state.project for state in states],
        [state.queue for state in states],
        [state.environment for state in states],
        [state.phase for state in states],
        [state.name for state in states],
        [state.accepted_at for state in states],
        [changed[each].version for each in ids],
        [encode(state) for state in states],
    )


async def add_to_tally(tx: Tx, changes: Mapping[Cell, int]) -> None:
    """Move the counts."""
    rows = [(cell, count) for cell, count in sorted(changes.items()) if count]
    if rows:
        await tx.execute(
            _TALLY,
            [cell.project for cell, _ in rows],
            [cell.queue for cell, _ in rows],
            [cell.environment for cell, _ in rows],
            [cell.phase for cell, _ in rows],
            [count for _, count in rows],
        )


async def insert_assessments(tx: Tx, found: Mapping[str, tuple[Assessment, bytes]]) -> None:
    rows = [found[key] for key in sorted(found)]
    if rows:
        await tx.execute(
            _ASSESSMENTS,
            [each.id for each, _ in rows],
            [each.requirement_class for each, _ in rows],
            [each.at for each, _ in rows],
            [body for _, body in rows],
        )


async def upsert_verdicts(tx: Tx, found: Mapping[str, ClassVerdict]) -> None:
    """Keep the newest verdict of each requirement class."""
    rows = [found[key] for key in sorted(found)]
    if rows:
        await tx.execute(
            _VERDICTS,
            [each.requirement_class for each in rows],
            [each.assessment_id for each in rows],
            [each.project for each in rows],
            [each.id for each in rows],
            [each.at for each in rows],
            [each.eligible for each in rows],
            [each.condition for each in rows],
        )


async def insert_decisions(tx: Tx, found: Mapping[str, tuple[Decision, bytes]]) -> None:
    rows = [found[key] for key in sorted(found)]
    if rows:
        await tx.execute(
            _DECISIONS,
            [each.id for each, _ in rows],
            [each.assessment_id for each, _ in rows],
            [each.at for each, _ in rows],
            [body for _, body in rows],
        )


async def insert_refusals(tx: Tx, found: Iterable[Refusal]) -> None:
    rows = sorted(found, key=lambda each: each.id)
    if rows:
        await tx.execute(
            _REFUSALS,
            [each.id for each in rows],
            [each.project for each in rows],
            [each.source for each in rows],
            [each.submission for each in rows],
            [each.at for each in rows],
            [each.body for each in rows],
        )
