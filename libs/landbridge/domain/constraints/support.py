"""The environment's support has not ended: nothing new starts where nobody answers for what happens."""

from datetime import datetime

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations, moment
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class Support(Rule):
    """Code: `support-ended`. A contract that states no end is supported; the last day counts, in UTC."""

    name = "support"
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        ended = candidate.contract.support_ends
        if ended is None or now < ended:
            return OK
        found = f"its support ended {moment(ended)}"
        return (Violation(self.name, "support-ended", Kind.MISCONFIGURED, "an environment that is supported", found),)

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:  # noqa: ARG002
        ends = candidate.contract.support_ends
        return ends if ends is not None and now < ends else None
