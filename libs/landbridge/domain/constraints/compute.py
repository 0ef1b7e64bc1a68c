"""The environment has the processors, memory and scratch space that are asked for."""

from datetime import datetime

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations
from landbridge.domain.contract import CPU, MEMORY, SCRATCH, format_quantity
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class Compute(Rule):
    """Codes: `<resource>-not-stated`, `<resource>-exceeds-capacity`, `capacity-not-proven`.

    Resources are `cpu`, `memory` and `ephemeral-storage`. Scratch space that a contract does not mention is not judged:
    few contracts can state it, and the environment refuses what does not fit.
    """

    name = "compute"
    fields = ("cpu", "memory", "scratch", "replicas")
    reads = frozenset({Source.CONTRACT, Source.EVIDENCE})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        replicas, proven = requirements.replicas, candidate.proven
        cpu, memory, scratch = requirements.cpu * replicas, requirements.memory * replicas, requirements.scratch
        if cpu <= proven.get(CPU, 0) and memory <= proven.get(MEMORY, 0) and not scratch:
            return OK
        violations: list[Violation] = []
        for resource, amount in ((CPU, cpu), (MEMORY, memory), (SCRATCH, scratch * replicas)):
            if amount:
                self._amount(violations, resource, amount, candidate)
        return tuple(violations) if violations else OK

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
