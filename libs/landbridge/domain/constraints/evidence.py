"""What the environment as a whole claims is proven: that it runs work at all, and that no boundary was found broken.

Constraints that rely on one class, connection, role or control ask for its evidence themselves. This one covers what
every operation relies on.
"""

from datetime import datetime

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, earliest
from landbridge.domain.constraints.proof import proven_until, unproven
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Violation


class Evidence(Rule):
    """Codes: those of evidence, for `runtime` and for every boundary or clock that is probed."""

    name = "evidence"
    reads = frozenset({Source.CONTRACT, Source.EVIDENCE})
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        violations: list[Violation] = []
        for claim in candidate.general_claims:
            missing = unproven(self.name, candidate, claim, now)
            if missing is not None:
                violations.append(missing)
        return tuple(violations) if violations else OK

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:  # noqa: ARG002
        return earliest(proven_until(candidate, claim, now) for claim in candidate.general_claims)
