"""What a rule is: a pure function from facts to findings."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from landbridge_alerting.world import Limits, World

CRITICAL: Final = "critical"
WARNING: Final = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong now. Labels identify it; summary and description may change from one look to the next.

    It fires once it was found for `after` without a break.
    """

    rule: str
    severity: str
    labels: Mapping[str, str]
    summary: str
    description: str = ""
    after: timedelta = field(default=timedelta(0))

    @property
    def fingerprint(self) -> str:
        """The same for the same rule and labels, on every replica."""
        parts = [self.rule, *(f"{name}\x00{self.labels[name]}" for name in sorted(self.labels))]
        return hashlib.sha256("\x01".join(parts).encode()).hexdigest()[:16]


Rule = Callable[[World, datetime, Limits], Sequence[Finding]]


def spell(duration: timedelta) -> str:
    """Write a duration for people: `45 s`, `12 min`, `3 h`, `2 d`."""
    seconds = int(duration.total_seconds())
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def counted(count: int, one: str, many: str = "") -> str:
    """Write a number with its noun."""
    return f"{count} {one if count == 1 else many or one + 's'}"
