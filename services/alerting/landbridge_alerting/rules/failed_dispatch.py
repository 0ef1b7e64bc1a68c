"""Placements in one environment do not start."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import WARNING, Finding, counted
from landbridge_alerting.world import Limits, World

NAME: Final = "failed-dispatch"


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:  # noqa: ARG001 - the window is in the facts
    """Find environments where at least `failed_starts` placements, and a share of `failed_share`, did not start."""
    findings = []
    for name, starts in sorted(world.starts.items()):
        share = starts.failed / max(starts.placed, starts.failed, 1)
        if starts.failed < limits.failed_starts or share < limits.failed_share:
            continue
        reasons = sorted(starts.reasons.items(), key=lambda item: (-item[1], item[0]))
        told = ", ".join(f"{reason} ({count})" for reason, count in reasons[:3])
        findings.append(
            Finding(
                NAME,
                WARNING,
                {"environment": name},
                f"Environment {name}: {counted(starts.failed, 'placement')} did not start ({share:.0%})",
                f"Reasons: {told or 'not told'}. Of {starts.placed} placed within the window.",
            )
        )
    return findings
