"""The site's own last word: which projects and image registries it accepts at all."""

from datetime import datetime

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class SitePolicy(Rule):
    """Codes: `project-not-accepted`, `registry-not-accepted`."""

    name = "site-policy"
    fields = ("project", "registry", "command")

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        accepts = candidate.contract.accepts
        violations: list[Violation] = []
        if accepts.projects and requirements.project not in accepts.projects and "*" not in accepts.projects:
            found = f"the site accepts {listed(accepts.projects)}"
            wanted = f"project {requirements.project}"
            violations.append(Violation(self.name, "project-not-accepted", Kind.NEVER, wanted, found))
        registry = requirements.registry
        if accepts.images and registry and registry not in accepts.images and not self._needs_no_image(candidate):
            found = f"the site accepts {listed(accepts.images)}"
            violations.append(Violation(self.name, "registry-not-accepted", Kind.NEVER, f"images of {registry}", found))
        return tuple(violations) if violations else OK

    @staticmethod
    def _needs_no_image(candidate: Candidate) -> bool:
        return candidate.contract.runtime.executor == "process"
