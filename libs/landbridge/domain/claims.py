"""Names of the claims of an environment contract, as evidence refers to them.

The contract-verifier plans probes for these names, dispatchers report evidence under them, constraints ask for them.
A name is the path of the claim inside the contract's `spec`, such as `classes.gpu-80gb` or `connections.models`.
"""

from collections.abc import Iterable

RUNTIME = "runtime"  # a trivial workload was submitted, ran and ended through the environment's executor
CLOCK = "clock"  # the environment's clock agrees with the centre's
IDENTITY = "boundaries.identity"
NETWORK = "boundaries.network"
ADMISSION = "boundaries.admission"
TENANCY = "boundaries.tenancy"
CONTROL_PLANE = "boundaries.controlPlane"
SECURITY_TIER = "boundaries.securityTier"  # what the tier forbids is refused; matters to work that demands the tier
CARBON = "carbon.intensity"  # grams of CO2 equivalent per kWh now, as the environment's own source tells it
SELF_STOP = "lifecycle.self-stop"  # a canary with a cut lease stopped itself in time (DESIGN 6)

# Claims about one thing, which matter only to operations that rely on it, or to none.
SPECIFIC = ("classes.", "connections.", "storage.", "links.", "carbon.", "bandwidth.")


def capability_class(name: str) -> str:
    """Return the claim of a capability class."""
    return f"classes.{name}"


def connection(name: str) -> str:
    """Return the claim of a connection."""
    return f"connections.{name}"


def bandwidth(connection_name: str) -> str:
    """Return the claim of how fast a connection is, which is measured and decides where work goes, not whether."""
    return f"bandwidth.{connection_name}"


def storage(name: str) -> str:
    """Return the claim of a storage class."""
    return f"storage.{name}"


def general_claims(probed: Iterable[str]) -> tuple[str, ...]:
    """Return the claims that every operation relies on: `runtime`, probed or not, and what else is probed in general.

    Self-stop is needed to place work again after a lost link, not to start it; the tier by work that demands one.
    """
    others = {c for c in probed if not c.startswith(SPECIFIC) and c not in (SELF_STOP, SECURITY_TIER, RUNTIME)}
    return (RUNTIME, *sorted(others))


def link(environment: str) -> str:
    """Return the claim of a network link to another environment."""
    return f"links.{environment}"


def tier_is_tried(executor: str, tier: str) -> bool:
    """Tell whether probes try what a security tier forbids: in clusters, for tiers that forbid anything."""
    return executor == "kubernetes" and tier in ("standard", "restricted")
