"""Eligible operations wait because a quota or a concurrency limit is used up."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import WARNING, Finding, counted, spell
from landbridge_alerting.world import Limits, World

NAME: Final = "quota-exhausted"
_REASONS: Final = frozenset({"quota", "exceeds-quota", "concurrency"})


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:
    """Find limits that hold work back longer than `quota_age`; one alert a project, queue and limit."""
    findings = []
    for row in sorted(world.waiting, key=lambda row: (row.project, row.queue, row.reason)):
        age = now - row.oldest
        if row.eligible and row.reason in _REASONS and age >= limits.quota_age:
            count = counted(row.count, "operation")
            findings.append(
                Finding(
                    NAME,
                    WARNING,
                    {"project": row.project, "queue": row.queue, "reason": row.reason},
                    f"{row.project}: {row.reason} of queue {row.queue} holds {count} back",
                    f"The oldest waits since {spell(age)}. Raise the limit, or let something end.",
                )
            )
    return findings
