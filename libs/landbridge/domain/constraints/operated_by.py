"""The environment is operated by somebody whom the operation trusts with it."""

from datetime import datetime

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class OperatedBy(Rule):
    """Codes: `operator-not-accepted`, `operator-not-stated`."""

    name = "operated-by"
    fields = ("operated_by",)

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        wanted = requirements.operated_by
        if not wanted:
            return OK
        found = candidate.contract.location.operated_by
        told = f"to be operated by {listed(wanted)}"
        if not found:
            return (Violation(self.name, "operator-not-stated", Kind.MISCONFIGURED, told, "no operator stated"),)
        if found in wanted:
            return OK
        return (Violation(self.name, "operator-not-accepted", Kind.NEVER, told, f"operated by {found}"),)
