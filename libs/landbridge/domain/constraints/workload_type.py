"""The environment takes this type of workload."""

from datetime import datetime

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class WorkloadType(Rule):
    """Codes: `type-not-offered`."""

    name = "workload-type"
    fields = ("workload",)

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        offered = candidate.contract.workloads
        if requirements.workload in offered:
            return OK
        wanted, found = f"type {requirements.workload}", f"types {listed(offered)}"
        return (Violation(self.name, "type-not-offered", Kind.NEVER, wanted, found),)
