"""Data and work stay in the jurisdictions and regions that the operation and its connections allow."""

from datetime import datetime

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.requirements import ConnectionNeed, Requirements
from landbridge.domain.violation import Kind, Violation


class Residency(Rule):
    """The environment, and the place that each of its connections leads to, lies where the operation may be.

    Codes: `jurisdiction`, `region`, `connection-jurisdiction` (a connection here leads out of the operation's
    jurisdictions), `data-jurisdiction` (the data must not come here), `location-not-stated`.
    """

    name = "residency"
    fields = ("jurisdictions", "regions", "connections")
    reads = frozenset({Source.CONTRACT, Source.CATALOGUE})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        violations: list[Violation] = []
        wanted = requirements.jurisdictions
        if wanted and candidate.jurisdictions.isdisjoint(wanted):
            violations.append(self._outside("jurisdiction", wanted, candidate.jurisdictions, "jurisdictions"))
        if requirements.regions and candidate.regions.isdisjoint(requirements.regions):
            violations.append(self._outside("region", requirements.regions, candidate.regions, "regions"))
        for need in requirements.connections:
            self._connection(violations, need, wanted, candidate)
        return tuple(violations) if violations else OK

    def _outside(self, code: str, wanted: tuple[str, ...], found: frozenset[str], what: str) -> Violation:
        if not found:
            told = f"{what} {listed(wanted)}"
            return Violation(self.name, "location-not-stated", Kind.MISCONFIGURED, told, f"no {what} stated")
        return Violation(self.name, code, Kind.NEVER, f"{what} {listed(wanted)}", f"{what} {listed(found)}")

    def _connection(
        self, violations: list[Violation], need: ConnectionNeed, wanted: tuple[str, ...], candidate: Candidate
    ) -> None:
        catalogue = candidate.catalogue
        document = catalogue.connections.get(need.name)
        if document is not None and document.jurisdictions:
            bound = document.jurisdictions
            if candidate.jurisdictions.isdisjoint(bound):
                told = f"connection {need.name} to stay in {listed(bound)}"
                found = listed(candidate.jurisdictions, "no jurisdictions stated")
                violations.append(Violation(self.name, "data-jurisdiction", Kind.NEVER, told, found))
        offer = candidate.contract.connections.get(need.name)
        if not wanted or offer is None or not offer.region or offer.region in candidate.regions:
            return
        there = catalogue.region_jurisdictions.get(offer.region)
        if there is None or there.isdisjoint(wanted):
            told = f"connection {need.name} to lead into {listed(wanted)}"
            found = f"region {offer.region} in {listed(there or (), 'no known jurisdiction')}"
            violations.append(Violation(self.name, "connection-jurisdiction", Kind.NEVER, told, found))
