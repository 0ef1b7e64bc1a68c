"""A connection does not work where environments claim it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from landbridge_alerting.rules.base import CRITICAL, WARNING, Finding
from landbridge_alerting.world import Limits, Proof, World

NAME: Final = "unavailable-connection"
_PREFIX: Final = "connections."


def check(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:  # noqa: ARG001
    """Find connections that a probe found broken; critical where no environment proves them."""
    broken: dict[str, dict[str, str]] = {}
    working: set[str] = set()
    for name, proofs in sorted(world.proofs.items()):
        for proof in proofs:
            if not proof.claim.startswith(_PREFIX):
                continue
            connection = proof.claim.removeprefix(_PREFIX)
            if proof.result == "failed":
                broken.setdefault(connection, {})[name] = proof.detail
            elif _holds(proof, now):
                working.add(connection)
    return [_finding(connection, places, connection in working) for connection, places in sorted(broken.items())]


def _holds(proof: Proof, now: datetime) -> bool:
    return proof.result == "proven" and proof.expires > now


def _finding(connection: str, places: dict[str, str], elsewhere: bool) -> Finding:
    told = "; ".join(f"{name}: {detail or 'no detail'}" for name, detail in sorted(places.items()))
    return Finding(
        NAME,
        WARNING if elsewhere else CRITICAL,
        {"connection": connection},
        f"Connection {connection} does not work in {', '.join(sorted(places))}",
        f"{told}. {'It works elsewhere.' if elsewhere else 'It is proven nowhere: work that needs it cannot run.'}",
    )
