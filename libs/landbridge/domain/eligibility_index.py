"""The fast path of eligibility: the same answers as `evaluate_eligibility`, remembered for as long as they hold.

Answers are kept in columns, one place for each candidate. A column at the bottom is what one constraint says to one
*question*, that is to what it reads of an operation; thousands of classes share a few questions of most constraints.
Columns are merged by groups of constraints, and those by class. When an environment changes, only its places are
answered again, and only in columns that read what changed; when time is over for a place, only that place.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints import GROUPS, Constraint
from landbridge.domain.eligibility import NO_INPUTS, combine
from landbridge.domain.requirements import RequirementClass, Requirements
from landbridge.domain.verdict import Assessment, EligibilityVerdict, assessment_id
from landbridge.domain.violation import Violations

MOST_CLASSES: Final = 20_000
MOST_QUESTIONS: Final = 100_000
_LONGEST_LOG: Final = 10_000
_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_EVERYTHING: Final = frozenset(Source)


class _Board:
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


class _Column:
    """Violations and their times by place; how to answer for one place is for subclasses."""

    __slots__ = ("_layout", "_position", "_reads", "_since", "soonest", "untils", "violations")

    def __init__(self, reads: frozenset[Source]) -> None:
        self.violations: list[Violations] = []
        self.untils: list[datetime] = []
        self.soonest = _NEVER
        self._reads = reads
        self._layout = -1
        self._position = 0
        self._since = _NEVER

    def refresh(self, board: _Board, now: datetime) -> Sequence[int]:
        """Bring every place up to date; return the places that were answered again."""
        if self._layout != board.layout or now < self._since:
            places: Sequence[int] = range(len(board.candidates))
            self.violations = [()] * len(places)
            self.untils = [_NEVER] * len(places)
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
            self.soonest = min(self.untils, default=_NEVER)
            self._since = now
        return places

    def _due(self, board: _Board, now: datetime) -> Sequence[int]:
        due: list[int] = []
        if self._position < len(board.log):
            reads = self._reads
            due = [place for place, changed in board.log[self._position :] if not reads.isdisjoint(changed)]
        if self.soonest <= now:
            due += [place for place, until in enumerate(self.untils) if until <= now]
        return sorted(set(due)) if len(due) > 1 else due

    def _prepare(self, board: _Board, now: datetime) -> None:
        """Get ready to answer."""

    def _answer(self, place: int, candidate: Candidate, now: datetime) -> None:
        raise NotImplementedError

    def _answer_all(self, candidates: Sequence[Candidate], now: datetime) -> None:
        raise NotImplementedError


class _Question(_Column):
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
            self.untils[place] = constraint.holds_until(requirements, candidate, now) or _NEVER

    def _answer_all(self, candidates: Sequence[Candidate], now: datetime) -> None:
        check, holds_until, asked = self._constraint.check, self._constraint.holds_until, self._requirements
        self.violations = [check(asked, candidate, now) for candidate in candidates]
        if self._constraint.timed:
            self.untils = [holds_until(asked, candidate, now) or _NEVER for candidate in candidates]


class _Merged(_Column):
    """Several columns in one, their violations in order."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[_Column], reads: frozenset[Source]) -> None:
        super().__init__(reads)
        self._parts = parts

    def _prepare(self, board: _Board, now: datetime) -> None:
        for part in self._parts:
            part.refresh(board, now)

    def _answer(self, place: int, candidate: Candidate, now: datetime) -> None:  # noqa: ARG002
        found: Violations = ()
        until = _NEVER
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


class _Class:
    """One requirement class: its merged column, and the assessment made of it."""

    __slots__ = ("assessment", "column", "layout", "verdicts")

    def __init__(self, column: _Merged) -> None:
        self.column = column
        self.verdicts: list[EligibilityVerdict] = []
        self.assessment: Assessment | None = None
        self.layout = -1

    def refresh(self, board: _Board, now: datetime) -> None:
        """Bring the verdicts up to date."""
        places = self.column.refresh(board, now)
        if self.layout != board.layout:
            self.layout = board.layout
            if len(board.environments) == len(board.candidates):
                self.verdicts = self._single(board)
            else:
                self.verdicts = [self._verdict(board, places_of) for _, places_of in board.environments]
        elif places:
            touched = set(places)
            for number, (_, places_of) in enumerate(board.environments):
                if not touched.isdisjoint(places_of):
                    self.verdicts[number] = self._verdict(board, places_of)

    def _single(self, board: _Board) -> list[EligibilityVerdict]:
        """Return the verdicts where every environment has one contract version."""
        rows = zip(board.candidates, self.column.violations, self.column.untils, strict=True)
        return [
            EligibilityVerdict(c.contract.environment, c.contract.version, found, None if until is _NEVER else until)
            for c, found, until in rows
        ]

    def _verdict(self, board: _Board, places: tuple[int, ...]) -> EligibilityVerdict:
        violations, untils, candidates = self.column.violations, self.column.untils, board.candidates
        made = []
        for place in places:
            contract, until = candidates[place].contract, untils[place]
            made.append(
                EligibilityVerdict(
                    contract.environment, contract.version, violations[place], until if until is not _NEVER else None
                )
            )
        return made[0] if len(made) == 1 else combine(made)


