"""The fast path of eligibility: the same answers as `evaluate_eligibility`, remembered for as long as they hold.

Thousands of classes ask a few different questions of most constraints; the answers are kept in columns that classes
share, merged by groups of constraints, and those by class. When an environment changes, only its rows are answered
again, and only in columns that read what changed; when time is over for a row, only that row.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.catalogue import OperatorRule
from landbridge.domain.constraints import GROUPS, Constraint
from landbridge.domain.constraints.operator_rules import NAME as OPERATOR_RULES
from landbridge.domain.constraints.operator_rules import OneRule
from landbridge.domain.eligibility import NO_INPUTS, combine
from landbridge.domain.requirements import RequirementClass, Requirements
from landbridge.domain.verdict import Assessment, EligibilityVerdict, assessment_id, content_address
from landbridge.domain.verdict_columns import NEVER, Board, Column, Group, Merged, Served

MOST_CLASSES: Final = 20_000
MOST_QUESTIONS: Final = 100_000
# What an operation asks of these groups many others ask too: their columns are put together once for all. Of those
# between and after it asks about its amounts.
_SHARED: Final = ((0, 2), (3, 5))
_EVERYTHING: Final = frozenset(Source)


class _Class:
    """One requirement class: its merged column, which classes serve it, and the assessment made of both."""

    __slots__ = ("assessment", "column", "layout", "served", "single", "verdicts")

    def __init__(self, column: Merged, served: Served | None) -> None:
        self.column = column
        self.verdicts: tuple[EligibilityVerdict, ...] = ()
        self.served = served
        self.assessment: Assessment | None = None
        self.layout = -1
        self.single = False  # whether every environment has one contract version, and no classes are told

    def refresh(self, board: Board, now: datetime) -> None:
        """Bring the verdicts up to date."""
        rows = self.column.refresh(board, now)
        if self.served is not None:
            self.served.refresh(board, now)  # nowhere else than in those rows: constraints read all that it reads
        if self.layout != board.layout:
            self.layout = board.layout
            self.single = len(board.environments) == len(board.candidates) and self.served is None
            if self.single:
                self.verdicts = self._single(board)
            else:
                self.verdicts = tuple([self._verdict(board, rows_of) for _, rows_of in board.environments])
        elif rows:
            touched, verdicts = set(rows), list(self.verdicts)
            for number, (_, rows_of) in enumerate(board.environments):
                if not touched.isdisjoint(rows_of):
                    verdicts[number] = self._verdict(board, rows_of)
            self.verdicts = tuple(verdicts)

    def address(self, key: str, board: Board) -> str:
        """Return the content address of the verdicts."""
        if self.single:
            return content_address(key, zip(board.names, board.versions, self.column.violations, strict=True))
        return assessment_id(key, self.verdicts)

    def _single(self, board: Board) -> tuple[EligibilityVerdict, ...]:
        """Return the verdicts where every environment has one contract version."""
        untils = [None if until is NEVER else until for until in self.column.untils]
        return tuple(map(EligibilityVerdict, board.names, board.versions, self.column.violations, untils))

    def _verdict(self, board: Board, rows: tuple[int, ...]) -> EligibilityVerdict:
        violations, untils, candidates = self.column.violations, self.column.untils, board.candidates
        classes = self.served.classes if self.served is not None else None
        made = []
        for row in rows:
            contract, found, until = candidates[row].contract, violations[row], untils[row]
            made.append(
                EligibilityVerdict(
                    contract.environment,
                    contract.version,
                    found,
                    until if until is not NEVER else None,
                    classes[row] if classes is not None and not found else (),
                )
            )
        return made[0] if len(made) == 1 else combine(made)


class EligibilityIndex:
    """Answers `evaluate_eligibility` for a set of environments that changes piece by piece."""

    def __init__(self, groups: Sequence[Sequence[Constraint]] = GROUPS, *, most_classes: int = MOST_CLASSES) -> None:
        self._all = groups
        self._groups = [Group(group) for group in groups]
        self._board = Board()
        self._known: dict[str, tuple[Candidate, ...]] = {}
        self._rows: dict[str, tuple[int, ...]] = {}
        self._classes: dict[str, _Class] = {}
        self._joins: dict[tuple[Merged, ...], Merged] = {}
        self._served: dict[tuple[object, ...], Served] = {}
        self._most_classes = most_classes
        self._rules: dict[str, tuple[OperatorRule, ...]] = {}  # by environment

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
        self._follow_rules(name, newest_first)
        same_versions = [c.contract_version for c in before] == [c.contract_version for c in newest_first]
        if newest_first:
            self._known[name] = newest_first
        else:
            self._known.pop(name, None)
        if before and same_versions:
            for row, candidate in zip(self._rows[name], newest_first, strict=True):
                self._board.replace(row, candidate)
        elif before or newest_first:
            self._board.arrange(self._known)
            self._rows = dict(self._board.environments)

    def assess(
        self, requirement_class: RequirementClass, now: datetime, inputs: Mapping[str, str] = NO_INPUTS
    ) -> Assessment:
        """Return what `evaluate_eligibility` returns; the same object again for as long as nothing in it changed."""
        known = self._classes.get(requirement_class.key)
        if known is None:
            known = self._admit(requirement_class)
        known.refresh(self._board, now)
        verdicts, made = known.verdicts, known.assessment
        if made is None or made.at > now or made.verdicts != verdicts:
            same = made is not None and _told(made.verdicts) == _told(verdicts)
            identity = made.id if made is not None and same else known.address(requirement_class.key, self._board)
            made = Assessment(identity, requirement_class.key, now, verdicts, inputs)
            known.assessment = made
        return made

    def _admit(self, requirement_class: RequirementClass) -> _Class:
        if len(self._classes) >= self._most_classes or self._full():
            self._forget()
        requirements = requirement_class.requirements
        merged = Merged(self._columns(requirements), _EVERYTHING)
        known = self._classes[requirement_class.key] = _Class(merged, self._serving(requirements))
        return known

    def _full(self) -> bool:
        """Tell whether too much is remembered; looked at now and then only, because counting takes its time."""
        return len(self._classes) % 128 == 0 and sum(group.size for group in self._groups) > MOST_QUESTIONS

    def _columns(self, requirements: Requirements) -> list[Column]:
        """Return the columns that a class is put together from, in the order of the groups."""
        found: list[Column] = []
        at = 0
        for first, after in _SHARED:
            for group in self._groups[at:first]:
                found += group.questions(requirements)
            columns = tuple([group.column(requirements) for group in self._groups[first:after]])
            known = self._joins.get(columns)
            if known is None:
                known = self._joins[columns] = Merged(columns, _EVERYTHING)
            found.append(known)
            at = after
        for group in self._groups[at:]:
            found += group.questions(requirements)
        return found

    def _serving(self, requirements: Requirements) -> Served | None:
        """Return the column of the classes that can serve, shared by all that ask for the same accelerators."""
        if requirements.accelerator is None:
            return None
        variants = requirements.image_variants
        asked = (requirements.accelerator, requirements.replicas, variants, requirements.command if variants else False)
        return self._served.setdefault(asked, Served(requirements))

    def _follow_rules(self, name: str, candidates: Sequence[Candidate]) -> None:
        """Keep track of operators' rules: each is a question of its own, and reads no more than it says."""
        rules = tuple(rule for candidate in candidates for rule in candidate.catalogue.rules.values())
        if rules == self._rules.get(name, ()):
            return
        before = {rule for of_one in self._rules.values() for rule in of_one}
        self._rules[name] = rules
        found = {rule for of_one in self._rules.values() for rule in of_one}
        if found != before:
            each = [OneRule(rule) for rule in sorted(found, key=lambda rule: (rule.name, rule.version))]
            self._groups = [Group(_with_rules(group, each)) for group in self._all]
            self._forget()

    def _forget(self) -> None:
        self._classes.clear()
        self._joins.clear()
        for group in self._groups:
            group.forget()
        self._served.clear()


def _with_rules(group: Sequence[Constraint], rules: Sequence[Constraint]) -> list[Constraint]:
    """Put each operators' rule instead of all."""
    return [one for constraint in group for one in (rules if constraint.name == OPERATOR_RULES else (constraint,))]


def _told(verdicts: tuple[EligibilityVerdict, ...]) -> list[tuple[object, ...]]:
    return [(each.environment, each.contract_version, each.violations, each.classes) for each in verdicts]
