"""An environment is heard, and does not prove its claims any more: what it cannot prove is not eligible capacity."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import WARNING, Finding, counted, spell
from landbridge_alerting.world import Limits, World

NAME: Final = "expired-evidence"


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:
    """Find connected environments with evidence that expired `evidence_grace` ago; lost ones have their own alert."""
    findings = []
    for name, proofs in sorted(world.proofs.items()):
        link = world.links.get(name)
        if link is None or link.state != "connected":
            continue
        expired = sorted(
            (proof.expires, proof.claim) for proof in proofs if now - proof.expires >= limits.evidence_grace
        )
        if not expired:
            continue
        claims = sorted({claim for _, claim in expired})
        shown = ", ".join(claims[:5]) + (f" and {len(claims) - 5} more" if len(claims) > 5 else "")
        findings.append(
            Finding(
                NAME,
                WARNING,
                {"environment": name},
                f"Environment {name}: the proof of {counted(len(claims), 'claim')} has expired",
                f"{shown}; the first {spell(now - expired[0][0])} ago. Its probes do not report: "
                f"`landbridge env verify {name}`.",
            )
        )
    return findings
