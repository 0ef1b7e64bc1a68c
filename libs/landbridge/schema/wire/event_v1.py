# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again.
"""Documents as every service knows them, and alerts. What is known about environments, on
lb.v1.environment.<event>.<environment>. Each event is the whole current value. What happened to operations, on
lb.v1.operation.<event>.<project>. Readers tolerate unknown fields and enum values."""

from datetime import datetime
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import msgspec
from landbridge.schema.wire.common_v1 import Epoch
from landbridge.schema.wire.report_v1 import AttemptReport, Evidence

Moment = Annotated[datetime, msgspec.Meta(tz=True)]

__all__ = [
    "Alert",
    "AlertState",
    "Assessment",
    "AttemptReport",
    "CatalogueEntry",
    "Condition",
    "ContractVersion",
    "ControlHold",
    "DecidedOperation",
    "Decision",
    "DriftItem",
    "EmergencyOverride",
    "EnvironmentCharges",
    "EnvironmentContractChanged",
    "EnvironmentControl",
    "EnvironmentDrift",
    "EnvironmentEvidence",
    "EnvironmentLink",
    "EnvironmentVerdict",
    "Epoch",
    "Evidence",
    "LinkState",
    "Measured",
    "OperationAccepted",
    "OperationChanged",
    "OperationFreed",
    "OperationRefused",
    "OperationRequeued",
    "OperationRound",
    "OperationsAssessed",
    "OperationsDecided",
    "OperationsPreempted",
    "OperationsWaiting",
    "Phase",
    "PreviousEvidence",
    "Problem",
    "ReportVerdict",
    "Route",
    "ScoreCard",
    "Severity",
    "UnownedCharge",
    "Violation",
    "ViolationKind",
]


class AlertState(StrEnum):
    """Whether an alert's cause is there."""

    # Not known to this reader.
    UNSPECIFIED = ""
    # It is.
    FIRING = "firing"
    # It is gone.
    RESOLVED = "resolved"

    @classmethod
    def _missing_(cls, value: object) -> "AlertState":
        return cls.UNSPECIFIED


class Severity(StrEnum):
    """How soon somebody should look."""

    # Not known to this reader.
    UNSPECIFIED = ""
    # Now: users are affected.
    CRITICAL = "critical"
    # Soon: a margin is shrinking.
    WARNING = "warning"
    # When there is time.
    INFO = "info"

    @classmethod
    def _missing_(cls, value: object) -> "Severity":
        return cls.UNSPECIFIED


class LinkState(StrEnum):
    """Whether the centre hears an environment."""

    # Not known to this reader.
    UNSPECIFIED = ""
    # Heard within the lease's time.
    CONNECTED = "connected"
    # Not heard for longer than the lease's time.
    LOST = "lost"
    # Heard again; its inventory is being compared.
    RECONCILING = "reconciling"
    # Never heard yet.
    NEVER = "never"

    @classmethod
    def _missing_(cls, value: object) -> "LinkState":
        return cls.UNSPECIFIED


class Phase(StrEnum):
    """Where an operation stands."""

    # Not known to this reader.
    UNSPECIFIED = ""
    # Committed by intake; nothing is decided yet.
    ACCEPTED = "accepted"
    # Waits for an eligible environment, quota or a turn.
    QUEUED = "queued"
    # Placed and offered; nothing runs yet.
    PENDING = "pending"
    # Runs.
    RUNNING = "running"
    # An attempt ended and another will follow.
    RETRYING = "retrying"
    # Ended as declared, acceptance included.
    COMPLETED = "completed"
    # Ended otherwise.
    FAILED = "failed"
    # Ended by a person.
    CANCELLED = "cancelled"

    @classmethod
    def _missing_(cls, value: object) -> "Phase":
        return cls.UNSPECIFIED


class ViolationKind(StrEnum):
    """What kind of obstacle a violation is."""

    # Not known to this reader.
    UNSPECIFIED = ""
    # This environment can never run it.
    NEVER = "never"
    # It may fit later without anybody changing anything.
    NOT_NOW = "not-now"
    # Someone has to repair or configure something.
    MISCONFIGURED = "misconfigured"

    @classmethod
    def _missing_(cls, value: object) -> "ViolationKind":
        return cls.UNSPECIFIED


