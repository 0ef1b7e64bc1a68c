"""Operation rows: read with their lock, inserted as arrays, updated in groups that take the same new values.

Grouping matters: `update … from unnest` gets slower as the table grows, `… where id = any($1)` does not. A batch of
operations that move alike costs one statement.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec

from landbridge.domain.lifecycle import Phase
from landbridge.domain.ownership.centre_model import Former, OperationState, PlacementState, Timer
from landbridge.domain.ownership.epochs import NEVER_PLACED, Epoch
from landbridge.domain.ownership.gang_model import NO_GANG, Gang
from landbridge.domain.ownership.policy import Disconnection, Retries
from landbridge.store import ContentionError, Tx

ACTIVE = frozenset({PlacementState.OFFERED, PlacementState.CLAIMED, PlacementState.RUNNING, PlacementState.RECOVERING})


class Rest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What seldom changes of an operation's state: one column."""

    generation: int = 1
    former: tuple[Former, ...] = ()
    missing: bool = False
    failures: int = 0
    failed_starts: int = 0
    returns: int = 0
    policy: Disconnection = Disconnection()
    retries: Retries = Retries()
    queue_timeout_ms: int = 86_400_000
    cancel: str = ""
    cancel_forced: bool = False
    control_lost: bool = False
    unplaceable: bool = False
    exclude: tuple[str, ...] = ()
    checkpoint: str = ""
    pinned: str = ""
    overlap: Epoch = NEVER_PLACED
    stopping: str = ""
    queue: str = ""
    priority: str = ""
    start_within_ms: int = 0
    gang: Gang = NO_GANG
    claimed: int = 0
    together: bool = False


class Row:
    """One operation in a transaction: its state as read, its state by now, and what never changes."""

    __slots__ = ("before", "new", "project", "spec_sha256", "state")

    def __init__(self, state: OperationState, spec_sha256: bytes, *, new: bool = False) -> None:
        self.before = state
        self.state = state
        self.project = state.project
        self.spec_sha256 = spec_sha256
        self.new = new


_REST = Rest.__struct_fields__
_COLUMNS = (
    "phase", "op_seq", "round", "epoch_generation", "epoch_counter", "environment", "placement", "active",
    "grant_term", "concluded", "attempts", "timer", "due_at", "queue_due", "decision_id", "contract_version",
    "valid_until",
)  # fmt: skip
_TYPES = ("text", "int", "int", "int", "int", "text", "text", "bool", "bigint", "bool", "int", "text", "bigint",
          "bigint", "text", "int", "bigint")  # fmt: skip
# The columns as attributes of a state; `active` follows from the placement.
_PLAIN = attrgetter(
    "phase", "op_seq", "round", "epoch.generation", "epoch.counter", "environment", "placement", "placement",
    "grant_term", "concluded", "attempts", "timer", "due_at", "queue_due", "decision_id", "contract_version",
    "valid_until",
)  # fmt: skip
_ACTIVE_AT = _COLUMNS.index("active")
_rest_of = attrgetter(*_REST)
_encode_rest = msgspec.msgpack.Encoder().encode
_rest_decoder = msgspec.msgpack.Decoder(Rest)
_PHASES = {phase.value: phase for phase in Phase}
_PLACEMENTS = {state.value: state for state in PlacementState}
_TIMERS = {timer.value: timer for timer in Timer}

_SELECT = f"select id::text, project, spec_sha256, {', '.join(_COLUMNS)}, rest from operation"  # noqa: S608
# With the other members of their gangs: locked in the order of ids with all others, so that nobody waits in a circle.
_BY_ID = f"""
{_SELECT} where id = any(array(
    select unnest($1::uuid[]) union select other.operation from gang_member one
    join gang_member other on other.project = one.project and other.gang = one.gang
    where one.operation = any($1::uuid[])
)) order by id for update
"""  # noqa: S608
_DUE = f"{_SELECT} where id = any($1::uuid[]) and timer <> '' and due_at <= $2 order by id for update"
_OF_ENVIRONMENT = f"{_SELECT} where environment = $1 and active and id > $2::uuid order by id limit $3 for update"
# Rows that begin alike are inserted together: only id and specification differ, and are arrays.
_INSERT = f"""
insert into operation (id, spec_sha256, project, stop_ms, {", ".join(_COLUMNS)}, rest)
select id, sha256, $3, $4, {", ".join(f"${number}::{kind}" for number, kind in enumerate(_TYPES, 5))},
    ${5 + len(_TYPES)}::bytea
from unnest($1::uuid[], $2::bytea[]) as new (id, sha256)
on conflict do nothing
"""  # noqa: S608
MOST_PEEKED = 10_000
_PEEK = f"{_SELECT} where environment = $1 and active order by id limit {MOST_PEEKED}"
_PEEK_ONE = f"{_SELECT} where id = $1::uuid"
_PEEK_MANY = f"{_SELECT} where id = any($1::uuid[])"
FIRST_ID = "00000000-0000-0000-0000-000000000000"


@lru_cache(maxsize=4096)
def _read_rest(body: bytes) -> tuple[Any, ...]:
    """Operations declared alike share these bytes, so decoding them again is rare."""
    rest: tuple[Any, ...] = _rest_of(_rest_decoder.decode(body))
    return rest


