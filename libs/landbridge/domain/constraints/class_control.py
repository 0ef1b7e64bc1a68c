"""No operator holds new work off the classes that the operation would use."""

from collections.abc import Sequence
from datetime import datetime

from landbridge.domain.candidate import Candidate, Hold, Source
from landbridge.domain.constraints.base import OK, Rule, Violations
from landbridge.domain.constraints.serving import judged, nearest_of, serving_until
from landbridge.domain.contract import CPU, MEMORY, SCRATCH, OfferedClass, format_quantity
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class ClassControl(Rule):
    """Codes: `class-paused`.

    Accelerators are missing only if every class that could serve the request otherwise is paused; processors, memory
    and scratch space only if those of the classes that are not paused are too few.
    """

    name = "class-control"
    fields = ("accelerator", "cpu", "memory", "scratch", "replicas", "image_variants", "command")
    reads = frozenset({Source.CONTRACT, Source.EVIDENCE, Source.LINK, Source.CONTROL, Source.CATALOGUE})
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        if not candidate.held:
            return OK
        compute = self._compute(requirements, candidate)
        if requirements.accelerator is None:
            return compute
        return self._accelerator(requirements, candidate, now) + compute

    def check_all(self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime) -> list[Violations]:
        """Look only where anything is held."""
        return [self.check(requirements, candidate, now) if candidate.held else OK for candidate in candidates]

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        return serving_until(requirements, candidate, now) if candidate.held else None

    def hold_all(
        self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime
    ) -> list[datetime | None]:
        """Look only there as well, and only where any class is in question."""
        if requirements.accelerator is None:
            return [None] * len(candidates)
        return [serving_until(requirements, candidate, now) if candidate.held else None for candidate in candidates]

    def _accelerator(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        need = requirements.accelerator
        if need is None:
            return OK
        found = list(judged(requirements, candidate, now))
        able = [offer for offer, violations in found if not violations]
        if found and not able:  # what stands against all of them is for other rules to say; the pause comes on top
            able = [nearest_of(found).offer]
        held = [(offer, candidate.held[offer.name]) for offer in able if offer.name in candidate.held]
        if not held or len(held) < len(able):
            return OK
        return (self._violation(f"{need.count * requirements.replicas} {held[0][0].name}", held),)

    def _compute(self, requirements: Requirements, candidate: Candidate) -> Violations:
        asked = ((CPU, requirements.cpu), (MEMORY, requirements.memory), (SCRATCH, requirements.scratch))
        replicas, opened, proven = requirements.replicas, candidate.open, candidate.proven
        short: list[str] = []
        paused: dict[str, tuple[OfferedClass, Hold]] = {}
        for resource, each in asked:
            amount = each * replicas
            # What is not there at all is for other rules to say.
            if not opened.get(resource, 0) < amount <= proven.get(resource, 0):
                continue
            short.append(f"{format_quantity(resource, amount)} {resource}")
            for name, hold in candidate.held.items():
                offer = candidate.contract.classes[name]
                if _amount(offer, resource):
                    paused.setdefault(name, (offer, hold))
        return (self._violation(" and ".join(short), list(paused.values())),) if short else OK

    def _violation(self, wanted: str, paused: list[tuple[OfferedClass, Hold]]) -> Violation:
        found = "; ".join(_told(offer, hold) for offer, hold in paused)
        return Violation(self.name, "class-paused", Kind.NOT_NOW, f"{wanted} of classes that take new work", found)


def _amount(offer: OfferedClass, resource: str) -> int | None:
    if resource == CPU:
        return offer.cpu
    if resource == SCRATCH:
        return offer.scratch
    return None if offer.is_accelerator else offer.memory


def _told(offer: OfferedClass, hold: Hold) -> str:
    nodes = f" with nodes {hold.node_selector}" if hold.node_selector else ""
    by = f" by {hold.by}" if hold.by else ""
    return f"class {offer.name} paused{nodes}{by}" + (f": {hold.reason}" if hold.reason else "")
