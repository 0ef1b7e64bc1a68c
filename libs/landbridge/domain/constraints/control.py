"""No operator holds new work off the environment."""

from datetime import datetime

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class Control(Rule):
    """Codes: `paused`, `draining`."""

    name = "control"
    reads = frozenset({Source.CONTROL})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        control = candidate.control
        if not (control.paused or control.draining):
            return OK
        code = "draining" if control.draining else "paused"
        found = code + (f" by {control.by}" if control.by else "") + (f": {control.reason}" if control.reason else "")
        return (Violation(self.name, code, Kind.NOT_NOW, "an environment that takes new work", found),)