class Route(StrEnum):
    """Why the chosen environment was chosen."""

    # Not known to this reader.
    UNSPECIFIED = ""
    # No environment ranked higher.
    PREFERRED = "preferred"
    # A better environment was full or not eligible for now.
    OVERFLOW = "overflow"
    # The previous environment was lost or failed.
    FAILOVER = "failover"
    # The ranking changed since the previous attempt.
    DRIFT = "drift"
    # A person forced it.
    EMERGENCY_OVERRIDE = "emergency-override"

    @classmethod
    def _missing_(cls, value: object) -> "Route":
        return cls.UNSPECIFIED


class ReportVerdict(StrEnum):
    """What the coordinator made of a report."""

    # No report, or not known to this reader.
    UNSPECIFIED = ""
    # It counts.
    ACCEPTED = "accepted"
    # Its epoch is not the current one; it is kept as a record.
    SUPERSEDED = "superseded"
    # It contradicts what is known; it is kept as a record.
    REFUSED = "refused"

    @classmethod
    def _missing_(cls, value: object) -> "ReportVerdict":
        return cls.UNSPECIFIED


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The current version of one document; a deletion says so."""

    kind: str
    name: str
    version: int = 0
    document: bytes = b""
    sha256: str = ""
    deleted: bool = False
    at: Moment


class Alert(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something that a person should know about."""

    rule: str
    fingerprint: str
    state: AlertState = AlertState.UNSPECIFIED
    severity: Severity = Severity.UNSPECIFIED
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    summary: str = ""
    description: str = ""
    starts_at: Moment
    ends_at: Moment | None = None


