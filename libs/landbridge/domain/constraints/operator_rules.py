"""What operators demand by rules of their own, written in CEL, holds."""

from collections.abc import Iterable
from datetime import datetime

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.catalogue import OperatorRule
from landbridge.domain.constraints.base import OK, Rule, Violations
from landbridge.domain.requirements import Requirements
from landbridge.domain.rules.compiled import compile_expression
from landbridge.domain.rules.facts import OPERATION_FIELDS
from landbridge.domain.rules.words import ExpressionError
from landbridge.domain.violation import Kind, Violation

NAME = "operator-rules"
_SCOPE_FIELDS = (("projects", "project"), ("queues", "queue"), ("types", "workload"))


class OperatorRules(Rule):
    """Codes: `rule:<name>`, `rule-not-now:<name>`, and `rule-error:<name>` where it cannot be evaluated.

    What cannot be evaluated permits nothing. Expressions must be true of the variables `operation` and `environment`.
    """

    name = NAME
    fields = tuple(sorted({field for fields, _ in OPERATION_FIELDS.values() for field in fields}))
    reads = frozenset({Source.CONTRACT, Source.CATALOGUE})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        rules = candidate.catalogue.rules
        if not rules:
            return OK
        found = (self._broken(rule, requirements, candidate) for rule in rules.values())
        return tuple(violation for violation in found if violation is not None)

    def _broken(self, rule: OperatorRule, requirements: Requirements, candidate: Candidate) -> Violation | None:
        choice, here = rule.environments, candidate.environment
        if (choice.allow and here not in choice.allow) or here in choice.forbid:
            return None
        if not rule.scope.covers(requirements.project, requirements.queue, requirements.workload):
            return None
        wanted = f"rule {rule.name}: {rule.message}"
        try:
            holds = compile_expression(rule.expression).evaluate(requirements, candidate)
        except ExpressionError as error:  # accepted by another release
            holds = error.message
        if holds is True:
            return None
        if holds is False:
            code, kind = ("rule", Kind.NEVER) if rule.never else ("rule-not-now", Kind.NOT_NOW)
            return Violation(self.name, f"{code}:{rule.name}", kind, wanted, f"not so for {here}")
        return Violation(
            self.name, f"rule-error:{rule.name}", Kind.MISCONFIGURED, wanted, f"it cannot be evaluated: {holds}"
        )


def fields_read(rules: Iterable[OperatorRule]) -> tuple[str, ...]:
    """Return the fields of requirements that the answers of these rules follow from, in order."""
    found: set[str] = set()
    for rule in rules:
        found.update(field for names, field in _SCOPE_FIELDS if getattr(rule.scope, names))
        try:
            found |= compile_expression(rule.expression).requirements
        except ExpressionError:  # says the same of every operation
            continue
    return tuple(sorted(found))
