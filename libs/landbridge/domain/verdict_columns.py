"""Columns of answers: one row for each candidate, answered again only where something changed.

A column at the bottom is what one constraint says to one question, that is to what it reads of an operation. Columns
are merged into others. Each remembers how far it has read the board's log of changes, and when its first answer runs
out.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import Final

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints import Constraint
from landbridge.domain.constraints.base import Rule
from landbridge.domain.constraints.serving import serving, serving_until
from landbridge.domain.requirements import Requirements, field_reader
from landbridge.domain.violation import Violations

_LONGEST_LOG: Final = 10_000
_MOST_TIMES: Final = 1_000
NEVER: Final = datetime.max.replace(tzinfo=UTC)


class Board:
    """The candidates in the order of their rows, and a log of what changed at which row."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.environments: list[tuple[str, tuple[int, ...]]] = []  # with the rows of their contract versions
        self.names: list[str] = []  # of the environment at each row
        self.versions: list[int] = []  # of its contract
        # What columns share in which no rule is broken, and which time leaves as they are.
        self.clear: list[Violations] = []
        self.never: list[datetime] = []
        self.log: list[tuple[int, frozenset[Source]]] = []
        self.layout = 0  # grows when rows are given anew
        self.revision = 0
        # By the identities of columns' times, which it holds on to: classes differ in amounts, hardly ever in times.
        self._earliest: dict[tuple[int, ...], tuple[list[list[datetime]], list[datetime]]] = {}

    def arrange(self, known: Mapping[str, tuple[Candidate, ...]]) -> None:
        """Give every candidate its row."""
        self.candidates, self.environments, self.log = [], [], []
        for name in sorted(known):
            first = len(self.candidates)
            self.candidates += known[name]
            self.environments.append((name, tuple(range(first, len(self.candidates)))))
        self.names = [candidate.contract.environment for candidate in self.candidates]
        self.versions = [candidate.contract.version for candidate in self.candidates]
        self.clear, self.never = [()] * len(self.candidates), [NEVER] * len(self.candidates)
        self._earliest.clear()
        self.layout += 1
        self.revision += 1

    def replace(self, row: int, candidate: Candidate) -> None:
        """Put another candidate of the same contract version in a row."""
        changed = _changed(self.candidates[row], candidate)
        self.candidates[row] = candidate
        if changed:
            self.log.append((row, changed))
            self.revision += 1
        if len(self.log) > _LONGEST_LOG:
            self.log = []
            self.layout += 1

    def earliest(self, untils: list[list[datetime]]) -> list[datetime]:
        """Return the first of several columns' times at each row."""
        key = tuple(map(id, untils))
        known = self._earliest.get(key)
        if known is None:
            if len(self._earliest) >= _MOST_TIMES:
                self._earliest.clear()
            known = self._earliest[key] = untils, list(map(min, *untils))
        return known[1]


