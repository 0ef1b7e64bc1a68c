# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again.
"""What the centre asks of one environment, on lb.v1.command.<environment>.<kind>. Must be understood: a dispatcher
that meets a field or an enum value it does not know refuses the command."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field
from landbridge.schema.common_v1 import Epoch, PlacementRef
from landbridge.schema.base import Bytes, Closed, Moment

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


class Offer(Closed):
    """A placement that the environment may claim; a hint that the centre can withdraw at once."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The operation's project.
    project: Annotated[str, Field(min_length=1)]
    # The placement's epoch.
    epoch: Epoch
    # The attempt's number, from 1.
    attempt: int = 0
    # The effective specification, exactly as accepted.
    spec: Bytes
    # SHA-256 of the specification's bytes, in hex.
    spec_sha256: Annotated[str, Field(min_length=1)]
    # Features that the dispatcher needs to run it.
    features: tuple[str, ...] = ()
    # The manifest of the checkpoint to resume from; empty to start afresh.
    resume_from: str = ""
    # When the offer lapses if it is not claimed.
    claim_by: Moment | None = None
    # The class of its accelerators, where it is another one than the specification names.
    accelerator_class: str = ""


class Offers(Closed):
    """Placements offered to the environment."""

    # The offers.
    offers: tuple[Offer, ...] = ()


class Withdrawals(Closed):
    """Offers that no longer stand."""

    # The placements.
    items: tuple[PlacementRef, ...] = ()


class Stop(Closed):
    """A placement to stop."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The placement's epoch; lower epochs of the operation are stopped too.
    epoch: Epoch
    # Why, as a code.
    reason: str = ""
    # Seconds between the polite and the hard signal.
    grace_seconds: Annotated[int, Field(ge=0)] = 0
    # Stop at once, without grace.
    force: bool = False


class Stops(Closed):
    """Placements to stop."""

    # The placements.
    items: tuple[Stop, ...] = ()


class Settlements(Closed):
    """Placements whose terminal report the centre has recorded: their slots may be removed."""

    # The placements.
    items: tuple[PlacementRef, ...] = ()


class Probe(Closed):
    """One probe to run on a schedule."""

    # The probe's name, unique in its plan.
    name: Annotated[str, Field(min_length=1)]
    # The claim that it proves, as a path into the contract's spec.
    claim: Annotated[str, Field(min_length=1)]
    # What kind of probe it is.
    kind: Annotated[str, Field(min_length=1)]
    # Seconds between two runs.
    period_seconds: Annotated[int, Field(ge=0)] = 0
    # Seconds after which a run has failed.
    timeout_seconds: Annotated[int, Field(ge=0)] = 0
    # Seconds that its evidence counts for.
    expiry_seconds: Annotated[int, Field(ge=0)] = 0
    # What the probe needs to know.
    parameters: Mapping[str, str] = Field(default_factory=dict)


class ProbePlan(Closed):
    """The whole schedule of probes for one contract version; replaces the one before. It runs on while the centre is
    away."""

    # The contract version to prove.
    contract_version: int
    # The contract's bytes, exactly as registered.
    contract: Bytes = b""
    # The probes.
    probes: tuple[Probe, ...] = ()


class VerifyNow(Closed):
    """Probes to run now; an empty list means all of the plan."""

    # Names of probes in the plan.
    probes: tuple[str, ...] = ()

