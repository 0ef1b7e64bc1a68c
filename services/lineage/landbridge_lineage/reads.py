"""Every statement that reads lineage's tables for people. A `None` for projects means all of them."""

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from landbridge.schema.wire.event_v1 import Assessment, Decision, OperationRefused
from landbridge.store import Database
from landbridge_lineage.fold import ASSESSED, DECIDED, Fact
from landbridge_lineage.state import State, decode
from landbridge_lineage.writes import Cell

_assessment: Final = msgspec.json.Decoder(Assessment)
_decision: Final = msgspec.json.Decoder(Decision)
_refused: Final = msgspec.json.Decoder(OperationRefused)


class Cursor(NamedTuple):
    """Where a page ended: lists go from the newest to the oldest."""

    at: datetime
    id: str

    def text(self) -> str:
        return base64.urlsafe_b64encode(f"{self.at.isoformat()} {self.id}".encode()).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Read what `text` wrote. Raises ValueError for anything else."""
        try:
            at, _, key = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition(" ")
            return cls(datetime.fromisoformat(at), str(UUID(key)))
        except (binascii.Error, UnicodeDecodeError, ValueError) as error:
            raise ValueError("cursor: expected one from an earlier answer") from error


class Wanted(NamedTuple):
    """What a list of operations is narrowed to; empty parts narrow nothing."""

    projects: Sequence[str] | None = None
    queue: str = ""
    environment: str = ""
    phases: Sequence[str] = ()
    since: datetime | None = None
    before: Cursor | None = None
    limit: int = 50


class Round(NamedTuple):
    """What was found and decided in one round."""

    round: int
    assessment_id: str
    decision_id: str
    environment: str
    served_by: str = ""

    def shown(self) -> dict[str, Any]:
        """Return it as JSON carries it."""
        return {
            "round": self.round,
            "assessmentId": self.assessment_id,
            "decisionId": self.decision_id,
            "environment": self.environment,
            "servedBy": self.served_by,
        }


T = TypeVar("T")


class Page(NamedTuple, Generic[T]):
    """Some items and where the next ones start."""

    items: list[T]
    cursor: str


class _Where:
    """Conditions of a statement and the values of their parameters; only fixed texts are ever put together."""

    def __init__(self, *conditions: str) -> None:
        self.conditions = list(conditions)
        self.values: list[Any] = []

    def add(self, condition: str, *values: object) -> None:
        """Add a condition; each `?` in it stands for the next of the values."""
        for value in values:
            self.values.append(value)
            condition = condition.replace("?", f"${len(self.values)}", 1)
        self.conditions.append(condition)

    def one_of(self, column: str, choice: Sequence[str]) -> None:
        # One value by equality: only then does an index give the order as well.
        if len(choice) == 1:
            self.add(f"{column} = ?", choice[0])
        else:
            self.add(f"{column} = any(?)", list(choice))

    def text(self) -> str:
        return " and ".join(self.conditions)


def _narrowed(wanted: Wanted) -> _Where:
    where = _Where("accepted_at is not null")
    if wanted.projects is not None:
        where.one_of("project", wanted.projects)
    if wanted.queue:
        where.add("queue = ?", wanted.queue)
    if wanted.environment:
        where.add("environment = ? and environment <> ''", wanted.environment)
    if wanted.phases:
        where.one_of("phase", wanted.phases)
        if "completed" not in wanted.phases:
            where.add("phase <> 'completed'")  # what the index of phases holds
    if wanted.since is not None:
        where.add("accepted_at >= ?", wanted.since)
    if wanted.before is not None:
        where.add("(accepted_at, id) < (?, ?::uuid)", wanted.before.at, wanted.before.id)
    return where


async def operations(db: Database, wanted: Wanted) -> Page[State]:
    """Return accepted operations, newest first."""
    where = _narrowed(wanted)
    sql = (
        f"select id, accepted_at, state from operation where {where.text()} "  # noqa: S608 - see _Where
        f"order by accepted_at desc, id desc limit ${len(where.values) + 1}"
    )
    rows = await db.fetch(sql, *where.values, wanted.limit + 1)
    shown = rows[: wanted.limit]
    cursor = Cursor(shown[-1][1], str(shown[-1][0])).text() if len(rows) > wanted.limit else ""
    return Page([decode(row[2]) for row in shown], cursor)


async def operation(db: Database, operation_id: str) -> State | None:
    """Return one accepted operation."""
    text = await db.fetchval("select state from operation where id = $1 and accepted_at is not null", operation_id)
    return decode(text) if text is not None else None


async def projects_of(db: Database, operations: Sequence[str]) -> dict[str, str]:
    """Return the projects of operations that are known."""
    if not operations:
        return {}
    rows = await db.fetch("select id::text, project from operation where id::text = any($1)", list(operations))
    return {row[0]: row[1] for row in rows}


async def facts(db: Database, operation_id: str) -> list[Fact]:
    """Return what happened to one operation, in the order in which it was told."""
    rows = await db.fetch(
        """select operation, project, lane, number, ref, event, id, body from fact
           where operation = $1 order by id, lane, number""",
        operation_id,
    )
    return [Fact(str(r[0]), r[1], r[2], r[3], r[4], r[5], str(r[6]), r[7]) for r in rows]


def rounds(known: Sequence[Fact]) -> list[Round]:
    """Return the rounds of an operation, the latest word of each."""
    found: dict[int, Round] = {}
    for fact in known:
        before = found.get(fact.number, Round(fact.number, "", "", ""))
        if fact.lane == ASSESSED:
            found[fact.number] = before._replace(assessment_id=fact.ref)
        elif fact.lane == DECIDED:
            body = msgspec.json.decode(fact.body)
            environment, served_by = str(body["environment"]), str(body.get("servedBy") or "")
            found[fact.number] = before._replace(decision_id=fact.ref, environment=environment, served_by=served_by)
    return [found[number] for number in sorted(found)]


async def assessment(db: Database, assessment_id: str) -> Assessment | None:
    body = await db.fetchval("select body from assessment where id = $1", assessment_id)
    return _assessment.decode(body) if body is not None else None


async def latest_of_class(db: Database, requirement_class: str) -> Assessment | None:
    """Return the newest verdict of a requirement class."""
    body = await db.fetchval(
        "select a.body from class_verdict v join assessment a on a.id = v.assessment_id where v.requirement_class = $1",
        requirement_class,
    )
    return _assessment.decode(body) if body is not None else None


async def decision(db: Database, decision_id: str) -> Decision | None:
    body = await db.fetchval("select body from decision where id = $1", decision_id)
    return _decision.decode(body) if body is not None else None


async def refusals(
    db: Database, projects: Sequence[str] | None, since: datetime | None, before: Cursor | None, limit: int
) -> Page[tuple[str, str, OperationRefused]]:
    """Return refused submissions, newest first: (id, project, what was said)."""
    rows = await db.fetch(
        """select id, project, at, body from refusal
           where ($1::text[] is null or project = any($1)) and at >= coalesce($2, timestamptz '-infinity')
             and ($3::timestamptz is null or (at, id) < ($3, $4::uuid))
           order by at desc, id desc limit $5""",
        list(projects) if projects is not None else None,
        since,
        before.at if before else None,
        before.id if before else None,
        limit + 1,
    )
    shown = rows[:limit]
    cursor = Cursor(shown[-1][2], str(shown[-1][0])).text() if len(rows) > limit else ""
    return Page([(str(row[0]), row[1], _refused.decode(row[3])) for row in shown], cursor)


async def tally(db: Database) -> dict[Cell, int]:
    """Return how many operations there are of each kind."""
    rows = await db.fetch("select project, queue, environment, phase, operations from tally where operations <> 0")
    return {Cell(row[0], row[1], row[2], row[3]): row[4] for row in rows}


async def oldest_waiting(db: Database) -> dict[tuple[str, str], datetime]:
    """Return since when the oldest waiting operation of each (project, queue) waits."""
    rows = await db.fetch(
        """select t.project, t.queue, min(o.accepted_at) as at
           from (select distinct project, queue, phase from tally
                 where operations > 0 and phase in ('accepted', 'queued', 'retrying')) t
           cross join lateral (
               select accepted_at from operation
               where phase = t.phase and phase <> 'completed' and project = t.project and queue = t.queue
               order by accepted_at limit 1) o
           group by t.project, t.queue"""
    )
    return {(row[0], row[1]): row[2] for row in rows}