class Column:
    """Violations and their times by row; how to answer for one row is for subclasses.

    Columns share these lists, so one that holds an answer is never changed, but replaced.
    """

    __slots__ = ("_layout", "_position", "_reads", "_since", "soonest", "untils", "violations")

    def __init__(self, reads: frozenset[Source]) -> None:
        self.violations: list[Violations] = []
        self.untils: list[datetime] = []
        self.soonest = NEVER
        self._reads = reads
        self._layout = -1
        self._position = 0
        self._since = NEVER

    def refresh(self, board: Board, now: datetime) -> Sequence[int]:
        """Bring every row up to date; return the rows that were answered again."""
        anew = self._layout != board.layout or now < self._since
        if not anew and self._position == len(board.log) and now < self.soonest:
            return ()  # as mostly: of one that many classes share
        rows: Sequence[int] = range(len(board.candidates)) if anew else self._due(board, now)
        self._layout, self._position = board.layout, len(board.log)
        if anew or rows:
            self._prepare(board, now)
            if len(rows) == len(board.candidates):
                self._answer_all(board, now)
            else:
                self._answer_some(board, rows, now)
            self.soonest = NEVER if self.untils is board.never else self._soonest()
            self._since = now
        return rows

    def _due(self, board: Board, now: datetime) -> Sequence[int]:
        due: list[int] = []
        if self._position < len(board.log):
            reads = self._reads
            due = [row for row, changed in board.log[self._position :] if not reads.isdisjoint(changed)]
        if self.soonest <= now:
            due += [row for row, until in enumerate(self.untils) if until <= now]
        return sorted(set(due)) if len(due) > 1 else due

    def _answer_some(self, board: Board, rows: Sequence[int], now: datetime) -> None:
        self.violations, self.untils = list(self.violations), list(self.untils)
        for row in rows:
            self._answer(row, board.candidates[row], now)
        if not any(self.violations):
            self.violations = board.clear
        if self._soonest() is NEVER:
            self.untils = board.never

    def _soonest(self) -> datetime:
        """Return when the first answer runs out."""
        return min(self.untils, default=NEVER)

    def _prepare(self, board: Board, now: datetime) -> None:
        """Get ready to answer."""

    def _answer(self, row: int, candidate: Candidate, now: datetime) -> None:
        raise NotImplementedError

    def _answer_all(self, board: Board, now: datetime) -> None:
        raise NotImplementedError


class Question(Column):
    """What one constraint says to one question. Any requirements with that question will do to ask it."""

    __slots__ = ("_constraint", "_requirements")

    def __init__(self, constraint: Constraint, requirements: Requirements) -> None:
        super().__init__(constraint.reads)
        self._constraint = constraint
        self._requirements = requirements

    def _answer(self, row: int, candidate: Candidate, now: datetime) -> None:
        constraint, requirements = self._constraint, self._requirements
        self.violations[row] = constraint.check(requirements, candidate, now)
        if constraint.timed:
            self.untils[row] = constraint.holds_until(requirements, candidate, now) or NEVER

    def _answer_all(self, board: Board, now: datetime) -> None:
        constraint, asked = self._constraint, self._requirements
        found = constraint.check_all(asked, board.candidates, now)
        self.violations = found if any(found) else board.clear
        holds = constraint.hold_all(asked, board.candidates, now) if constraint.timed else ()
        self.untils = [until or NEVER for until in holds] if any(holds) else board.never

    def _soonest(self) -> datetime:
        return super()._soonest() if self._constraint.timed else NEVER


class Served(Column):
    """Which classes can serve one request for accelerators. What stands against the others is for constraints."""

    __slots__ = ("_requirements", "classes")

    def __init__(self, requirements: Requirements) -> None:
        super().__init__(frozenset(Source))
        self._requirements = requirements
        self.classes: list[tuple[str, ...]] = []

    def _answer_some(self, board: Board, rows: Sequence[int], now: datetime) -> None:
        self.untils = list(self.untils)
        for row in rows:
            self._answer(row, board.candidates[row], now)

    def _answer(self, row: int, candidate: Candidate, now: datetime) -> None:
        self.classes[row] = serving(self._requirements, candidate, now)
        self.untils[row] = serving_until(self._requirements, candidate, now) or NEVER

    def _answer_all(self, board: Board, now: datetime) -> None:
        asked, candidates = self._requirements, board.candidates
        self.classes = [serving(asked, candidate, now) for candidate in candidates]
        self.untils = [serving_until(asked, candidate, now) or NEVER for candidate in candidates]