class ContractVersion(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One version of an environment's contract."""

    version: int
    phase: str
    document: bytes = b""
    sha256: str = ""


class EnvironmentContractChanged(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The contract versions of an environment that are not retired."""

    environment: str
    at: Moment
    versions: tuple[ContractVersion, ...] = ()


class PreviousEvidence(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The latest evidence for a version of a contract that is active beside a newer one."""

    contract_version: int = 0
    items: tuple[Evidence, ...] = ()


class EnvironmentEvidence(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The latest evidence for every claim of an environment."""

    environment: str
    at: Moment
    contract_version: int = 0
    items: tuple[Evidence, ...] = ()
    previous: PreviousEvidence | None = None


class EnvironmentLink(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Whether the centre hears an environment, and what its dispatcher says of itself."""

    environment: str
    state: LinkState = LinkState.UNSPECIFIED
    since: Moment | None = None
    term: int = 0
    lease_until: Moment | None = None
    features: tuple[str, ...] = ()
    executor: str = ""
    incarnation: str = ""
    quarantined: int = 0


class ControlHold(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of an environment that an operator has get no new work: a capability class, or all that nodes of a label
    offer."""

    capability_class: str = ""
    node_selector: str = ""
    reason: str = ""
    by: str = ""
    at: Moment | None = None


class EnvironmentControl(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What an operator wants of an environment."""

    environment: str
    paused: bool = False
    draining: bool = False
    reason: str = ""
    by: str = ""
    at: Moment
    holds: tuple[ControlHold, ...] = ()


class DriftItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One difference between what runs in an environment and what the record says."""

    kind: str
    operation: str
    epoch: str = ""
    wanted: str = ""
    found: str = ""
    since: Moment | None = None


class EnvironmentDrift(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """All differences between what runs in an environment and what the record says; none once they are gone."""

    environment: str
    at: Moment
    items: tuple[DriftItem, ...] = ()


class UnownedCharge(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A charge that no placement holds."""

    operation: str
    round: int = 0
    queue: str = ""
    project: str = ""
    reason: str = ""
    released: bool = False
    since: Moment | None = None


class EnvironmentCharges(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """All charges in an environment that were found to be held by nothing; none once they are gone for a while."""

    environment: str
    at: Moment
    items: tuple[UnownedCharge, ...] = ()


class OperationAccepted(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An operation was committed. Everything after intake reads only what is here."""

    operation: str
    project: str
    name: str = ""
    queue: str = ""
    op_seq: int
    at: Moment
    spec_sha256: str = ""
    effective: bytes
    effective_sha256: str = ""
    idempotency_key: str = ""
    submitted_by: str = ""
    retry_of: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One thing wrong with a document."""

    path: str = ""
    line: int = 0
    column: int = 0
    code: str = ""
    message: str = ""
    suggestion: str = ""


class OperationRefused(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A submission was refused."""

    project: str = ""
    source: str = ""
    submission: str = ""
    at: Moment
    problems: tuple[Problem, ...] = ()
    conflicts_with: str = ""


class OperationRound(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One round of deciding about one operation."""

    operation: str
    round: int = 0


class Violation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One reason why an environment cannot run a class of operations."""

    constraint: str
    reason: str = ""
    kind: ViolationKind = ViolationKind.UNSPECIFIED
    wanted: str = ""
    found: str = ""


class EnvironmentVerdict(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Whether one environment can run a class of operations."""

    environment: str
    contract_version: int = 0
    eligible: bool = False
    valid_until: Moment | None = None
    violations: tuple[Violation, ...] = ()
    classes: tuple[str, ...] = ()


class Assessment(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The verdict about every environment for one requirement class. Its id is a hash of the content without the time,
    so that equal verdicts are stored once."""

    id: str
    requirement_class: str
    at: Moment
    valid_until: Moment | None = None
    requirements: bytes = b""
    eligible: bool = False
    condition: str = ""
    environments: tuple[EnvironmentVerdict, ...] = ()
    inputs: Mapping[str, str] = msgspec.field(default_factory=dict)


class OperationsAssessed(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Operations of one class were assessed. An empty list announces a changed verdict of the class."""

    assessment: Assessment
    operations: tuple[OperationRound, ...] = ()


class OperationsWaiting(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Operations have to wait."""

    by: str = ""
    operations: tuple[OperationRound, ...] = ()
    reason: str = ""
    message: str = ""
    assessment_id: str = ""
    condition: str = ""


class Measured(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One preference, measured for one environment."""

    preference: str
    value: float | None = None
    unit: str = ""
    source: str = ""
    normalised: float = 0.0
    weight: float = 0.0
    unknown: bool = False


class ScoreCard(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The score of one environment."""

    environment: str
    total: float = 0.0
    measurements: tuple[Measured, ...] = ()
    served_by: str = ""


class EmergencyOverride(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A named person placed an operation where the rules or its queue would not have."""

    environment: str
    by: str = ""
    reason: str = ""
    overridden: tuple[Violation, ...] = ()
    waited: str = ""


class Decision(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Why operations go where they go. Its id is a hash of the content without the time."""

    id: str
    assessment_id: str
    at: Moment
    policy_version: str = ""
    route: Route = Route.UNSPECIFIED
    ranked: tuple[ScoreCard, ...] = ()
    inputs: Mapping[str, str] = msgspec.field(default_factory=dict)
    override: EmergencyOverride | None = None


class DecidedOperation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Where one operation goes."""

    operation: str
    round: int = 0
    environment: str
    contract_version: int = 0
    valid_until: Moment | None = None
    served_by: str = ""


class OperationsDecided(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Operations were admitted and given an environment."""

    decision: Decision
    operations: tuple[DecidedOperation, ...] = ()


class OperationsPreempted(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Operations have to leave their environments, so that others find room. They keep what they hold until the
    coordinator says that they ended or left."""

    operations: tuple[OperationRound, ...] = ()
    reason: str = ""
    message: str = ""
    claimant: str = ""


class Condition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something that holds beside the phase: unplaceable, control-lost, cancelling, suspended."""

    type: str
    status: bool = False
    reason: str = ""
    message: str = ""


class OperationChanged(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One step of an operation's lifecycle, written by the coordinator only, gapless by op_seq."""

    operation: str
    project: str
    op_seq: int
    phase: Phase = Phase.UNSPECIFIED
    at: Moment
    round: int = 0
    attempt: int = 0
    epoch: Epoch | None = None
    environment: str = ""
    decision_id: str = ""
    reason: str = ""
    message: str = ""
    condition: Condition | None = None
    report: AttemptReport | None = None
    verdict: ReportVerdict = ReportVerdict.UNSPECIFIED


class OperationRequeued(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An operation has to be placed again."""

    operation: str
    project: str
    round: int
    effective: bytes = b""
    reason: str = ""
    exclude: tuple[str, ...] = ()
    failed_over: bool = False


class OperationFreed(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What an operation held in an environment is free again."""

    operation: str
    project: str
    round: int = 0
    environment: str = ""

