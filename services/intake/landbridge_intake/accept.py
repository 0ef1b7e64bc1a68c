"""The decision about submissions: new, known already, in conflict, or refused. Made inside one transaction a batch."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from landbridge.bus.envelope import Outbound
from landbridge.bus.subjects import NO_PROJECT
from landbridge.domain.documents.nearest import did_you_mean
from landbridge.domain.errors import Problem
from landbridge.domain.ids import IDEMPOTENCY_KEY_MAX, operation_id
from landbridge.runtime.clock import Clock
from landbridge.store import Tx
from landbridge_intake import gangs, messages, queued, store
from landbridge_intake.catalogue import CatalogueView
from landbridge_intake.prepare import Prepared, Preparer, Ready, Unfit

CREATED: Final = "created"
EXISTING: Final = "existing"
CONFLICT: Final = "conflict"
REFUSED: Final = "refused"
FULL: Final = "full"
_SHARE_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Submission:
    """One document that somebody wants to run.

    `key` makes it one operation however often it comes. `project` is where it was sent to; empty where the document
    alone says. `source` and `submission` are what the sender called itself and this message.
    """

    body: bytes
    key: str
    project: str = ""
    source: str = ""
    submission: str = ""
    by: str = ""
    retry_of: str = ""
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a submission. A conflict names the operation that holds the key."""

    status: str
    operation: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class Decision:
    """The outcomes, in the order of the submissions, and what has to be told."""

    outcomes: list[Outcome] = field(default_factory=list)
    events: list[Outbound] = field(default_factory=list)


@dataclass(slots=True)
class _Batch:
    """Submissions as they are being sorted; `first` is the one that gives a new id its content."""

    prepared: list[Prepared]
    ids: list[str]
    first: dict[str, int]


