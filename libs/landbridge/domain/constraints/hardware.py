"""The environment has enough accelerators of a class that can serve the request, and they are proven to work."""

from datetime import datetime

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, listed, nearest
from landbridge.domain.constraints.serving import NAME, against_all, judged, serving_until
from landbridge.domain.requirements import AcceleratorNeed, Requirements
from landbridge.domain.violation import Kind, Violation


class Hardware(Rule):
    """Class, attributes, amounts and evidence, in this order, of the class that comes nearest; others beside it.

    Codes: `class-unknown`, `class-not-offered`, those of single attributes (`memory-too-small`,
    `precision-not-offered`, …), `count-exceeds-node`, `count-exceeds-capacity`, `capacity-not-proven`, those of
    evidence, `class-not-assignable` and `no-image-variant`.
    """

    name = NAME
    fields = ("accelerator", "replicas", "image_variants", "command")
    reads = frozenset({Source.CONTRACT, Source.EVIDENCE, Source.LINK, Source.CATALOGUE})
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        need = requirements.accelerator
        if need is None:
            return OK
        against = []
        for each in judged(requirements, candidate, now):
            if not each.violations:
                return OK
            against.append(each)
        return against_all(against) if against else (self._missing(need, candidate),)

    def asks(self, requirements: Requirements) -> object:
        """Ask for nothing else where no accelerator is wanted."""
        return super().asks(requirements) if requirements.accelerator is not None else None

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        return serving_until(requirements, candidate, now)

    def _missing(self, need: AcceleratorNeed, candidate: Candidate) -> Violation:
        names = [offer.name for offer in candidate.contract.classes.values() if offer.is_accelerator]
        offered = f"classes {listed(names)}" if names else "no accelerators"
        if need.product and not need.name:
            return Violation(self.name, "product-not-offered", Kind.NEVER, need.told, offered)
        wanted = f"{need.count} of {need.told}"
        if need.by_attributes or need.name in candidate.catalogue.known_classes:
            return Violation(self.name, "class-not-offered", Kind.NEVER, wanted, offered)
        near = nearest(need.name, candidate.catalogue.known_classes)
        found = "no such class anywhere" + (f"; did you mean {near}?" if near else "")
        return Violation(self.name, "class-unknown", Kind.MISCONFIGURED, wanted, found)
