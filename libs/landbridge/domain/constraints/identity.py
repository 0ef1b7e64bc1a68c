"""The environment can give the operation's logical role a local principal, and project and site allow it."""

from datetime import datetime

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.constraints.proof import proven_until, unproven
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class Identity(Rule):
    """Codes: `role-not-mapped`, `role-not-accepted-by-site`, `role-not-allowed-by-project`, and those of evidence."""

    name = "identity"
    fields = ("identity", "project")
    reads = frozenset({Source.CONTRACT, Source.EVIDENCE, Source.CATALOGUE})
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        role = requirements.identity
        if not role:
            return OK
        violations: list[Violation] = []
        project = candidate.catalogue.projects.get(requirements.project)
        if project is not None and project.identities and role not in project.identities:
            found = f"project {requirements.project} allows {listed(project.identities)}"
            violations.append(
                Violation(self.name, "role-not-allowed-by-project", Kind.MISCONFIGURED, f"role {role}", found)
            )
        accepted = candidate.contract.accepts.identities
        if accepted and role not in accepted:
            found = f"the site accepts {listed(accepted)}"
            violations.append(Violation(self.name, "role-not-accepted-by-site", Kind.NEVER, f"role {role}", found))
        boundary = candidate.contract.boundaries.identity
        roles = boundary.roles if boundary is not None else {}
        if role not in roles:
            found = f"roles {listed(roles)}"
            violations.append(Violation(self.name, "role-not-mapped", Kind.MISCONFIGURED, f"role {role}", found))
            return tuple(violations)
        missing = unproven(self.name, candidate, claims.IDENTITY, now)
        return tuple(violations) if missing is None else (*violations, missing)

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        return proven_until(candidate, claims.IDENTITY, now) if requirements.identity else None
