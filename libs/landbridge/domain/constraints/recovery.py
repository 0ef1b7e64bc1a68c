"""Interrupted work goes on only where its declared recovery allows it. New work is not concerned."""

from datetime import datetime

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class Recovery(Rule):
    """Codes: `never-recovers`, `not-a-recovery-environment`, `checkpoint-unreachable`."""

    name = "recovery"
    fields = ("failed_over", "recovery_mode", "recovery_environments", "checkpoints")

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        if not requirements.failed_over:
            return OK
        if requirements.recovery_mode == "never":
            return (Violation(self.name, "never-recovers", Kind.NEVER, "no second environment", candidate.environment),)
        violations: list[Violation] = []
        allowed = requirements.recovery_environments
        if allowed and candidate.environment not in allowed:
            wanted = f"one of {listed(allowed)}"
            violations.append(
                Violation(self.name, "not-a-recovery-environment", Kind.NEVER, wanted, candidate.environment)
            )
        checkpoints = requirements.checkpoints
        if requirements.recovery_mode != "restart" and checkpoints:
            offer = candidate.contract.connections.get(checkpoints)
            if offer is None or offer.access == "write-only":
                wanted = f"checkpoints of connection {checkpoints} to resume from"
                found = "no such connection here" if offer is None else f"{offer.access} access"
                violations.append(Violation(self.name, "checkpoint-unreachable", Kind.NEVER, wanted, found))
        return tuple(violations) if violations else OK
