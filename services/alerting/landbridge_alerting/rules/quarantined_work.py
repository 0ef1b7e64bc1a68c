"""An environment holds work that nobody in the centre knows of: it is left alone until a person decides."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import CRITICAL, Finding, counted
from landbridge_alerting.world import Limits, World

NAME: Final = "quarantined-work"


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:  # noqa: ARG001 - it counts at once
    """Find environments whose inventories showed unknown work that is not decided about."""
    return [
        Finding(
            NAME,
            CRITICAL,
            {"environment": name},
            f"Environment {name} holds {counted(link.quarantined, 'slot')} of unknown work",
            "It may run and nobody here accounts for it: `landbridge quarantine list`, then `adopt` or `stop`.",
        )
        for name, link in sorted(world.links.items())
        if link.quarantined
    ]
