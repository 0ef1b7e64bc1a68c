"""Names of the claims of an environment contract, as evidence refers to them.

The contract-verifier plans probes for these names, dispatchers report evidence under them, constraints ask for them.
A name is the path of the claim inside the contract's `spec`, such as `classes.gpu-80gb` or `connections.models`.
"""

RUNTIME = "runtime"  # a trivial workload was submitted, ran and ended through the environment's executor
CLOCK = "clock"  # the environment's clock agrees with the centre's
IDENTITY = "boundaries.identity"
NETWORK = "boundaries.network"
ADMISSION = "boundaries.admission"
TENANCY = "boundaries.tenancy"
CONTROL_PLANE = "boundaries.controlPlane"
SELF_STOP = "lifecycle.self-stop"  # a canary with a cut lease stopped itself in time (DESIGN 6)


def capability_class(name: str) -> str:
    """Return the claim of a capability class."""
    return f"classes.{name}"


def connection(name: str) -> str:
    """Return the claim of a connection."""
    return f"connections.{name}"


def storage(name: str) -> str:
    """Return the claim of a storage class."""
    return f"storage.{name}"


def link(environment: str) -> str:
    """Return the claim of a network link to another environment."""
    return f"links.{environment}"
