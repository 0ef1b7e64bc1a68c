"""The project may use this environment."""

from datetime import datetime

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class ProjectChoice(Rule):
    """Codes: `not-allowed-for-project`, `forbidden-for-project`."""

    name = "project"
    fields = ("project",)
    reads = frozenset({Source.CONTRACT, Source.CATALOGUE})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        project = candidate.catalogue.projects.get(requirements.project)
        if project is None:
            return OK
        choice, here = project.environments, candidate.environment
        if choice.allow and here not in choice.allow:
            wanted = f"one of {listed(choice.allow)} for project {project.name}"
            return (Violation(self.name, "not-allowed-for-project", Kind.NEVER, wanted, here),)
        if here in choice.forbid:
            wanted = f"none of {listed(choice.forbid)} for project {project.name}"
            return (Violation(self.name, "forbidden-for-project", Kind.NEVER, wanted, here),)
        return OK
