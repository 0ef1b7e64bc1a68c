"""The environment has the processors, memory and scratch space that are asked for, and they are proven to work."""

from collections.abc import Iterator
from datetime import datetime

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, earliest
from landbridge.domain.constraints.proof import proven_until, unproven
from landbridge.domain.contract import CPU, MEMORY, SCRATCH, OfferedClass, format_quantity
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class Compute(Rule):
    """Codes: `<resource>-not-stated`, `<resource>-exceeds-capacity`, `capacity-not-proven`, and those of evidence.

    Resources are `cpu`, `memory` and `ephemeral-storage`. Scratch space that a contract does not mention is not judged:
    few contracts can state it, and the environment refuses what does not fit.
    """

    name = "compute"
    fields = ("cpu", "memory", "scratch", "replicas")
    reads = frozenset({Source.CONTRACT, Source.EVIDENCE})
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        cpu, memory, scratch = requirements.cpu, requirements.memory, requirements.scratch
        if not (cpu or memory or scratch):
            return OK
        replicas = requirements.replicas
        violations: list[Violation] = []
        for resource, amount in ((CPU, cpu), (MEMORY, memory), (SCRATCH, scratch)):
            if amount:
                self._amount(violations, resource, amount * replicas, candidate)
        for offer in _hosts(candidate):
            missing = unproven(self.name, candidate, claims.capability_class(offer.name), now)
            if missing is not None:
                violations.append(missing)
        return tuple(violations) if violations else OK

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        if not (requirements.cpu or requirements.memory or requirements.scratch):
            return None
        return earliest(
            proven_until(candidate, claims.capability_class(offer.name), now) for offer in _hosts(candidate)
        )

    def _amount(self, violations: list[Violation], resource: str, amount: int, candidate: Candidate) -> None:
        claimed, proven = candidate.claimed.get(resource), candidate.proven.get(resource, 0)
        if (claimed is not None and amount <= proven <= claimed) or (claimed is None and resource == SCRATCH):
            return
        wanted = f"{format_quantity(resource, amount)} {resource}"
        if claimed is None:
            code = f"{resource}-not-stated"
            violations.append(Violation(self.name, code, Kind.MISCONFIGURED, wanted, f"no {resource} stated"))
        elif amount > claimed:
            found = f"{format_quantity(resource, claimed)} claimed"
            violations.append(Violation(self.name, f"{resource}-exceeds-capacity", Kind.NEVER, wanted, found))
        else:
            found = f"{format_quantity(resource, proven)} proven of {format_quantity(resource, claimed)} claimed"
            violations.append(Violation(self.name, "capacity-not-proven", Kind.NOT_NOW, wanted, found))


def _hosts(candidate: Candidate) -> Iterator[OfferedClass]:
    """Yield the classes of plain processors and memory; an accelerator class is proven by the rule for accelerators."""
    return (offer for offer in candidate.contract.classes.values() if not offer.is_accelerator)
