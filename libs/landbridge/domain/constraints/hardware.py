"""The environment has enough accelerators of the class that is asked for, and they are proven to work."""

from datetime import datetime

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, listed, nearest
from landbridge.domain.constraints.proof import proven_until, unproven
from landbridge.domain.contract import OfferedClass
from landbridge.domain.hardware import match_accelerator
from landbridge.domain.requirements import AcceleratorNeed, Requirements
from landbridge.domain.violation import Kind, Violation


class Hardware(Rule):
    """Class, attributes, amounts and evidence, in this order.

    Codes: `class-unknown`, `class-not-offered`, those of single attributes (`memory-too-small`,
    `precision-not-offered`, …), `count-exceeds-node`, `count-exceeds-capacity`, `capacity-not-proven`, and those of
    evidence.
    """

    name = "hardware"
    fields = ("accelerator", "replicas")
    reads = frozenset({Source.CONTRACT, Source.EVIDENCE, Source.CATALOGUE})
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        need = requirements.accelerator
        if need is None:
            return OK
        offer, mismatches = match_accelerator(need, candidate)
        if offer is None:
            return (self._missing(need, candidate),)
        violations = [
            Violation(
                self.name,
                reason,
                Kind.MISCONFIGURED if reason == "below-guarantee" else Kind.NEVER,
                wanted,
                f"{found} in class {offer.name}",
            )
            for reason, wanted, found in mismatches
        ]
        self._amounts(violations, need, requirements.replicas, offer, candidate)
        missing = unproven(self.name, candidate, claims.capability_class(offer.name), now)
        return tuple(violations) if missing is None else (*violations, missing)

    def asks(self, requirements: Requirements) -> object:
        """Ask for nothing else where no accelerator is wanted."""
        return super().asks(requirements) if requirements.accelerator is not None else None

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        need = requirements.accelerator
        offer = match_accelerator(need, candidate).offer if need is not None else None
        return proven_until(candidate, claims.capability_class(offer.name), now) if offer is not None else None

    def _missing(self, need: AcceleratorNeed, candidate: Candidate) -> Violation:
        names = [offer.name for offer in candidate.contract.classes.values() if offer.is_accelerator]
        offered = f"classes {listed(names)}" if names else "no accelerators"
        if not need.name:
            return Violation(self.name, "product-not-offered", Kind.NEVER, f"product {need.product}", offered)
        wanted = f"{need.count} of class {need.name}"
        if need.name in candidate.catalogue.known_classes:
            return Violation(self.name, "class-not-offered", Kind.NEVER, wanted, offered)
        near = nearest(need.name, candidate.catalogue.known_classes)
        found = "no such class anywhere" + (f"; did you mean {near}?" if near else "")
        return Violation(self.name, "class-unknown", Kind.MISCONFIGURED, wanted, found)

    def _amounts(
        self,
        violations: list[Violation],
        need: AcceleratorNeed,
        replicas: int,
        offer: OfferedClass,
        candidate: Candidate,
    ) -> None:
        name = offer.name
        total, claimed, proven = need.count * replicas, candidate.claimed.get(name, 0), candidate.proven.get(name, 0)
        if offer.per_node is not None and need.count > offer.per_node:
            wanted = f"{need.count} of class {name} on one node"
            found = f"{offer.per_node} on a node"
            violations.append(Violation(self.name, "count-exceeds-node", Kind.NEVER, wanted, found))
        wanted = f"{total} of class {name}"
        if total > claimed:
            violations.append(Violation(self.name, "count-exceeds-capacity", Kind.NEVER, wanted, f"{claimed} claimed"))
        elif total > proven:
            found = f"{proven} proven of {claimed} claimed"
            violations.append(Violation(self.name, "capacity-not-proven", Kind.NOT_NOW, wanted, found))
