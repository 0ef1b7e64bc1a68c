"""The centre does not hear an environment: it takes no new work, and what runs there is unknown."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import CRITICAL, WARNING, Finding, spell
from landbridge_alerting.world import Limits, World

NAME: Final = "lost-environment"


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:
    """Find environments that are lost longer than `lost_for`, or reconcile longer than `reconciling_for`."""
    findings = []
    for name, link in sorted(world.links.items()):
        age = now - link.since if link.since is not None else limits.lost_for
        if link.state == "lost" and age >= limits.lost_for:
            findings.append(
                Finding(
                    NAME,
                    CRITICAL,
                    {"environment": name},
                    f"Environment {name} is lost since {spell(age)}",
                    "Its work goes on by its own policy. Check its dispatcher and the link: "
                    f"`landbridge get environment {name}`, on site `landbridge site status`.",
                )
            )
        elif link.state == "reconciling" and age >= limits.reconciling_for:
            findings.append(
                Finding(
                    NAME,
                    WARNING,
                    {"environment": name},
                    f"Environment {name} reconciles since {spell(age)}",
                    f"It is heard again and its inventory is not complete: `landbridge get environment {name}`.",
                )
            )
    return findings
