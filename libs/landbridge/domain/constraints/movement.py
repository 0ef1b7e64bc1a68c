"""Data that does not lie here may come here: its owner allows the copy, and the way is encrypted if it must be."""

from datetime import datetime

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.catalogue import Connection
from landbridge.domain.constraints.base import OK, Rule, Violations
from landbridge.domain.contract import OfferedConnection
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class DataMovement(Rule):
    """Codes: `movement-forbidden`, `way-not-encrypted`, `encryption-not-stated`.

    Only connections with a document in the catalogue that speaks of movement are judged.
    """

    name = "data-movement"
    fields = ("connections",)
    reads = frozenset({Source.CONTRACT, Source.CATALOGUE})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        violations: list[Violation] = []
        for need in requirements.connections:
            document = candidate.catalogue.connections.get(need.name)
            offer = candidate.contract.connections.get(need.name)
            if document is None or document.movement_allowed is None or offer is None:
                continue
            if not offer.region or offer.region in candidate.regions:
                continue
            violation = self._judge(document, offer, candidate)
            if violation is not None:
                violations.append(violation)
        return tuple(violations) if violations else OK

    def _judge(self, document: Connection, offer: OfferedConnection, candidate: Candidate) -> Violation | None:
        wanted = f"data of connection {document.name}, which lies in {offer.region}"
        if not document.movement_allowed:
            return Violation(self.name, "movement-forbidden", Kind.NEVER, wanted, "its owner forbids copies elsewhere")
        if not document.encrypted_only:
            return None
        encrypted = offer.encrypted
        if encrypted is None:
            links = candidate.contract.links
            there = candidate.catalogue.region_environments.get(offer.region, ())
            encrypted = next((links[name].encrypted for name in there if name in links), None)
        if encrypted:
            return None
        wanted += ", over an encrypted way"
        if encrypted is None:
            return Violation(
                self.name, "encryption-not-stated", Kind.MISCONFIGURED, wanted, "nothing stated about the way"
            )
        return Violation(self.name, "way-not-encrypted", Kind.NEVER, wanted, "a way that is not encrypted")
