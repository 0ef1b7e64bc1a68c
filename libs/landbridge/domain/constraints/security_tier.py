"""The environment is protected as well as the operation, or the class of its data, demands.

Where an environment can be tried (a cluster), the tier counts only while what it forbids was refused there.
"""

from datetime import datetime
from typing import Final

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations
from landbridge.domain.constraints.proof import proven_until, unproven
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation

TIERS: Final = {"open": 1, "standard": 2, "restricted": 3}
# What a class of data demands by itself. Below these, the organisation's baseline is the project's business.
DATA_TIERS: Final = {"confidential": "standard", "restricted": "restricted"}


class SecurityTier(Rule):
    """Codes: `tier-too-low`, `tier-not-stated`, `tier-unknown`, and those of evidence."""

    name = "security-tier"
    fields = ("security_tier", "data_class", "connections")
    reads = frozenset({Source.CONTRACT, Source.CATALOGUE, Source.EVIDENCE})
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        wanted, why = _demand(requirements, candidate)
        if not wanted:
            return OK
        told = f"security tier {wanted} ({why})"
        if wanted not in TIERS:
            return (
                Violation(
                    self.name, "tier-unknown", Kind.MISCONFIGURED, told, f"no such tier; there are {', '.join(TIERS)}"
                ),
            )
        found = candidate.contract.boundaries.security_tier
        if found not in TIERS:
            return (Violation(self.name, "tier-not-stated", Kind.MISCONFIGURED, told, found or "no tier stated"),)
        if TIERS[found] >= TIERS[wanted]:
            missing = unproven(self.name, candidate, claims.SECURITY_TIER, now) if _tried(candidate) else None
            return (missing,) if missing is not None else OK
        return (Violation(self.name, "tier-too-low", Kind.NEVER, told, f"security tier {found}"),)

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        if not _tried(candidate) or not _demand(requirements, candidate)[0]:
            return None
        return proven_until(candidate, claims.SECURITY_TIER, now)


def _tried(candidate: Candidate) -> bool:
    """Whether a probe tries what the tier forbids; where none can, the tier is as stated."""
    runtime, boundaries = candidate.contract.runtime, candidate.contract.boundaries
    return claims.tier_is_tried(runtime.executor, boundaries.security_tier)


def _demand(requirements: Requirements, candidate: Candidate) -> tuple[str, str]:
    """Return the highest tier that anything about the operation demands, and what demands it."""
    wanted, why = requirements.security_tier, "its constraints"
    classes = [(requirements.data_class, "its data class")]
    for need in requirements.connections:
        document = candidate.catalogue.connections.get(need.name)
        offer = candidate.contract.connections.get(need.name)
        stated = [need.data_class, document.data_class if document else "", offer.data_class if offer else ""]
        classes += [(data_class, f"data of connection {need.name}") for data_class in stated]
    for data_class, reason in classes:
        tier = DATA_TIERS.get(data_class, "")
        if TIERS.get(tier, 0) > TIERS.get(wanted, 0):
            wanted, why = tier, reason
    return wanted, why
