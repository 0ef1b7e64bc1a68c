"""What operators demand by rules of their own, written in CEL, holds."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import add
from typing import Final

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.catalogue import ANYWHERE, Catalogue, OperatorRule
from landbridge.domain.constraints.base import OK, Rule, Violations
from landbridge.domain.requirements import Requirements
from landbridge.domain.rules.compiled import Compiled, compile_expression
from landbridge.domain.rules.facts import OPERATION_FIELDS
from landbridge.domain.rules.words import ExpressionError
from landbridge.domain.violation import Kind, Violation

NAME: Final = "operator-rules"
_READS: Final = frozenset({Source.CONTRACT, Source.CATALOGUE})
_SCOPE_FIELDS: Final = (("projects", "project"), ("queues", "queue"), ("types", "workload"))


class OperatorRules(Rule):
    """Codes: `rule:<name>`, `rule-not-now:<name>`, and `rule-error:<name>` where it cannot be evaluated.

    What cannot be evaluated permits nothing. Expressions must be true of the variables `operation` and `environment`.
    """

    name = NAME
    fields = tuple(sorted({field for fields, _ in OPERATION_FIELDS.values() for field in fields}))
    reads = _READS

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        rules = candidate.catalogue.rules
        if not rules:
            return OK
        found = [OneRule(rules[name]).check(requirements, candidate, now) for name in sorted(rules)]
        return sum(found, OK)

    def check_all(self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime) -> list[Violations]:
        """Ask rule by rule, in the same order."""
        found: list[Violations] = [OK] * len(candidates)
        for rule in rules_of(candidates):
            found = list(map(add, found, OneRule(rule).check_all(requirements, candidates, now)))
        return found


class OneRule:
    """One of them, wherever a catalogue has it. It reads no more of an operation than its scope and its expression."""

    name = NAME
    reads = _READS
    timed = False

    def __init__(self, rule: OperatorRule) -> None:
        self.rule = rule

    @property
    def fields(self) -> tuple[str, ...]:
        compiled = _compiled(self.rule)
        found = {field for names, field in _SCOPE_FIELDS if getattr(self.rule.scope, names)}
        return tuple(sorted(found | (compiled.requirements if compiled is not None else frozenset())))

    def asks(self, requirements: Requirements) -> object:
        """Return what it reads of an operation; None: the operation is not in its scope."""
        if not self._covers(requirements):
            return None
        compiled = _compiled(self.rule)
        return (compiled.asks(requirements),) if compiled is not None else ()

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        if not self._covers(requirements) or not self._known(candidate.catalogue) or not self._applies(candidate):
            return OK
        compiled = _compiled(self.rule)
        return self._violations(candidate, compiled.evaluate(requirements, candidate) if compiled is not None else None)

    def check_all(self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime) -> list[Violations]:  # noqa: ARG002
        """Ask once where the answer is the same everywhere."""
        if not self._covers(requirements):
            return [OK] * len(candidates)
        compiled = _compiled(self.rule)
        alike = None
        if compiled is not None and not compiled.reads_environment:
            alike = compiled.evaluate(requirements, candidates[0]) if candidates else True
            if alike is True:
                return [OK] * len(candidates)
        here = self._concerned(candidates)
        answers: Sequence[bool | str | None] = [alike] * len(candidates)
        if compiled is not None and alike is None:
            answers = compiled.evaluate_all(requirements, candidates, here)
        return [
            OK if found is True or not applies else self._violations(candidate, found)
            for candidate, applies, found in zip(candidates, here, answers, strict=True)
        ]

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:  # noqa: ARG002
        return None

    def hold_all(
        self,
        requirements: Requirements,  # noqa: ARG002
        candidates: Sequence[Candidate],
        now: datetime,  # noqa: ARG002
    ) -> list[datetime | None]:
        return [None] * len(candidates)

    def _covers(self, requirements: Requirements) -> bool:
        return self.rule.scope.covers(requirements.project, requirements.queue, requirements.workload)

    def _concerned(self, candidates: Sequence[Candidate]) -> list[bool]:
        """Tell of each candidate whether the rule is for it; nearly all have the same catalogue."""
        catalogue: Catalogue | None = None
        known, everywhere = False, self.rule.environments == ANYWHERE
        found = []
        for candidate in candidates:
            if candidate.catalogue is not catalogue:
                catalogue = candidate.catalogue
                known = self._known(catalogue)
            found.append(known and (everywhere or self._applies(candidate)))
        return found

    def _known(self, catalogue: Catalogue) -> bool:
        found = catalogue.rules.get(self.rule.name)
        return found is self.rule or found == self.rule

    def _applies(self, candidate: Candidate) -> bool:
        choice, here = self.rule.environments, candidate.contract.environment
        return (not choice.allow or here in choice.allow) and here not in choice.forbid

    def _violations(self, candidate: Candidate, holds: bool | str | None) -> Violations:
        """Return what an answer means; None: the expression is none."""
        rule = self.rule
        wanted = f"rule {rule.name}: {rule.message}"
        if holds is True:
            return OK
        if holds is False:
            code, kind = ("rule", Kind.NEVER) if rule.never else ("rule-not-now", Kind.NOT_NOW)
            return (Violation(NAME, f"{code}:{rule.name}", kind, wanted, f"not so for {candidate.environment}"),)
        told = f"it cannot be evaluated: {_error(rule) if holds is None else holds}"
        return (Violation(NAME, f"rule-error:{rule.name}", Kind.MISCONFIGURED, wanted, told),)


def rules_of(candidates: Iterable[Candidate]) -> list[OperatorRule]:
    """Return the rules of all catalogues, each once, in the order in which they are told."""
    catalogues = {id(candidate.catalogue): candidate.catalogue for candidate in candidates}
    found = {rule for catalogue in catalogues.values() for rule in catalogue.rules.values()}
    return sorted(found, key=lambda rule: (rule.name, rule.version))


def _compiled(rule: OperatorRule) -> Compiled | None:
    """Return the expression of a rule; None for one that another release accepted and this one does not."""
    try:
        return compile_expression(rule.expression)
    except ExpressionError:
        return None


def _error(rule: OperatorRule) -> str:
    try:
        compile_expression(rule.expression)
    except ExpressionError as error:
        return error.message
    return ""
