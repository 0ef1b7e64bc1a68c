"""The fast path of eligibility: the same answers as `evaluate_eligibility`, remembered for as long as they hold.

Three memories, each dropped as soon as something it read changes or its time is over:
- per class: the assessment, until any environment changes;
- per class and environment: the verdict, until that environment changes;
- per constraint, environment and *what the constraint reads of an operation*: the violations. A thousand classes differ
  in a few fields each, so most of what a new class or a changed environment must answer was answered before.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints import CONSTRAINTS, Constraint
from landbridge.domain.eligibility import NO_INPUTS, combine
from landbridge.domain.requirements import RequirementClass, Requirements
from landbridge.domain.verdict import Assessment, EligibilityVerdict, assessment_id
from landbridge.domain.violation import Violation, Violations

MOST_CLASSES = 20_000
MOST_ANSWERS = 100_000


class _Answer(NamedTuple):
    """What one constraint said, from when on and until when it holds by itself."""

    violations: Violations
    since: datetime
    until: datetime | None


class _Judged:
    """One candidate with the answers of all constraints so far, by number of the question."""

    __slots__ = ("answers", "candidate")

    def __init__(self, candidate: Candidate, answers: list[dict[int, _Answer]]) -> None:
        self.candidate = candidate
        self.answers = answers


class _Environment:
    """The candidates of one environment, newest contract version first; `revision` grows with every change."""

    __slots__ = ("judged", "revision")

    def __init__(self, judged: tuple[_Judged, ...], revision: int) -> None:
        self.judged = judged
        self.revision = revision


class _Remembered(NamedTuple):
    verdict: EligibilityVerdict
    revision: int
    since: datetime


class _Class:
    """What is known about one requirement class. `questions` are numbers of what each constraint reads of it."""

    __slots__ = ("assessment", "questions", "revision", "verdicts")

    def __init__(self, questions: tuple[int, ...]) -> None:
        self.questions = questions
        self.verdicts: dict[str, _Remembered] = {}
        self.assessment: Assessment | None = None
        self.revision = -1


class EligibilityIndex:
    """Answers `evaluate_eligibility` for a set of environments that changes piece by piece."""

    def __init__(self, constraints: Sequence[Constraint] = CONSTRAINTS, *, most_classes: int = MOST_CLASSES) -> None:
        self._constraints = tuple(constraints)
        self._environments: dict[str, _Environment] = {}
        self._ordered: tuple[tuple[str, _Environment], ...] = ()
        self._classes: dict[str, _Class] = {}
        self._questions: dict[tuple[int, tuple[object, ...]], int] = {}
        self._most_classes = most_classes
        self.revision = 0

    @property
    def environments(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._ordered)

    def candidates(self, environment: str) -> tuple[Candidate, ...]:
        """Return the candidates of an environment, newest contract version first; none if it is not known."""
        known = self._environments.get(environment)
        return tuple(judged.candidate for judged in known.judged) if known is not None else ()

    def set_environment(self, name: str, candidates: Sequence[Candidate]) -> None:
        """Replace what is known of an environment; no candidates remove it."""
        self.revision += 1
        previous = self._environments.get(name)
        if candidates:
            known = {j.candidate.contract_version: j for j in previous.judged} if previous is not None else {}
            newest_first = sorted(candidates, key=lambda candidate: -candidate.contract_version)
            judged = tuple(self._judged(candidate, known.get(candidate.contract_version)) for candidate in newest_first)
            self._environments[name] = _Environment(judged, self.revision)
        else:
            self._environments.pop(name, None)
        self._ordered = tuple(sorted(self._environments.items()))

    def assess(
        self, requirement_class: RequirementClass, now: datetime, inputs: Mapping[str, str] = NO_INPUTS
    ) -> Assessment:
        """Return what `evaluate_eligibility` returns; the same object again for as long as nothing in it changed."""
        known = self._classes.get(requirement_class.key)
        if known is None:
            known = self._admit(requirement_class)
        made = known.assessment
        if made is not None and known.revision == self.revision and _still(made.at, made.valid_until, now):
            return made
        verdicts = tuple(
            self._verdict(known, requirement_class.requirements, name, environment, now)
            for name, environment in self._ordered
        )
        if len(known.verdicts) > len(self._ordered):
            known.verdicts = {name: known.verdicts[name] for name, _ in self._ordered}
        known.revision = self.revision
        if made is None or made.verdicts != verdicts or made.at > now:
            same = made is not None and _told(made.verdicts) == _told(verdicts)
            identity = made.id if made is not None and same else assessment_id(requirement_class.key, verdicts)
            made = Assessment(identity, requirement_class.key, now, verdicts, inputs)
            known.assessment = made
        return made

    # -- how it remembers ---------------------------------------------------------------------------------------------

    def _judged(self, candidate: Candidate, previous: _Judged | None) -> _Judged:
        """Keep the answers of those constraints that read nothing of what changed."""
        if previous is None:
            return _Judged(candidate, [{} for _ in self._constraints])
        changed = _changed(previous.candidate, candidate)
        answers = [
            {} if changed & constraint.reads or len(known) > MOST_ANSWERS else known
            for constraint, known in zip(self._constraints, previous.answers, strict=True)
        ]
        return _Judged(candidate, answers)

    def _admit(self, requirement_class: RequirementClass) -> _Class:
        if len(self._classes) >= self._most_classes or len(self._questions) > MOST_ANSWERS:
            self._forget()
        requirements = requirement_class.requirements
        questions = []
        for number, constraint in enumerate(self._constraints):
            asked = (number, tuple(getattr(requirements, field) for field in constraint.fields))
            questions.append(self._questions.setdefault(asked, len(self._questions)))
        known = self._classes[requirement_class.key] = _Class(tuple(questions))
        return known

    def _forget(self) -> None:
        """Start afresh: numbers of questions are given again, so all answers go with them."""
        self._classes.clear()
        self._questions.clear()
        for environment in self._environments.values():
            for judged in environment.judged:
                judged.answers = [{} for _ in self._constraints]

    def _verdict(
        self, known: _Class, requirements: Requirements, name: str, environment: _Environment, now: datetime
    ) -> EligibilityVerdict:
        remembered = known.verdicts.get(name)
        if (
            remembered is not None
            and remembered.revision == environment.revision
            and _still(remembered.since, remembered.verdict.valid_until, now)
        ):
            return remembered.verdict
        verdicts = [self._judge(judged, requirements, known.questions, now) for judged in environment.judged]
        verdict = verdicts[0] if len(verdicts) == 1 else combine(verdicts)
        known.verdicts[name] = _Remembered(verdict, environment.revision, now)
        return verdict

    def _judge(
        self, judged: _Judged, requirements: Requirements, questions: tuple[int, ...], now: datetime
    ) -> EligibilityVerdict:
        violations: list[Violation] = []
        until: datetime | None = None
        candidate = judged.candidate
        for constraint, answers, question in zip(self._constraints, judged.answers, questions, strict=True):
            answer = answers.get(question)
            if answer is None or (constraint.timed and not _still(answer.since, answer.until, now)):
                found = constraint.check(requirements, candidate, now)
                holds = constraint.holds_until(requirements, candidate, now) if constraint.timed else None
                answer = answers[question] = _Answer(found, now, holds)
            if answer.violations:
                violations += answer.violations
            if answer.until is not None and (until is None or answer.until < until):
                until = answer.until
        return EligibilityVerdict(candidate.environment, candidate.contract_version, tuple(violations), until)


def _still(since: datetime, until: datetime | None, now: datetime) -> bool:
    """Tell whether what was found at `since` holds at `now`; a clock that was set back voids it."""
    return since <= now and (until is None or now < until)


def _told(verdicts: tuple[EligibilityVerdict, ...]) -> list[tuple[str, int, tuple[Violation, ...]]]:
    return [(verdict.environment, verdict.contract_version, verdict.violations) for verdict in verdicts]


def _changed(before: Candidate, after: Candidate) -> frozenset[Source]:
    """Return the sources that differ between two candidates of the same contract version."""
    pairs = {
        Source.CONTRACT: before.contract is after.contract and before.phase == after.phase,
        Source.EVIDENCE: before.evidence_version == after.evidence_version
        and (before.evidence is after.evidence or before.evidence == after.evidence),
        Source.LINK: before.link == after.link,
        Source.CONTROL: before.control == after.control,
        Source.CATALOGUE: before.catalogue is after.catalogue,
    }
    return frozenset(source for source, same in pairs.items() if not same)
