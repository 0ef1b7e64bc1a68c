"""The broker acknowledges what a loss of power would lose: what the promises rest on does not hold."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import CRITICAL, Finding
from landbridge_alerting.world import Limits, World

NAME: Final = "broker-sync"


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:  # noqa: ARG001 - it counts at once
    """Find servers that acknowledge before data is on disk; one alert a server."""
    return [
        Finding(
            NAME,
            CRITICAL,
            {"server": name},
            f"Server {name} of the broker acknowledges before data is on disk",
            "A loss of power there loses what was acknowledged: write `sync_interval: always` into the jetstream "
            "section of its configuration and start it anew.",
        )
        for name in sorted(world.late_servers)
    ]
