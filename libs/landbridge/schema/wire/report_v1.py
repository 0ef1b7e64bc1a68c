# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again.
"""What an environment reports, on lb.v1.report.<environment>.<kind>. Readers tolerate unknown fields and enum values."""

from datetime import datetime
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import msgspec
from landbridge.schema.wire.common_v1 import Epoch

Moment = Annotated[datetime, msgspec.Meta(tz=True)]

__all__ = [
    "AcceptanceResult",
    "AttemptOutcome",
    "AttemptReport",
    "AttemptReports",
    "AttemptState",
    "CheckpointRef",
    "Epoch",
    "Evidence",
    "EvidenceReports",
    "EvidenceResult",
    "Inventory",
    "OutputRef",
    "Resolved",
    "SlotPhase",
    "SlotState",
    "Survey",
    "SurveyedSlot",
]


class AttemptState(StrEnum):
    """Where one attempt stands in its environment."""

    # Not known to this reader.
    UNSPECIFIED = ""
    # The workload runs.
    STARTED = "started"
    # The workload has ended; the outcome says how.
    FINISHED = "finished"
    # The environment gave the placement back before anything ran.
    RELINQUISHED = "relinquished"
    # Starting was tried and did not work; nothing runs.
    FAILED_TO_START = "failed-to-start"
    # A checkpoint was sealed; the workload runs on.
    CHECKPOINTED = "checkpointed"
    # The environment does not accept the placement.
    REFUSED = "refused"

    @classmethod
    def _missing_(cls, value: object) -> "AttemptState":
        return cls.UNSPECIFIED


class AttemptOutcome(StrEnum):
    """How a finished attempt ended."""

    # Not finished, or not known to this reader.
    UNSPECIFIED = ""
    # It did what it declared, acceptance included.
    COMPLETED = "completed"
    # It did not.
    FAILED = "failed"
    # It was stopped because a person asked for it.
    CANCELLED = "cancelled"

    @classmethod
    def _missing_(cls, value: object) -> "AttemptOutcome":
        return cls.UNSPECIFIED


class EvidenceResult(StrEnum):
    """What a probe found."""

    # Not known to this reader; counts as no evidence.
    UNSPECIFIED = ""
    # The claim was shown to hold.
    PROVEN = "proven"
    # The claim was shown not to hold.
    FAILED = "failed"
    # The probe could not tell.
    UNKNOWN = "unknown"

    @classmethod
    def _missing_(cls, value: object) -> "EvidenceResult":
        return cls.UNSPECIFIED


class SlotPhase(StrEnum):
    """What stands in a slot, the environment's test-and-set place of one epoch."""

    # Not known to this reader.
    UNSPECIFIED = ""
    # Occupied; nothing has started.
    CREATED = "created"
    # The workload runs.
    RUNNING = "running"
    # The workload has ended; its report waits for the centre.
    FINISHED = "finished"
    # Occupied so that nothing can start there any more.
    TOMBSTONE = "tombstone"

    @classmethod
    def _missing_(cls, value: object) -> "SlotPhase":
        return cls.UNSPECIFIED


class OutputRef(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One output as the environment found it after the attempt."""

    connection: str = ""
    path: str = ""
    bytes: int = 0
    sha256: str = ""
    exists: bool = False


class AcceptanceResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One acceptance criterion, evaluated where the outputs are."""

    criterion: str
    met: bool = False
    found: str = ""


class CheckpointRef(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A sealed checkpoint."""

    epoch: Epoch
    manifest: str = ""


class Resolved(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What an attempt really ran on and with."""

    workload: str = ""
    host: str = ""
    hardware: str = ""
    architecture: str = ""
    principal: str = ""
    image_digest: str = ""
    connections: Mapping[str, str] = msgspec.field(default_factory=dict)
    contract_version: int = 0
    resources: Mapping[str, str] = msgspec.field(default_factory=dict)
    cost_per_hour: float | None = None
    currency: str = ""
    executor: str = ""
    endpoint: str = ""


class AttemptReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The state of one attempt, with everything that is known about it so far."""

    operation: str
    epoch: Epoch
    state: AttemptState = AttemptState.UNSPECIFIED
    term: int = 0
    at: Moment
    started_at: Moment | None = None
    finished_at: Moment | None = None
    outcome: AttemptOutcome = AttemptOutcome.UNSPECIFIED
    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    outputs: Mapping[str, OutputRef] = msgspec.field(default_factory=dict)
    metrics: Mapping[str, float] = msgspec.field(default_factory=dict)
    acceptance: tuple[AcceptanceResult, ...] = ()
    checkpoint: CheckpointRef | None = None
    resolved: Resolved | None = None


class AttemptReports(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Several attempts at once."""

    incarnation: str
    term: int = 0
    items: tuple[AttemptReport, ...] = ()


class Evidence(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The latest proof of one claim."""

    claim: str
    result: EvidenceResult = EvidenceResult.UNSPECIFIED
    proven: float | None = None
    claimed: float | None = None
    probe: str = ""
    subject: str = ""
    at: Moment
    expires: Moment
    detail: str = ""


class EvidenceReports(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Several pieces of evidence at once."""

    contract_version: int = 0
    items: tuple[Evidence, ...] = ()


class SlotState(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One slot as found in the environment."""

    operation: str
    epoch: Epoch
    state: SlotPhase = SlotPhase.UNSPECIFIED
    grant_term: int = 0
    report: AttemptReport | None = None


class SurveyedSlot(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One slot of a survey."""

    operation: str
    epoch: Epoch
    over: bool = False


class Survey(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the environment holds just now, read uncached, told now and then so that the record can be compared with
    it."""

    incarnation: str
    term: int = 0
    at: Moment | None = None
    complete: bool = False
    slots: tuple[SurveyedSlot, ...] = ()


class Inventory(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Everything that the environment holds, read uncached, in one or more parts."""

    incarnation: str
    term: int = 0
    part: int = 0
    parts: int = 0
    slots: tuple[SlotState, ...] = ()

