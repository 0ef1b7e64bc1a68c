"""The environment is protected as well as the operation, or the class of its data, demands."""

from datetime import datetime
from typing import Final

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation

TIERS: Final = {"open": 1, "standard": 2, "restricted": 3}
# What a class of data demands by itself. Below these, the organisation's baseline is the project's business.
DATA_TIERS: Final = {"confidential": "standard", "restricted": "restricted"}


class SecurityTier(Rule):
    """Codes: `tier-too-low`, `tier-not-stated`, `tier-unknown`."""

    name = "security-tier"
    fields = ("security_tier", "data_class", "connections")
    reads = frozenset({Source.CONTRACT, Source.CATALOGUE})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
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
            return OK
        return (Violation(self.name, "tier-too-low", Kind.NEVER, told, f"security tier {found}"),)


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
