"""The environment's executor can start what the operation brings: a program, or an image."""

from datetime import datetime
from typing import Final

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation

PROGRAM: Final = "a program"
IMAGE: Final = "an image"

# What each executor starts. A program inside an image counts as an image; with both, either will do.
STARTS: Final = {
    "process": frozenset({PROGRAM}),
    "slurm": frozenset({PROGRAM}),
    "simulated": frozenset({PROGRAM, IMAGE}),
    "kubernetes": frozenset({IMAGE}),
    "managed-endpoint": frozenset({IMAGE}),
}


# What starts an image's program by itself and has no sight of what the image would start: the registry is not asked.
NEEDS_COMMAND: Final = frozenset({"kubernetes"})


class RuntimeForm(Rule):
    """Codes: `form-not-startable`, `command-missing`, `executor-unknown`, `nothing-to-start`."""

    name = "runtime-form"
    fields = ("command", "image")

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        executor = candidate.contract.runtime.executor
        starts = STARTS.get(executor)
        if starts is None:
            known = "one of " + ", ".join(sorted(STARTS))
            return (Violation(self.name, "executor-unknown", Kind.MISCONFIGURED, known, executor or "no executor"),)
        if requirements.image and not requirements.command and executor in NEEDS_COMMAND:
            told = f"the {executor} executor, whose wrapper starts a command that is stated"
            wanted = "to start what the image starts by itself"
            return (Violation(self.name, "command-missing", Kind.NEVER, wanted, told),)
        if (requirements.command and PROGRAM in starts) or (requirements.image and IMAGE in starts):
            return OK
        found = f"the {executor} executor, which starts {' or '.join(sorted(starts))}"
        if not (requirements.command or requirements.image):
            return (Violation(self.name, "nothing-to-start", Kind.MISCONFIGURED, "a command or an image", "neither"),)
        brought = f"to start {IMAGE if requirements.image else PROGRAM}"
        return (Violation(self.name, "form-not-startable", Kind.NEVER, brought, found),)
