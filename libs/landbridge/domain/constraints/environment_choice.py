"""The operation itself names environments: those it may use, those it must not, those it must leave this round."""

from datetime import datetime

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, listed, nearest
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class EnvironmentChoice(Rule):
    """Codes: `not-allowed`, `forbidden`, `excluded-this-round`, `allowed-environment-unknown`."""

    name = "environment"
    fields = ("allow", "forbid", "excluded")
    reads = frozenset({Source.CONTRACT, Source.CATALOGUE})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        here = candidate.environment
        allow, forbid, excluded = requirements.allow, requirements.forbid, requirements.excluded
        if not (allow or forbid or excluded):
            return OK
        violations: list[Violation] = []
        if allow and here not in allow:
            violations.append(self._not_allowed(allow, candidate))
        if here in forbid:
            violations.append(Violation(self.name, "forbidden", Kind.NEVER, f"none of {listed(forbid)}", here))
        if here in excluded:
            wanted = f"none of {listed(excluded)} in this round"
            violations.append(Violation(self.name, "excluded-this-round", Kind.NEVER, wanted, here))
        return tuple(violations) if violations else OK

    def _not_allowed(self, allow: tuple[str, ...], candidate: Candidate) -> Violation:
        known = candidate.catalogue.known_environments
        unknown = [name for name in allow if name not in known]
        if known and len(unknown) == len(allow):
            near = nearest(unknown[0], known)
            found = "no such environment" + (f"; did you mean {near}?" if near else "")
            return Violation(
                self.name, "allowed-environment-unknown", Kind.MISCONFIGURED, f"one of {listed(allow)}", found
            )
        return Violation(self.name, "not-allowed", Kind.NEVER, f"one of {listed(allow)}", candidate.environment)
