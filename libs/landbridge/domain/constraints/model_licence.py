"""The environment may hold models and data under the licences that the operation's inputs and outputs carry."""

from datetime import datetime

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class ModelLicence(Rule):
    """Codes: `licence-not-allowed`, `licence-not-stated`."""

    name = "model-licence"
    fields = ("connections",)

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        violations: list[Violation] = []
        for need in requirements.connections:
            offer = candidate.contract.connections.get(need.name)
            if not need.licenses or offer is None:  # a missing connection is reported by its own constraint
                continue
            wanted = f"{listed(need.licenses)} on connection {need.name}"
            if offer.licenses is None:
                found = "no licences stated"
                violations.append(Violation(self.name, "licence-not-stated", Kind.MISCONFIGURED, wanted, found))
            elif any(licence not in offer.licenses for licence in need.licenses):
                found = listed(offer.licenses)
                violations.append(Violation(self.name, "licence-not-allowed", Kind.NEVER, wanted, found))
        return tuple(violations) if violations else OK
