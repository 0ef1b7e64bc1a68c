"""What a probe is to prove: the part of the contract that it carries, and its amount."""

from typing import Any

import msgspec

from landbridge.domain import units
from landbridge.schema.wire.command_v1 import Probe


def claimed_part(probe: Probe) -> dict[str, Any]:
    """Return the claimed part of the contract; empty where it is no object."""
    value = msgspec.json.decode(probe.parameters.get("claimed", "null") or "null")
    return value if isinstance(value, dict) else {}


def claimed_amount(probe: Probe) -> float | None:
    """Return how much a capability class claims: devices for accelerators, else processors."""
    part = claimed_part(probe)
    if part.get("count") is not None:
        return float(part["count"])
    cpu = part.get("cpu")
    return units.parse_cpu(str(cpu)) / 1000 if cpu else None
