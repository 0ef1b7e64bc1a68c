"""Why one environment cannot run an operation: a refusal is a value with fields, not a text."""

from enum import StrEnum
from typing import NamedTuple, TypeAlias


class Kind(StrEnum):
    """What would have to change for the violation to go away."""

    NEVER = "never"  # the environment is of the wrong sort; waiting does not help
    NOT_NOW = "not-now"  # it may fit later without anybody changing a declaration
    MISCONFIGURED = "misconfigured"  # somebody has to correct or upgrade something


class Violation(NamedTuple):
    """One rule that an environment breaks for an operation.

    `reason` is a stable code within `constraint`; `wanted` and `found` are for people, name the thing they are about
    and hold absolute facts only (times, versions), so that the same situation always gives the same violation.
    """

    constraint: str
    reason: str
    kind: Kind
    wanted: str
    found: str

    def __str__(self) -> str:
        return f"{self.constraint}/{self.reason} ({self.kind}): wanted {self.wanted}; found {self.found}"


Violations: TypeAlias = tuple[Violation, ...]
