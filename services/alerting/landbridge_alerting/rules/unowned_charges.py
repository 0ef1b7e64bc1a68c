"""A queue counts something that no placement holds: less is admitted than the limits allow."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import WARNING, Finding, counted
from landbridge_alerting.world import Limits, Unowned, World

NAME: Final = "unowned-charges"
_NAMED: Final = 3


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:  # noqa: ARG001 - two looks have shown it
    """Find environments with charges that two looks in a row have shown to be held by nothing."""
    return [
        Finding(
            NAME,
            WARNING,
            {"environment": name},
            f"Environment {name}: {counted(len(charges), 'charge')} held by no placement",
            _described(charges),
        )
        for name, charges in sorted(world.unowned.items())
        if charges
    ]


def _described(charges: Sequence[Unowned]) -> str:
    """Say why, which, and what to do."""
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(Counter(c.reason for c in charges).items()))
    kept = [charge.operation for charge in charges if not charge.released]
    if not kept:
        return f"{reasons}: given back. An event that frees was lost or set aside: `landbridge get alerts`, the log."
    named = ", ".join(kept[:_NAMED]) + (f" and {len(kept) - _NAMED} more" if len(kept) > _NAMED else "")
    return (
        f"{reasons}. Not given back, because it may still be placed: {named}. `landbridge explain ID` tells how it"
        " stands; `landbridge cancel ID` frees it."
    )