class Merged(Column):
    """Several columns in one, their violations in order."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Column], reads: frozenset[Source]) -> None:
        super().__init__(reads)
        self._parts = parts

    def _prepare(self, board: Board, now: datetime) -> None:
        for part in self._parts:
            part.refresh(board, now)

    def _soonest(self) -> datetime:
        return min([part.soonest for part in self._parts], default=NEVER)

    def _answer(self, row: int, candidate: Candidate, now: datetime) -> None:  # noqa: ARG002
        found: Violations = ()
        until = NEVER
        for part in self._parts:
            violations = part.violations[row]
            if violations:
                found = found + violations if found else violations
            own = part.untils[row]
            until = min(until, own)
        self.violations[row] = found
        self.untils[row] = until

    def _answer_all(self, board: Board, now: datetime) -> None:  # noqa: ARG002
        """Put together only what says something: most columns are of rules that nobody breaks, or that time leaves."""
        broken = [part.violations for part in self._parts if part.violations is not board.clear]
        self.violations = reduce(_added, broken) if broken else board.clear
        timed = [part.untils for part in self._parts if part.untils is not board.never]
        self.untils = board.earliest(timed) if len(timed) > 1 else timed[0] if timed else board.never


def _added(some: list[Violations], more: list[Violations]) -> list[Violations]:
    return list(map(add, some, more))


class Group:
    """Constraints that ask operations for the same sort of thing, with the columns of all that was asked so far.

    Most operations ask of a group what others asked: then its column is found by all that its constraints may read, at
    once. Else each constraint is looked at for itself, because some of them look at less.
    """

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        self._questions_of = [(constraint, _asking(constraint)) for constraint in constraints]
        self._reads: frozenset[Source] = frozenset().union(*(constraint.reads for constraint in constraints))
        fields = {field for constraint in constraints for field in constraint.fields}
        self._read = field_reader(tuple(sorted(fields)))
        self._asked: dict[object, Merged] = {}
        self._questions: dict[tuple[Constraint, object], Question] = {}
        self._merged: dict[tuple[Column, ...], Merged] = {}

    @property
    def size(self) -> int:
        """Return how many questions it has answers to; what is put together of them is no more than classes."""
        return len(self._questions)

    def column(self, requirements: Requirements) -> Merged:
        """Return the column of such operations, shared by all that ask the same."""
        asked = self._read(requirements)
        known = self._asked.get(asked)
        if known is None:
            known = self._asked[asked] = self._merge(requirements)
        return known

    def questions(self, requirements: Requirements) -> list[Question]:
        """Return the columns of single constraints, for a group of which hardly any two operations ask the same."""
        return [self._question(each, asks, requirements) for each, asks in self._questions_of]

    def forget(self) -> None:
        self._asked.clear()
        self._questions.clear()
        self._merged.clear()

    def _merge(self, requirements: Requirements) -> Merged:
        columns = tuple(self.questions(requirements))
        merged = self._merged.get(columns)
        if merged is None:
            merged = self._merged[columns] = Merged(columns, self._reads)
        return merged

    def _question(
        self, constraint: Constraint, asks: Callable[[Requirements], object], requirements: Requirements
    ) -> Question:
        asked = (constraint, asks(requirements))
        question = self._questions.get(asked)
        if question is None:
            question = self._questions[asked] = Question(constraint, requirements)
        return question


def _asking(constraint: Constraint) -> Callable[[Requirements], object]:
    """Return `asks` of a constraint, without the step in between where it asks for all the fields that it declares."""
    return field_reader(constraint.fields) if getattr(type(constraint), "asks", None) is Rule.asks else constraint.asks


def _changed(before: Candidate, after: Candidate) -> frozenset[Source]:
    """Return the sources that differ between two candidates of the same contract version."""
    same = {
        Source.CONTRACT: before.contract is after.contract and before.phase == after.phase,
        Source.EVIDENCE: before.evidence_version == after.evidence_version
        and (before.evidence is after.evidence or before.evidence == after.evidence),
        Source.LINK: before.link == after.link,
        Source.CONTROL: before.control == after.control,
        Source.CATALOGUE: before.catalogue is after.catalogue,
    }
    return frozenset(source for source, unchanged in same.items() if not unchanged)
