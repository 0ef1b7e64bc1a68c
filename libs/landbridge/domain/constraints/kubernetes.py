"""The environment's Kubernetes version and operators are what the operation asks for."""

from datetime import datetime

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.requirements import Requirements
from landbridge.domain.version_range import in_range
from landbridge.domain.violation import Kind, Violation


class Kubernetes(Rule):
    """Codes: `no-kubernetes`, `version-not-in-range`, `operator-not-offered`."""

    name = "kubernetes"
    fields = ("kubernetes", "operators")

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        if not requirements.kubernetes and not requirements.operators:
            return OK
        runtime = candidate.contract.runtime
        violations: list[Violation] = []
        wanted = requirements.kubernetes
        if wanted and not runtime.kubernetes:
            found = f"the {runtime.executor or 'unknown'} executor without a Kubernetes version"
            violations.append(Violation(self.name, "no-kubernetes", Kind.NEVER, f"Kubernetes {wanted}", found))
        elif wanted and not in_range(runtime.kubernetes, wanted):
            found = f"Kubernetes {runtime.kubernetes}"
            violations.append(Violation(self.name, "version-not-in-range", Kind.NEVER, f"Kubernetes {wanted}", found))
        missing = [operator for operator in requirements.operators if operator not in runtime.operators]
        if missing:
            told, found = f"operators {listed(missing)}", f"operators {listed(runtime.operators)}"
            violations.append(Violation(self.name, "operator-not-offered", Kind.NEVER, told, found))
        return tuple(violations)
