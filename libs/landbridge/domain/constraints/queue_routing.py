"""The operation's queue exists, takes its project, and routes to this environment."""

from datetime import datetime

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, listed, nearest
from landbridge.domain.requirements import DEFAULT_QUEUE, Requirements
from landbridge.domain.violation import Kind, Violation


class QueueRouting(Rule):
    """Codes: `queue-unknown`, `project-not-in-queue`, `not-routed`."""

    name = "queue"
    fields = ("queue", "project")
    reads = frozenset({Source.CONTRACT, Source.CATALOGUE})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        queue = candidate.catalogue.queues.get(requirements.queue)
        if queue is None:
            return self._unknown(requirements.queue, candidate)
        violations: list[Violation] = []
        if queue.projects and requirements.project not in queue.projects and "*" not in queue.projects:
            found = f"queue {queue.name} takes {listed(queue.projects)}"
            wanted = f"project {requirements.project}"
            violations.append(Violation(self.name, "project-not-in-queue", Kind.MISCONFIGURED, wanted, found))
        choice, here = queue.environments, candidate.environment
        if (choice.allow and here not in choice.allow) or here in choice.forbid:
            routes = listed(choice.allow) if choice.allow else f"all but {listed(choice.forbid)}"
            wanted = f"an environment that queue {queue.name} routes to ({routes})"
            violations.append(Violation(self.name, "not-routed", Kind.NEVER, wanted, here))
        return tuple(violations) if violations else OK

    def _unknown(self, name: str, candidate: Candidate) -> Violations:
        if name == DEFAULT_QUEUE:  # needs no document: without limits, of priority 0
            return OK
        near = nearest(name, frozenset(candidate.catalogue.queues))
        found = "no such queue" + (f"; did you mean {near}?" if near else "")
        return (Violation(self.name, "queue-unknown", Kind.MISCONFIGURED, f"queue {name}", found),)
