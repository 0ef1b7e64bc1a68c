"""Every connection that the operation names exists here, is open to its project, and is proven to work."""

from datetime import datetime

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, earliest, listed, nearest
from landbridge.domain.constraints.proof import proven_until, unproven
from landbridge.domain.requirements import ConnectionNeed, Requirements
from landbridge.domain.violation import Kind, Violation

_READS = frozenset({"read-only", "read-write"})
_WRITES = frozenset({"read-write", "write-only"})


class Connections(Rule):
    """Every named connection, one by one.

    Codes: `connection-unknown` (nowhere, probably misspelt), `connection-missing` (not here),
    `project-not-authorised`, `access-mode`, `not-accepted-by-site`, and those of evidence.
    """

    name = "connections"
    fields = ("connections", "project")
    reads = frozenset({Source.CONTRACT, Source.EVIDENCE, Source.CATALOGUE})
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        violations: list[Violation] = []
        for need in requirements.connections:
            self._check_one(violations, need, requirements.project, candidate, now)
        return tuple(violations) if violations else OK

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        needs = requirements.connections
        return earliest(proven_until(candidate, claims.connection(need.name), now) for need in needs)

    def _check_one(
        self, violations: list[Violation], need: ConnectionNeed, project: str, candidate: Candidate, now: datetime
    ) -> None:
        contract = candidate.contract
        offer = contract.connections.get(need.name)
        if offer is None:
            violations.append(self._missing(need, candidate))
            return
        accepted = contract.accepts.connections
        if accepted and need.name not in accepted:
            told = f"connection {need.name}"
            found = f"the site accepts {listed(accepted)}"
            violations.append(Violation(self.name, "not-accepted-by-site", Kind.NEVER, told, found))
        document = candidate.catalogue.connections.get(need.name)
        if not offer.admits(project) or (document is not None and not _open_to(document.projects, project)):
            projects = offer.projects if not offer.admits(project) or document is None else document.projects
            told = f"connection {need.name} for project {project}"
            found = f"open to {listed(projects)}"
            violations.append(Violation(self.name, "project-not-authorised", Kind.MISCONFIGURED, told, found))
        if (need.reads and offer.access not in _READS) or (need.writes and offer.access not in _WRITES):
            mode = "read and write" if need.reads and need.writes else "write" if need.writes else "read"
            told = f"to {mode} {need.name} ({listed(need.uses)})"
            violations.append(Violation(self.name, "access-mode", Kind.NEVER, told, f"{offer.access} access"))
        missing_proof = unproven(self.name, candidate, claims.connection(need.name), now)
        if missing_proof is not None:
            violations.append(missing_proof)

    def _missing(self, need: ConnectionNeed, candidate: Candidate) -> Violation:
        wanted = f"connection {need.name} ({listed(need.uses)})"
        known = candidate.catalogue.known_connections
        if need.name in known:
            here = candidate.contract.connections
            found = f"connections {listed(here)}" if here else "no connections"
            return Violation(self.name, "connection-missing", Kind.NEVER, wanted, found)
        near = nearest(need.name, known)
        found = f"no such connection anywhere; did you mean {near}?" if near else "no such connection anywhere"
        return Violation(self.name, "connection-unknown", Kind.MISCONFIGURED, wanted, found)


def _open_to(projects: tuple[str, ...], project: str) -> bool:
    return not projects or project in projects or "*" in projects