class EligibilityIndex:
    """Answers `evaluate_eligibility` for a set of environments that changes piece by piece."""

    def __init__(self, groups: Sequence[Sequence[Constraint]] = GROUPS, *, most_classes: int = MOST_CLASSES) -> None:
        self._groups = [
            (group, frozenset().union(*(constraint.reads for constraint in group)) if group else frozenset())
            for group in groups
        ]
        self._board = _Board()
        self._known: dict[str, tuple[Candidate, ...]] = {}
        self._places: dict[str, tuple[int, ...]] = {}
        self._classes: dict[str, _Class] = {}
        self._questions: dict[tuple[object, ...], _Question] = {}
        self._merged: dict[tuple[_Column, ...], _Merged] = {}
        self._most_classes = most_classes

    @property
    def revision(self) -> int:
        return self._board.revision

    @property
    def environments(self) -> tuple[str, ...]:
        return tuple(sorted(self._known))

    def candidates(self, environment: str) -> tuple[Candidate, ...]:
        """Return the candidates of an environment, newest contract version first; none if it is not known."""
        return self._known.get(environment, ())

    def set_environment(self, name: str, candidates: Sequence[Candidate]) -> None:
        """Replace what is known of an environment; no candidates remove it."""
        newest_first = tuple(sorted(candidates, key=lambda candidate: -candidate.contract_version))
        before = self._known.get(name, ())
        same_versions = [c.contract_version for c in before] == [c.contract_version for c in newest_first]
        if newest_first:
            self._known[name] = newest_first
        else:
            self._known.pop(name, None)
        if before and same_versions:
            for place, candidate in zip(self._places[name], newest_first, strict=True):
                self._board.replace(place, candidate)
        elif before or newest_first:
            self._board.arrange(self._known)
            self._places = dict(self._board.environments)

    def assess(
        self, requirement_class: RequirementClass, now: datetime, inputs: Mapping[str, str] = NO_INPUTS
    ) -> Assessment:
        """Return what `evaluate_eligibility` returns; the same object again for as long as nothing in it changed."""
        known = self._classes.get(requirement_class.key)
        if known is None:
            known = self._admit(requirement_class)
        known.refresh(self._board, now)
        verdicts, made = tuple(known.verdicts), known.assessment
        if made is None or made.at > now or made.verdicts != verdicts:
            same = made is not None and _told(made.verdicts) == _told(verdicts)
            identity = made.id if made is not None and same else assessment_id(requirement_class.key, verdicts)
            made = Assessment(identity, requirement_class.key, now, verdicts, inputs)
            known.assessment = made
        return made

    def _admit(self, requirement_class: RequirementClass) -> _Class:
        if len(self._classes) >= self._most_classes or len(self._questions) > MOST_QUESTIONS:
            self._classes.clear()
            self._questions.clear()
            self._merged.clear()
        requirements = requirement_class.requirements
        groups = tuple(self._group(group, reads, requirements) for group, reads in self._groups)
        known = self._classes[requirement_class.key] = _Class(_Merged(groups, _EVERYTHING))
        return known

    def _group(self, group: Sequence[Constraint], reads: frozenset[Source], requirements: Requirements) -> _Merged:
        """Return the column of a group of constraints, shared by all classes that ask the same of it."""
        columns = tuple(self._question(constraint, requirements) for constraint in group)
        merged = self._merged.get(columns)
        if merged is None:
            merged = self._merged[columns] = _Merged(columns, reads)
        return merged

    def _question(self, constraint: Constraint, requirements: Requirements) -> _Question:
        asked = (constraint.name, *[getattr(requirements, field) for field in constraint.fields])
        question = self._questions.get(asked)
        if question is None:
            question = self._questions[asked] = _Question(constraint, requirements)
        return question


def _told(verdicts: tuple[EligibilityVerdict, ...]) -> list[tuple[object, ...]]:
    return [(verdict.environment, verdict.contract_version, verdict.violations) for verdict in verdicts]


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
