"""A service could not handle messages and set them aside."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import WARNING, Finding, counted
from landbridge_alerting.world import Limits, World

NAME: Final = "dead-letters"


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:  # noqa: ARG001 - the window is in the facts
    """Find services with dead letters; the alert ends when no new ones came for the length of the window."""
    return [
        Finding(
            NAME,
            WARNING,
            {"service": service},
            f"{service} could not handle {counted(letters.count, 'message')}",
            f"The last reason: {letters.last_error or 'not told'}. The messages are kept on the stream DEADLETTERS.",
        )
        for service, letters in sorted(world.dead_letters.items())
        if letters.count
    ]
