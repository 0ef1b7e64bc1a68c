"""Columns of answers: one place for each candidate, answered again only where something changed.

A column at the bottom is what one constraint says to one question, that is to what it reads of an operation. Columns
are merged into others. Each remembers how far it has read the board's log of changes, and when its first answer runs
out.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints import Constraint
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Violations

_LONGEST_LOG: Final = 10_000
NEVER: Final = datetime.max.replace(tzinfo=UTC)


class Board:
    """The candidates in the order of their places, and a log of what changed at which place."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.environments: list[tuple[str, tuple[int, ...]]] = []  # with the places of their contract versions
        self.log: list[tuple[int, frozenset[Source]]] = []
        self.layout = 0  # grows when places are given anew
        self.revision = 0

    def arrange(self, known: Mapping[str, tuple[Candidate, ...]]) -> None:
        """Give every candidate its place."""
        self.candidates, self.environments, self.log = [], [], []
        for name in sorted(known):
            first = len(self.candidates)
            self.candidates += known[name]
            self.environments.append((name, tuple(range(first, len(self.candidates)))))
        self.layout += 1
        self.revision += 1

    def replace(self, place: int, candidate: Candidate) -> None:
        """Put another candidate of the same contract version in a place."""
        changed = _changed(self.candidates[place], candidate)
        self.candidates[place] = candidate
        if changed:
            self.log.append((place, changed))
            self.revision += 1
        if len(self.log) > _LONGEST_LOG:
            self.log = []
            self.layout += 1


class Column:
    """Violations and their times by place; how to answer for one place is for subclasses."""

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
        """Bring every place up to date; return the places that were answered again."""
        if self._layout != board.layout or now < self._since:
            places: Sequence[int] = range(len(board.candidates))
            self.violations = [()] * len(places)
            self.untils = [NEVER] * len(places)
            self._layout = board.layout
        else:
            places = self._due(board, now)
        self._position = len(board.log)
        if places:
            self._prepare(board, now)
            if len(places) == len(board.candidates):
                self._answer_all(board.candidates, now)
            else:
                for place in places:
                    self._answer(place, board.candidates[place], now)
            self.soonest = min(self.untils, default=NEVER)
            self._since = now
        return places

    def _due(self, board: Board, now: datetime) -> Sequence[int]:
        due: list[int] = []
        if self._position < len(board.log):
            reads = self._reads
            due = [place for place, changed in board.log[self._position :] if not reads.isdisjoint(changed)]
        if self.soonest <= now:
            due += [place for place, until in enumerate(self.untils) if until <= now]
        return sorted(set(due)) if len(due) > 1 else due

    def _prepare(self, board: Board, now: datetime) -> None:
        """Get ready to answer."""

    def _answer(self, place: int, candidate: Candidate, now: datetime) -> None:
        raise NotImplementedError

    def _answer_all(self, candidates: Sequence[Candidate], now: datetime) -> None:
        raise NotImplementedError


class Question(Column):
    """What one constraint says to one question. Any requirements with that question will do to ask it."""

    __slots__ = ("_constraint", "_requirements")

    def __init__(self, constraint: Constraint, requirements: Requirements) -> None:
        super().__init__(constraint.reads)
        self._constraint = constraint
        self._requirements = requirements

    def _answer(self, place: int, candidate: Candidate, now: datetime) -> None:
        constraint, requirements = self._constraint, self._requirements
        self.violations[place] = constraint.check(requirements, candidate, now)
        if constraint.timed:
            self.untils[place] = constraint.holds_until(requirements, candidate, now) or NEVER

    def _answer_all(self, candidates: Sequence[Candidate], now: datetime) -> None:
        check, holds_until, asked = self._constraint.check, self._constraint.holds_until, self._requirements
        self.violations = [check(asked, candidate, now) for candidate in candidates]
        if self._constraint.timed:
            self.untils = [holds_until(asked, candidate, now) or NEVER for candidate in candidates]


class Merged(Column):
    """Several columns in one, their violations in order."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Column], reads: frozenset[Source]) -> None:
        super().__init__(reads)
        self._parts = parts

    def _prepare(self, board: Board, now: datetime) -> None:
        for part in self._parts:
            part.refresh(board, now)

    def _answer(self, place: int, candidate: Candidate, now: datetime) -> None:  # noqa: ARG002
        found: Violations = ()
        until = NEVER
        for part in self._parts:
            violations = part.violations[place]
            if violations:
                found = found + violations if found else violations
            own = part.untils[place]
            until = min(until, own)
        self.violations[place] = found
        self.untils[place] = until

    def _answer_all(self, candidates: Sequence[Candidate], now: datetime) -> None:  # noqa: ARG002
        parts = self._parts
        if len(parts) > 1:
            self.violations = [sum(found, ()) for found in zip(*[part.violations for part in parts], strict=True)]
            self.untils = [min(untils) for untils in zip(*[part.untils for part in parts], strict=True)]
        elif parts:
            self.violations, self.untils = list(parts[0].violations), list(parts[0].untils)


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
