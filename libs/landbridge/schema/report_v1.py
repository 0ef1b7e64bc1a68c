# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again.
"""What an environment reports, on lb.v1.report.<environment>.<kind>. Readers tolerate unknown fields and enum values."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field
from landbridge.schema.common_v1 import Epoch
from landbridge.schema.base import Message, Moment

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


class OutputRef(Message):
    """One output as the environment found it after the attempt."""

    # The logical connection that holds it.
    connection: str = ""
    # The path below the connection.
    path: str = ""
    # Its size in bytes.
    bytes: int = 0
    # SHA-256 of its content or of its manifest, in hex.
    sha256: str = ""
    # Whether it was there.
    exists: bool = False


class AcceptanceResult(Message):
    """One acceptance criterion, evaluated where the outputs are."""

    # The criterion in words, as declared.
    criterion: Annotated[str, Field(min_length=1)]
    # Whether it was met.
    met: bool = False
    # What was found.
    found: str = ""


class CheckpointRef(Message):
    """A sealed checkpoint."""

    # The epoch that wrote it.
    epoch: Epoch
    # The manifest's path below the checkpoint connection.
    manifest: str = ""


class Resolved(Message):
    """What an attempt really ran on and with."""

    # The provider's own name of the workload.
    workload: str = ""
    # The host or node.
    host: str = ""
    # The hardware as the provider names it.
    hardware: str = ""
    # The processor architecture.
    architecture: str = ""
    # The local principal that the workload ran as.
    principal: str = ""
    # The digest of the image that ran; empty for plain processes.
    image_digest: str = ""
    # Physical location by logical connection.
    connections: Mapping[str, str] = Field(default_factory=dict)
    # The contract version in force.
    contract_version: int = 0
    # The resources held, as quantities.
    resources: Mapping[str, str] = Field(default_factory=dict)
    # Price per hour; absent means unknown, never zero.
    cost_per_hour: float | None = None
    # ISO 4217 code of the price.
    currency: str = ""
    # The executor that ran it.
    executor: str = ""
    # Where callers reach a service: by the route that was made for it, else within its cluster.
    endpoint: str = ""


class AttemptReport(Message):
    """The state of one attempt, with everything that is known about it so far."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The placement's epoch.
    epoch: Epoch
    # Where the attempt stands.
    state: AttemptState = AttemptState.UNSPECIFIED
    # The lease term under which it was started.
    term: int = 0
    # When the environment saw this state.
    at: Moment
    # When the workload started.
    started_at: Moment | None = None
    # When the workload ended.
    finished_at: Moment | None = None
    # How it ended.
    outcome: AttemptOutcome = AttemptOutcome.UNSPECIFIED
    # Why, as a code: exit-code, signal, out-of-memory, timeout, acceptance-not-met, self-stopped and others.
    reason: str = ""
    # The exit code of the main process.
    exit_code: int | None = None
    # The number of the signal that ended it.
    signal: int | None = None
    # The reason in words, for people.
    message: str = ""
    # Outputs by name.
    outputs: Mapping[str, OutputRef] = Field(default_factory=dict)
    # Metrics that the workload logged, last value by name.
    metrics: Mapping[str, float] = Field(default_factory=dict)
    # Every acceptance criterion with its result.
    acceptance: tuple[AcceptanceResult, ...] = ()
    # The latest sealed checkpoint.
    checkpoint: CheckpointRef | None = None
    # What it ran on and with.
    resolved: Resolved | None = None


class AttemptReports(Message):
    """Several attempts at once."""

    # The dispatcher's incarnation.
    incarnation: Annotated[str, Field(min_length=1)]
    # The lease term that the dispatcher holds.
    term: int = 0
    # The reports, oldest first.
    items: tuple[AttemptReport, ...] = ()


class Evidence(Message):
    """The latest proof of one claim."""

    # The claim as a path into the contract's spec, such as classes.gpu-80gb.
    claim: Annotated[str, Field(min_length=1)]
    # What the probe found.
    result: EvidenceResult = EvidenceResult.UNSPECIFIED
    # How much was proven, where the claim is a number.
    proven: float | None = None
    # How much is claimed, where the claim is a number.
    claimed: float | None = None
    # The probe's name.
    probe: str = ""
    # What exactly was probed (driver, node boot, image digest); a change voids the evidence.
    subject: str = ""
    # When it was observed, on the centre's clock.
    at: Moment
    # Until when it counts.
    expires: Moment
    # What was seen, for people.
    detail: str = ""


class EvidenceReports(Message):
    """Several pieces of evidence at once."""

    # The contract version that was probed.
    contract_version: int = 0
    # The evidence.
    items: tuple[Evidence, ...] = ()


class SlotState(Message):
    """One slot as found in the environment."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The slot's epoch.
    epoch: Epoch
    # What stands in it.
    state: SlotPhase = SlotPhase.UNSPECIFIED
    # The lease term of the grant that it was occupied under.
    grant_term: int = 0
    # The latest report of its attempt.
    report: AttemptReport | None = None


class SurveyedSlot(Message):
    """One slot of a survey."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The placement's epoch.
    epoch: Epoch
    # Whether it has ended, told or not.
    over: bool = False


class Survey(Message):
    """What the environment holds just now, read uncached, told now and then so that the record can be compared with
    it."""

    # The dispatcher's incarnation.
    incarnation: Annotated[str, Field(min_length=1)]
    # The lease term that the dispatcher holds.
    term: int = 0
    # When it was taken, by the environment's clock.
    at: Moment | None = None
    # Whether all slots are listed; what is not listed is then not there.
    complete: bool = False
    # The slots.
    slots: tuple[SurveyedSlot, ...] = ()


class Inventory(Message):
    """Everything that the environment holds, read uncached, in one or more parts."""

    # The dispatcher's incarnation.
    incarnation: Annotated[str, Field(min_length=1)]
    # The lease term that the dispatcher holds.
    term: int = 0
    # This part's number, from 1.
    part: int = 0
    # How many parts there are.
    parts: int = 0
    # The slots of this part.
    slots: tuple[SlotState, ...] = ()

