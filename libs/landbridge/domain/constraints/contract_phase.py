"""The contract version that is judged takes work: it is active."""

from datetime import datetime
from typing import Final

from landbridge.domain.candidate import ACTIVE, DRAFT, Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation

# These become active by themselves, once verified or promoted.
_COMING: Final = frozenset({DRAFT, "canary"})


class ContractPhase(Rule):
    """Codes: `not-yet-active`, `no-longer-active`."""

    name = "contract"

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        if candidate.phase == ACTIVE:
            return OK
        found = (
            f"version {candidate.contract_version} is {candidate.phase or 'without a phase'}, and no version is active"
        )
        coming = candidate.phase in _COMING
        code, kind = ("not-yet-active", Kind.NOT_NOW) if coming else ("no-longer-active", Kind.NEVER)
        return (Violation(self.name, code, kind, "an active contract version", found),)
