"""What runs in an environment is not what the record says."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import CRITICAL, WARNING, Finding, counted
from landbridge_alerting.world import Limits, World

NAME: Final = "drift"
# Work that nobody accounts for may run twice; the rest is a record that is wrong, or somebody's hand.
_CRITICAL: Final = frozenset({"unknown-work", "runs-elsewhere"})


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:  # noqa: ARG001 - two surveys have shown it
    """Find environments in which two surveys in a row have shown something else than is recorded."""
    return [
        Finding(
            NAME,
            CRITICAL if _CRITICAL & set(kinds) else WARNING,
            {"environment": name},
            f"Environment {name} differs from the record in {counted(sum(kinds.values()), 'placement')}",
            ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            + f": `landbridge get environment {name}` names each with what is recorded and what is found.",
        )
        for name, kinds in sorted(world.drifts.items())
        if kinds
    ]