class Acceptor:
    """Accepts submissions. One per process; holds nothing that the database does not."""

    def __init__(self, clock: Clock, preparer: Preparer) -> None:
        self.preparer = preparer
        self.view = CatalogueView()
        self._clock = clock
        self._contents = store.Contents()

    def forget(self) -> None:
        """Trust nothing held in memory: it is not known whether the last transaction was kept."""
        self.view.forget()
        self._contents.forget()

    async def decide(self, tx: Tx, submissions: Sequence[Submission]) -> Decision:
        """Store what is new and tell of everything. Uniqueness is decided by the table before anything is told."""
        await self.view.refresh(tx)
        at = self._clock.wall()
        batch = await self._sort(submissions)
        limited = await self._hold_to_limits(tx, batch)
        await self._hold_to_gangs(tx, batch)
        rows = [self._row(submissions[i], id_, batch.prepared[i]) for id_, i in batch.first.items()]
        new = await store.insert_operations(tx, rows, at)
        await queued.begin(tx, ((row.id, row.project) for row in rows if row.id in new and row.project in limited))
        members = ((row.id, row.project, _gang(batch.prepared[batch.first[row.id]])) for row in rows if row.id in new)
        await gangs.keep(tx, (member for member in members if member[2].name))
        await self._contents.keep(tx, self._bodies(submissions, batch, new))
        # Only what is taken by others, or would be refused although it may have been accepted before, is looked up.
        asked = {id_ for id_ in batch.ids if id_ and id_ not in new}
        held = await store.held_operations(tx, asked)
        return self._tell(submissions, batch, new, held, at)

    async def _sort(self, submissions: Sequence[Submission]) -> _Batch:
        catalogue, revision = self.view.catalogue, self.view.revision
        batch = _Batch([], [], {})
        began = time.perf_counter()
        for index, submission in enumerate(submissions):
            if time.perf_counter() - began > _SHARE_S:
                await asyncio.sleep(0)  # a batch of new shapes takes a second or two: let others be answered meanwhile
                began = time.perf_counter()
            prepared = self.preparer.prepare(submission.body, catalogue, revision)
            told = _misplaced(submission, prepared)
            if told is not None:
                prepared = Unfit((told,))
            batch.prepared.append(prepared)
            known = bool(prepared.written_sha256)
            id_ = operation_id(prepared.project, submission.key) if known else ""
            batch.ids.append(id_)
            if isinstance(prepared, Ready):
                batch.first.setdefault(id_, index)
        return batch

    async def _hold_to_limits(self, tx: Tx, batch: _Batch) -> set[str]:
        """Turn down what is new and one too many for its project; return the projects that limit what waits.

        What was accepted before is still answered as known.
        """
        projects = {id_: batch.prepared[index].project for id_, index in batch.first.items()}
        limits = {name: limit for name in set(projects.values()) if (limit := self.view.queued(name)) is not None}
        if not limits:
            return set()
        free = await queued.room(tx, limits)
        wanted = [id_ for id_, project in projects.items() if project in limits]
        known = await store.held_operations(tx, wanted)
        for id_ in wanted:
            project = projects[id_]
            if id_ in known:
                continue
            if free[project]:
                free[project] -= 1
                continue
            del batch.first[id_]
            self._turn_down(batch, id_, queued.full(project, limits[project]))
        return set(limits)

    async def _hold_to_gangs(self, tx: Tx, batch: _Batch) -> None:
        """Turn down what is new and declares its gang otherwise, or is one too many in it."""
        wanted = {id_: _gang(batch.prepared[index]) for id_, index in batch.first.items()}
        wanted = {id_: gang for id_, gang in wanted.items() if gang.name}
        if not wanted:
            return
        keys = {id_: (batch.prepared[batch.first[id_]].project, gang.name) for id_, gang in wanted.items()}
        known = await gangs.lock(tx, set(keys.values()))
        accepted = await store.held_operations(tx, wanted)
        for id_, gang in wanted.items():
            if id_ in accepted:
                continue
            found = known.setdefault(keys[id_], gangs.Known(gang, id_, 0))
            problems = found.problems(gang)
            if problems:
                del batch.first[id_]
                self._turn_down(batch, id_, *problems)
            else:
                found.members += 1

    @staticmethod
    def _turn_down(batch: _Batch, id_: str, *problems: Problem) -> None:
        for index, prepared in enumerate(batch.prepared):
            if batch.ids[index] == id_ and isinstance(prepared, Ready):
                digests = prepared.written_sha256, prepared.document_sha256
                batch.prepared[index] = Unfit(problems, prepared.project, *digests)

    @staticmethod
    def _row(submission: Submission, id_: str, prepared: Prepared) -> store.NewOperation:
        assert isinstance(prepared, Ready)
        return store.NewOperation(
            id_,
            prepared.project,
            submission.key,
            prepared.name,
            prepared.queue,
            prepared.written_sha256,
            prepared.document_sha256,
            prepared.effective_sha256,
            submission.source,
            submission.by,
            submission.retry_of or None,
        )

    @staticmethod
    def _bodies(submissions: Sequence[Submission], batch: _Batch, new: set[str]) -> dict[bytes, bytes]:
        bodies: dict[bytes, bytes] = {}
        for id_, index in batch.first.items():
            prepared = batch.prepared[index]
            if id_ in new and isinstance(prepared, Ready):
                bodies[prepared.written_sha256] = submissions[index].body
                bodies[prepared.effective_sha256] = prepared.effective
        return bodies

    def _tell(
        self, submissions: Sequence[Submission], batch: _Batch, new: set[str], held: dict[str, store.Held], at: datetime
    ) -> Decision:
        decision = Decision()
        for index, (submission, prepared, id_) in enumerate(zip(submissions, batch.prepared, batch.ids, strict=True)):
            if isinstance(prepared, Ready) and id_ in new and batch.first[id_] == index:
                decision.events.append(
                    messages.accepted(
                        id_,
                        prepared,
                        key=submission.key,
                        by=submission.by,
                        at=at,
                        retry_of=submission.retry_of,
                        traceparent=submission.traceparent,
                    )
                )
                decision.outcomes.append(Outcome(CREATED, id_))
                continue
            earlier = held.get(id_) or self._earlier_in_batch(batch, new, id_)
            outcome = self._judge(prepared, id_, earlier)
            decision.outcomes.append(outcome)
            if outcome.status in (REFUSED, CONFLICT, FULL):
                decision.events.append(self._refusal(submission, prepared, outcome, at))
        return decision

    @staticmethod
    def _earlier_in_batch(batch: _Batch, new: set[str], id_: str) -> store.Held | None:
        first = batch.prepared[batch.first[id_]] if id_ in new else None
        return store.Held(first.written_sha256, first.document_sha256) if first is not None else None

    @staticmethod
    def _judge(prepared: Prepared, id_: str, earlier: store.Held | None) -> Outcome:
        if earlier is not None:
            if earlier.is_same(prepared.written_sha256, prepared.document_sha256):
                return Outcome(EXISTING, id_)
            message = f"this idempotency key already names operation {id_}, which was submitted with other content"
            hint = "use a new key for new work, or send the first document again"
            return Outcome(CONFLICT, id_, (Problem("", "key-conflict", message, hint),))
        assert isinstance(prepared, Unfit), "what is ready was either inserted or is held"
        full = any(problem.code == queued.CODE for problem in prepared.problems)
        return Outcome(FULL if full else REFUSED, "", prepared.problems)

    def _refusal(self, submission: Submission, prepared: Prepared, outcome: Outcome, at: datetime) -> Outbound:
        named = submission.project or prepared.project
        project = named if submission.project or named in self.view.catalogue.projects else NO_PROJECT
        return messages.refused(
            project, submission.source, submission.submission, outcome.problems, at, conflicts_with=outcome.operation
        )


def _gang(prepared: Prepared) -> gangs.Gang:
    return prepared.gang if isinstance(prepared, Ready) else gangs.NO_GANG


def _misplaced(submission: Submission, prepared: Prepared) -> Problem | None:
    """Refuse a document that was sent to another project than it names, and keys that cannot be kept."""
    if not 0 < len(submission.key) <= IDEMPOTENCY_KEY_MAX or not submission.key.isprintable():
        message = f"expected an idempotency key of 1 to {IDEMPOTENCY_KEY_MAX} printable characters"
        return Problem("", "bad-key", f"{message}, found {len(submission.key)}", "send another one, such as a UUID")
    if submission.project and prepared.project and submission.project != prepared.project:
        message = f"this was sent to the project {submission.project}"
        hint = (
            did_you_mean(prepared.project, [submission.project]) or f"write {submission.project}, or send it elsewhere"
        )
        return Problem("metadata.project", "wrong-project", message, hint)
    return None
