# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again.
"""What the centre asks of one environment, on lb.v1.command.<environment>.<kind>. Must be understood: a dispatcher
that meets a field or an enum value it does not know refuses the command."""

from datetime import datetime
from collections.abc import Mapping
from typing import Annotated

import msgspec
from landbridge.schema.wire.common_v1 import Epoch, PlacementRef

Moment = Annotated[datetime, msgspec.Meta(tz=True)]

__all__ = [
    "Epoch",
    "Offer",
    "Offers",
    "PlacementRef",
    "Probe",
    "ProbePlan",
    "Settlements",
    "Stop",
    "Stops",
    "VerifyNow",
    "Withdrawals",
]


class Offer(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """A placement that the environment may claim; a hint that the centre can withdraw at once."""

    operation: str
    project: str
    epoch: Epoch
    attempt: int = 0
    spec: bytes
    spec_sha256: str
    features: tuple[str, ...] = ()
    resume_from: str = ""
    claim_by: Moment | None = None
    accelerator_class: str = ""


class Offers(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Placements offered to the environment."""

    offers: tuple[Offer, ...] = ()


class Withdrawals(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Offers that no longer stand."""

    items: tuple[PlacementRef, ...] = ()


class Stop(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """A placement to stop."""

    operation: str
    epoch: Epoch
    reason: str = ""
    grace_seconds: int = 0
    force: bool = False


class Stops(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Placements to stop."""

    items: tuple[Stop, ...] = ()


class Settlements(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Placements whose terminal report the centre has recorded: their slots may be removed."""

    items: tuple[PlacementRef, ...] = ()


class Probe(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """One probe to run on a schedule."""

    name: str
    claim: str
    kind: str
    period_seconds: int = 0
    timeout_seconds: int = 0
    expiry_seconds: int = 0
    parameters: Mapping[str, str] = msgspec.field(default_factory=dict)


class ProbePlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The whole schedule of probes for one contract version; replaces the one before. It runs on while the centre is
    away."""

    contract_version: int
    contract: bytes = b""
    probes: tuple[Probe, ...] = ()


class VerifyNow(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Probes to run now; an empty list means all of the plan."""

    probes: tuple[str, ...] = ()

