"""The operator that the environment runs gangs of a framework by is there, or what stands in for it is stated."""

from datetime import datetime
from typing import Final

from landbridge.domain.candidate import Candidate, LinkState, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.features import RANKS, operator_feature
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation

KUBERNETES: Final = "kubernetes"


class GangOperator(Rule):
    """Codes: `framework-not-offered`, `operator-absent`. Only clusters run gangs by operators."""

    name = "gang-operator"
    fields = ("framework",)
    reads = frozenset({Source.CONTRACT, Source.LINK})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        runtime, framework = candidate.contract.runtime, requirements.framework
        if not framework or runtime.executor != KUBERNETES:
            return OK
        via = runtime.via.get(framework)
        if via is None:
            if framework == RANKS:
                return OK
            wanted, found = f"gangs of framework {framework}", f"frameworks {listed({*runtime.via, RANKS})}"
            return (Violation(self.name, "framework-not-offered", Kind.NEVER, wanted, found),)
        if via.fallback or (via.operator in runtime.operators and self._found(via.operator, candidate)):
            return OK
        wanted = f"operator {via.operator} for gangs of framework {framework}, as runtime.via says"
        found = f"operators {listed(runtime.operators)}"
        if via.operator in runtime.operators:
            found += ", and a dispatcher that did not find it"
        return (Violation(self.name, "operator-absent", Kind.MISCONFIGURED, wanted, found),)

    @staticmethod
    def _found(operator: str, candidate: Candidate) -> bool:
        """Tell whether the dispatcher may use it; where nothing is known of one, the link itself says so."""
        link = candidate.link
        known = bool(link.features) or link.state is LinkState.CONNECTED
        return not known or operator_feature(operator) in link.features
