"""The broker itself says that something is wrong with streams or consumers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import CRITICAL, Finding
from landbridge_alerting.world import Limits, World

NAME: Final = "broker-advisory"


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:  # noqa: ARG001 - the window is in the facts
    """Find what the broker advised of within the window; one alert a thing."""
    return [
        Finding(
            NAME, CRITICAL, {"about": about}, f"The broker reports: {text}", "Look at the broker's log and streams."
        )
        for about, text in sorted(world.advisories.items())
    ]
