"""Operations wait too long because no environment can run them, or none for now."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import WARNING, Finding, counted, spell
from landbridge_alerting.world import Limits, World

NAME: Final = "no-eligible-environment"


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:
    """Find what waits without an eligible environment longer than `unplaced_age`; one alert a project and reason."""
    findings = []
    grouped: dict[tuple[str, str], list[tuple[datetime, int]]] = {}
    for row in world.waiting:
        if not row.eligible:
            grouped.setdefault((row.project, row.reason), []).append((row.oldest, row.count))
    for (project, reason), rows in sorted(grouped.items()):
        age = now - min(rows)[0]
        if age < limits.unplaced_age:
            continue
        count = counted(sum(count for _, count in rows), "operation")
        findings.append(
            Finding(
                NAME,
                WARNING,
                {"project": project, "reason": reason},
                f"{project}: no environment is eligible for {count} since {spell(age)}",
                f"Reason: {reason}. `landbridge explain OPERATION` names the nearest environment and what it lacks.",
            )
        )
    return findings