def _to_row(record: Any) -> Row:
    (name, project, sha, phase, op_seq, round_, generation, counter, environment, placement, _active, grant_term,
     concluded, attempts, timer, due_at, queue_due, decision_id, contract_version, until, body) = record  # fmt: skip
    (centre, former, missing, failures, failed_starts, returns, policy, retries, queue_timeout_ms, cancel, forced,
     control_lost, unplaceable, exclude, checkpoint, pinned, overlap, stopping, queue, priority,
     start_within_ms, gang, claimed, together) = _read_rest(body)  # fmt: skip
    state = OperationState(
        operation=name, project=project, phase=_PHASES[phase], op_seq=op_seq, generation=centre, round=round_,
        epoch=Epoch(generation, counter), environment=environment, placement=_PLACEMENTS[placement],
        grant_term=grant_term, former=former, concluded=concluded, missing=missing, attempts=attempts,
        failures=failures, failed_starts=failed_starts, returns=returns, policy=policy, retries=retries,
        queue_timeout_ms=queue_timeout_ms, timer=_TIMERS[timer], due_at=due_at, queue_due=queue_due, cancel=cancel,
        cancel_forced=forced, control_lost=control_lost, unplaceable=unplaceable, exclude=exclude,
        decision_id=decision_id, contract_version=contract_version, valid_until=until, checkpoint=checkpoint,
        pinned=pinned, overlap=overlap, stopping=stopping, queue=queue, priority=priority,
        start_within_ms=start_within_ms, gang=gang, claimed=claimed, together=together,
    )  # fmt: skip
    return Row(state, sha)


async def load(tx: Tx, operations: Iterable[str]) -> dict[str, Row]:
    """Read and lock operations, in the order of their ids, so that no two transactions wait for each other."""
    return _rows(await tx.fetch(_BY_ID, list(operations)))


async def load_due(tx: Tx, operations: Iterable[str], now: int) -> dict[str, Row]:
    """Read and lock those operations whose timer has run out."""
    return _rows(await tx.fetch(_DUE, list(operations), now))


async def load_active(tx: Tx, environment: str, *, after: str = FIRST_ID, limit: int = 100_000) -> dict[str, Row]:
    """Read and lock what an environment may know of, in the order of ids, beginning after one."""
    return _rows(await tx.fetch(_OF_ENVIRONMENT, environment, after, limit))


async def peek_active(tx: Tx, environment: str) -> list[OperationState]:
    """Read without a lock what an environment may know of, for showing."""
    records: Sequence[Any] = await tx.fetch(_PEEK, environment)
    return [_to_row(record).state for record in records]


async def peek(tx: Tx, operation: str) -> OperationState | None:
    """Read one operation without a lock, for showing."""
    record: Any = await tx.fetchrow(_PEEK_ONE, operation)
    return None if record is None else _to_row(record).state


async def peek_many(tx: Tx, operations: Iterable[str]) -> list[OperationState]:
    """Read operations without a lock, for comparing."""
    records: Sequence[Any] = await tx.fetch(_PEEK_MANY, list(operations))
    return [_to_row(record).state for record in records]


def _rows(records: Sequence[Any]) -> dict[str, Row]:
    return {record[0]: _to_row(record) for record in records}


async def save(tx: Tx, rows: Iterable[Row]) -> None:
    """Write what has changed. Raises ContentionError if another transaction inserted one of the new rows first."""
    new: list[Row] = []
    groups: dict[tuple[Any, ...], list[str]] = {}
    for row in rows:
        if row.new:
            new.append(row)
        elif row.state is not row.before:
            changes = _changes(row.before, row.state)
            if changes:
                groups.setdefault(changes, []).append(row.state.operation)
    if new:
        await _insert(tx, new)
    for changes, operations in groups.items():
        sql = _update(tuple(column for column, _ in changes))
        await tx.later("operation", sql, operations, *(value for _, value in changes))


def _changes(before: OperationState, after: OperationState) -> tuple[tuple[str, Any], ...]:
    """Return the columns that differ, with their new values: the key by which updates are grouped."""
    old, new = _PLAIN(before), _PLAIN(after)
    changes = [(_COLUMNS[at], new[at]) for at in range(len(_COLUMNS)) if old[at] != new[at] and at != _ACTIVE_AT]
    active = after.placement in ACTIVE
    if active is not (before.placement in ACTIVE):
        changes.append(("active", active))
    if _rest_of(before) != _rest_of(after):
        changes.append(("rest", _encode_rest(Rest(*_rest_of(after)))))
    return tuple(changes)


@lru_cache(maxsize=1024)
def _update(columns: tuple[str, ...]) -> str:
    # Column names are our own, never input.
    settings = ", ".join(f"{column} = ${number}" for number, column in enumerate(columns, 2))
    return f"update operation set {settings} where id = any($1::uuid[])"  # noqa: S608


async def _insert(tx: Tx, rows: Sequence[Row]) -> None:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        state = row.state
        values = list(_PLAIN(state))
        values[_ACTIVE_AT] = state.placement in ACTIVE
        stop_ms = state.policy.stop_ms if state.policy.self_stopping else None
        key = (row.project, stop_ms, *values, _encode_rest(Rest(*_rest_of(state))))
        groups.setdefault(key, []).append(row)
    for key, members in groups.items():
        names = [row.state.operation for row in members]
        inserted = await tx.execute(_INSERT, names, [row.spec_sha256 for row in members], *key)
        if inserted != len(members):
            raise ContentionError("an operation was inserted by another transaction")
