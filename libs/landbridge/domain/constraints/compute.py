"""The environment has the processors, memory and scratch space that are asked for."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations
from landbridge.domain.contract import CPU, MEMORY, SCRATCH, format_quantity
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation

NAME: Final = "compute"


class Compute(Rule):
    """Codes: `<resource>-not-stated`, `<resource>-exceeds-capacity`, `capacity-not-proven`.

    Resources are `cpu`, `memory` and `ephemeral-storage`. Scratch space that a contract does not mention is not judged:
    few contracts can state it, and the environment refuses what does not fit.
    """

    name = NAME
    fields = ("cpu", "memory", "scratch", "replicas")
    reads = frozenset({Source.CONTRACT, Source.EVIDENCE})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        cpu, memory = requirements.total_cpu, requirements.total_memory
        return _missing(cpu, memory, requirements.scratch * requirements.replicas, candidate)

    def check_all(self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime) -> list[Violations]:
        """Look closely only where it may not be enough: amounts differ from operation to operation."""
        cpu, memory = requirements.total_cpu, requirements.total_memory
        if requirements.scratch:
            return super().check_all(requirements, candidates, now)
        return [
            OK
            if cpu <= (proven := candidate.proven).get(CPU, 0) and memory <= proven.get(MEMORY, 0)
            else _missing(cpu, memory, 0, candidate)
            for candidate in candidates
        ]


def _missing(cpu: int, memory: int, scratch: int, candidate: Candidate) -> Violations:
    """Return what there is not enough of, of what is asked for at all."""
    claimed, proven = candidate.claimed, candidate.proven
    if cpu <= proven.get(CPU, 0) and memory <= proven.get(MEMORY, 0) and not scratch:
        return OK
    violations: list[Violation] = []
    for resource, amount in ((CPU, cpu), (MEMORY, memory), (SCRATCH, scratch)):
        if not amount:
            continue
        stated, shown = claimed.get(resource), proven.get(resource, 0)
        if (stated is None or not amount <= shown <= stated) and (stated is not None or resource != SCRATCH):
            violations.append(_violation(resource, amount, stated, shown))
    return tuple(violations) if violations else OK


@lru_cache(maxsize=16_384)
def _violation(resource: str, amount: int, claimed: int | None, proven: int) -> Violation:
    """Tell what is missing: the same amounts are too much for many environments."""
    wanted = f"{format_quantity(resource, amount)} {resource}"
    if claimed is None:
        return Violation(NAME, f"{resource}-not-stated", Kind.MISCONFIGURED, wanted, f"no {resource} stated")
    if amount > claimed:
        found = f"{format_quantity(resource, claimed)} claimed"
        return Violation(NAME, f"{resource}-exceeds-capacity", Kind.NEVER, wanted, found)
    found = f"{format_quantity(resource, proven)} proven of {format_quantity(resource, claimed)} claimed"
    return Violation(NAME, "capacity-not-proven", Kind.NOT_NOW, wanted, found)
