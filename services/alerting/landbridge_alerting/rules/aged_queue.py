"""Eligible operations wait too long: some environment could run them, and admission does not let them in."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import WARNING, Finding, counted, spell
from landbridge_alerting.world import Limits, World

NAME: Final = "aged-queue"


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:
    """Find queues whose oldest eligible operation waits longer than `queue_age`; one alert a project and queue."""
    oldest: dict[tuple[str, str], list[tuple[datetime, int, str]]] = {}
    for row in world.waiting:
        if row.eligible:
            oldest.setdefault((row.project, row.queue), []).append((row.oldest, row.count, row.reason))
    findings = []
    for (project, queue), rows in sorted(oldest.items()):
        since, _, reason = min(rows)
        age = now - since
        if age < limits.queue_age:
            continue
        count = counted(sum(count for _, count, _ in rows), "operation")
        findings.append(
            Finding(
                NAME,
                WARNING,
                {"project": project, "queue": queue},
                f"Queue {queue} of {project}: the oldest eligible operation waits since {spell(age)}",
                f"{count} could run and wait; the oldest because of {reason}. Look at `landbridge get queues`.",
            )
        )
    return findings
