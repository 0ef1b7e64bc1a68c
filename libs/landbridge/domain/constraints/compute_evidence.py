"""The classes of plain processors and memory, which almost every operation uses, are proven to work.

Apart from the amounts, because those differ from operation to operation and this does not. Accelerators are proven by
the rule for hardware.
"""

from datetime import datetime

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, earliest
from landbridge.domain.constraints.proof import proven_until, unproven
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Violation


class ComputeEvidence(Rule):
    """Codes: those of evidence."""

    name = "compute-evidence"
    fields = ("needs_compute",)
    reads = frozenset({Source.CONTRACT, Source.EVIDENCE})
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        if not requirements.needs_compute:
            return OK
        violations: list[Violation] = []
        for claim in _claims(candidate):
            missing = unproven(self.name, candidate, claim, now)
            if missing is not None:
                violations.append(missing)
        return tuple(violations) if violations else OK

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        if not requirements.needs_compute:
            return None
        return earliest(proven_until(candidate, claim, now) for claim in _claims(candidate))


def _claims(candidate: Candidate) -> list[str]:
    offers = candidate.contract.classes.values()
    return [claims.capability_class(offer.name) for offer in offers if not offer.is_accelerator]
