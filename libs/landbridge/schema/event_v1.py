# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again.
"""Documents as every service knows them, and alerts. What is known about environments, on
lb.v1.environment.<event>.<environment>. Each event is the whole current value. What happened to operations, on
lb.v1.operation.<event>.<project>. Readers tolerate unknown fields and enum values."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field
from landbridge.schema.common_v1 import Epoch
from landbridge.schema.report_v1 import AttemptReport, Evidence
from landbridge.schema.base import Bytes, Message, Moment

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


class CatalogueEntry(Message):
    """The current version of one document; a deletion says so."""

    # project, queue, policy, preset, component, capability-class, connection or access.
    kind: Annotated[str, Field(min_length=1)]
    # The document's name.
    name: Annotated[str, Field(min_length=1)]
    # Its version, which grows with every change.
    version: int = 0
    # The document as canonical JSON.
    document: Bytes = b""
    # SHA-256 of the document's bytes, in hex.
    sha256: str = ""
    # Whether it was deleted.
    deleted: bool = False
    # When it changed.
    at: Moment


class Alert(Message):
    """Something that a person should know about."""

    # The rule's name.
    rule: Annotated[str, Field(min_length=1)]
    # A hash of rule and labels: what makes two alerts the same.
    fingerprint: Annotated[str, Field(min_length=1)]
    # Whether the cause is there.
    state: AlertState = AlertState.UNSPECIFIED
    # How soon somebody should look.
    severity: Severity = Severity.UNSPECIFIED
    # What it is about.
    labels: Mapping[str, str] = Field(default_factory=dict)
    # One line for people.
    summary: str = ""
    # What is known, and what to do.
    description: str = ""
    # Since when.
    starts_at: Moment
    # Since when no more.
    ends_at: Moment | None = None


class ContractVersion(Message):
    """One version of an environment's contract."""

    # Its number.
    version: int
    # Its phase: draft, canary, active, retiring or retired.
    phase: Annotated[str, Field(min_length=1)]
    # The contract's bytes, exactly as registered.
    document: Bytes = b""
    # SHA-256 of the bytes, in hex.
    sha256: str = ""


class EnvironmentContractChanged(Message):
    """The contract versions of an environment that are not retired."""

    # The environment's name.
    environment: Annotated[str, Field(min_length=1)]
    # When it changed.
    at: Moment
    # The versions; empty once the environment is removed.
    versions: tuple[ContractVersion, ...] = ()


class PreviousEvidence(Message):
    """The latest evidence for a version of a contract that is active beside a newer one."""

    # The contract version that was probed.
    contract_version: int = 0
    # The evidence, one piece a claim and probe.
    items: tuple[Evidence, ...] = ()


class EnvironmentEvidence(Message):
    """The latest evidence for every claim of an environment."""

    # The environment's name.
    environment: Annotated[str, Field(min_length=1)]
    # When it changed.
    at: Moment
    # The contract version that was probed.
    contract_version: int = 0
    # The evidence, one piece a claim and probe.
    items: tuple[Evidence, ...] = ()
    # The same for the version before, as long as both are active.
    previous: PreviousEvidence | None = None


class EnvironmentLink(Message):
    """Whether the centre hears an environment, and what its dispatcher says of itself."""

    # The environment's name.
    environment: Annotated[str, Field(min_length=1)]
    # The link's state.
    state: LinkState = LinkState.UNSPECIFIED
    # Since when.
    since: Moment | None = None
    # The lease's term.
    term: int = 0
    # Until when the lease ran when this was written.
    lease_until: Moment | None = None
    # Features that the dispatcher understands.
    features: tuple[str, ...] = ()
    # The executor behind it.
    executor: str = ""
    # The dispatcher's incarnation.
    incarnation: str = ""
    # Slots found there that nobody in the centre knows of, until a person has decided about them.
    quarantined: int = 0


class ControlHold(Message):
    """A part of an environment that an operator has get no new work: a capability class, or all that nodes of a label
    offer."""

    # The capability class; empty where a label is named.
    capability_class: str = ""
    # The label of nodes, as "key=value"; empty where a class is named.
    node_selector: str = ""
    # Why, in words.
    reason: str = ""
    # Who asked.
    by: str = ""
    # Since when.
    at: Moment | None = None


class EnvironmentControl(Message):
    """What an operator wants of an environment."""

    # The environment's name.
    environment: Annotated[str, Field(min_length=1)]
    # Whether it gets no new work.
    paused: bool = False
    # Whether its work is being moved or finished.
    draining: bool = False
    # Why, in words.
    reason: str = ""
    # Who asked.
    by: str = ""
    # When.
    at: Moment
    # Parts of it that get no new work, whatever holds of the rest.
    holds: tuple[ControlHold, ...] = ()


class DriftItem(Message):
    """One difference between what runs in an environment and what the record says."""

    # What differs: unknown-work, runs-elsewhere, missing-work, contract-version or removed-externally.
    kind: Annotated[str, Field(min_length=1)]
    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The placement's epoch, such as "1.3".
    epoch: str = ""
    # What the record says, for people.
    wanted: str = ""
    # What is found, for people.
    found: str = ""
    # Since when it is seen.
    since: Moment | None = None


class EnvironmentDrift(Message):
    """All differences between what runs in an environment and what the record says; none once they are gone."""

    # The environment's name.
    environment: Annotated[str, Field(min_length=1)]
    # When it changed.
    at: Moment
    # The differences.
    items: tuple[DriftItem, ...] = ()


class UnownedCharge(Message):
    """A charge that no placement holds."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The round that it was charged in.
    round: int = 0
    # The queue that it counts in.
    queue: str = ""
    # The project that it counts in.
    project: str = ""
    # Why nothing holds it, as a code: ended, over, undecided, ahead, elsewhere or unknown.
    reason: str = ""
    # Whether it was given back; what may still be placed is told only.
    released: bool = False
    # When it was found.
    since: Moment | None = None


class EnvironmentCharges(Message):
    """All charges in an environment that were found to be held by nothing; none once they are gone for a while."""

    # The environment's name.
    environment: Annotated[str, Field(min_length=1)]
    # When it changed.
    at: Moment
    # The charges.
    items: tuple[UnownedCharge, ...] = ()


class OperationAccepted(Message):
    """An operation was committed. Everything after intake reads only what is here."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # Its project.
    project: Annotated[str, Field(min_length=1)]
    # Its name, for people.
    name: str = ""
    # The queue that it waits in.
    queue: str = ""
    # Always 1: the first event of the operation.
    op_seq: int
    # When it was committed.
    at: Moment
    # SHA-256 of the bytes as submitted, in hex.
    spec_sha256: str = ""
    # The rendered operation (presets and project defaults merged) as canonical JSON.
    effective: Bytes
    # SHA-256 of the rendered operation, in hex.
    effective_sha256: str = ""
    # The key that makes submitting it again harmless.
    idempotency_key: str = ""
    # Who submitted it.
    submitted_by: str = ""
    # The operation that it repeats; empty for none.
    retry_of: str = ""


class Problem(Message):
    """One thing wrong with a document."""

    # Where, as a path such as spec.resources.requests.cpu.
    path: str = ""
    # Line in the text, from 1; 0 if unknown.
    line: int = 0
    # Column in the text, from 1; 0 if unknown.
    column: int = 0
    # What kind of problem, as a code.
    code: str = ""
    # What is wrong: expected and found.
    message: str = ""
    # What to do.
    suggestion: str = ""


class OperationRefused(Message):
    """A submission was refused."""

    # The project that it was meant for; "_" if none could be read.
    project: str = ""
    # Who sent it: the source of the submission event.
    source: str = ""
    # The submission's own id.
    submission: str = ""
    # When it was refused.
    at: Moment
    # Everything that is wrong.
    problems: tuple[Problem, ...] = ()
    # The operation that already holds its idempotency key with other content.
    conflicts_with: str = ""


class OperationRound(Message):
    """One round of deciding about one operation."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The round, from 1; a new one begins when the operation has to be placed again.
    round: int = 0


class Violation(Message):
    """One reason why an environment cannot run a class of operations."""

    # The constraint's name.
    constraint: Annotated[str, Field(min_length=1)]
    # Why, as a code.
    reason: str = ""
    # What kind of obstacle it is.
    kind: ViolationKind = ViolationKind.UNSPECIFIED
    # What the operation wants.
    wanted: str = ""
    # What the environment has.
    found: str = ""


class EnvironmentVerdict(Message):
    """Whether one environment can run a class of operations."""

    # The environment's name.
    environment: Annotated[str, Field(min_length=1)]
    # The contract version that was judged.
    contract_version: int = 0
    # Whether nothing stands against it.
    eligible: bool = False
    # Until when this verdict holds if nothing changes.
    valid_until: Moment | None = None
    # Everything that stands against it.
    violations: tuple[Violation, ...] = ()
    # The accelerator classes by which it can be run there, the one to prefer first; none if it asks for no
    # accelerators.
    classes: tuple[str, ...] = ()


class Assessment(Message):
    """The verdict about every environment for one requirement class. Its id is a hash of the content without the time,
    so that equal verdicts are stored once."""

    # The content's hash.
    id: Annotated[str, Field(min_length=1)]
    # The requirement class: a hash of the fields that constraints, preferences and admission read.
    requirement_class: Annotated[str, Field(min_length=1)]
    # When it was made.
    at: Moment
    # Until when it holds if nothing changes.
    valid_until: Moment | None = None
    # The fields that ranking needs, as canonical JSON.
    requirements: Bytes = b""
    # Whether at least one environment can run the class.
    eligible: bool = False
    # "unplaceable" if no environment ever can, "not-now" if none can for now, else empty.
    condition: str = ""
    # The verdict of every environment.
    environments: tuple[EnvironmentVerdict, ...] = ()
    # Version of every input, by name.
    inputs: Mapping[str, str] = Field(default_factory=dict)


class OperationsAssessed(Message):
    """Operations of one class were assessed. An empty list announces a changed verdict of the class."""

    # The verdict.
    assessment: Assessment
    # The operations that it was made for.
    operations: tuple[OperationRound, ...] = ()


class OperationsWaiting(Message):
    """Operations have to wait."""

    # The service that makes them wait: eligibility or ranking.
    by: str = ""
    # The operations.
    operations: tuple[OperationRound, ...] = ()
    # Why, as a code.
    reason: str = ""
    # Why, in words.
    message: str = ""
    # The verdict behind it.
    assessment_id: str = ""
    # "unplaceable" if no environment ever can, else "not-now" or empty.
    condition: str = ""


class Measured(Message):
    """One preference, measured for one environment."""

    # The preference's name.
    preference: Annotated[str, Field(min_length=1)]
    # The measurement; absent if unknown, never zero instead.
    value: float | None = None
    # The measurement's unit.
    unit: str = ""
    # Where it comes from.
    source: str = ""
    # The value mapped to 0 (worst) to 1 (best).
    normalised: float = 0.0
    # The weight that it got.
    weight: float = 0.0
    # Whether the value is unknown.
    unknown: bool = False


class ScoreCard(Message):
    """The score of one environment."""

    # The environment's name.
    environment: Annotated[str, Field(min_length=1)]
    # The weighted sum, 0 to 1.
    total: float = 0.0
    # Every preference.
    measurements: tuple[Measured, ...] = ()
    # The accelerator class that was scored, where the environment has several cards; empty where it has one.
    served_by: str = ""


class EmergencyOverride(Message):
    """A named person placed an operation where the rules or its queue would not have."""

    # The environment that the person named.
    environment: Annotated[str, Field(min_length=1)]
    # Who.
    by: str = ""
    # Why, in words.
    reason: str = ""
    # The rules that were overridden, with what each wanted and found.
    overridden: tuple[Violation, ...] = ()
    # What it waited for by its queue; empty if it was its turn.
    waited: str = ""


class Decision(Message):
    """Why operations go where they go. Its id is a hash of the content without the time."""

    # The content's hash.
    id: Annotated[str, Field(min_length=1)]
    # The verdict that it rests on.
    assessment_id: Annotated[str, Field(min_length=1)]
    # When it was made.
    at: Moment
    # The version of the policy that weighed.
    policy_version: str = ""
    # The kind of route.
    route: Route = Route.UNSPECIFIED
    # Eligible environments, best first.
    ranked: tuple[ScoreCard, ...] = ()
    # Version of every input, by name.
    inputs: Mapping[str, str] = Field(default_factory=dict)
    # Who placed it by emergency override, and what was overridden; absent for all other routes.
    override: EmergencyOverride | None = None


class DecidedOperation(Message):
    """Where one operation goes."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The round that is decided.
    round: int = 0
    # The environment that it goes to.
    environment: Annotated[str, Field(min_length=1)]
    # The contract version of that environment that the verdict was made for; 0 if not known.
    contract_version: int = 0
    # Until when the verdict about that environment holds; absent means until something changes.
    valid_until: Moment | None = None
    # The class of its accelerators there, which may be another than the one it names; empty if it asks for none.
    served_by: str = ""


class OperationsDecided(Message):
    """Operations were admitted and given an environment."""

    # The decision.
    decision: Decision
    # The operations.
    operations: tuple[DecidedOperation, ...] = ()


class OperationsPreempted(Message):
    """Operations have to leave their environments, so that others find room. They keep what they hold until the
    coordinator says that they ended or left."""

    # The operations, with the rounds that they hold something by.
    operations: tuple[OperationRound, ...] = ()
    # Why, as a code: lower-priority or reclaimed.
    reason: str = ""
    # Why, in words.
    message: str = ""
    # The operation that they leave for.
    claimant: str = ""


class Condition(Message):
    """Something that holds beside the phase: unplaceable, control-lost, cancelling, suspended."""

    # The condition's name.
    type: Annotated[str, Field(min_length=1)]
    # Whether it holds.
    status: bool = False
    # Why, as a code.
    reason: str = ""
    # Why, in words.
    message: str = ""


class OperationChanged(Message):
    """One step of an operation's lifecycle, written by the coordinator only, gapless by op_seq."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # Its project.
    project: Annotated[str, Field(min_length=1)]
    # The event's number within the operation, from 2.
    op_seq: int
    # The phase after this event.
    phase: Phase = Phase.UNSPECIFIED
    # When it happened.
    at: Moment
    # The round of deciding, from 1.
    round: int = 0
    # The attempt's number, from 1; 0 before the first. Of a superseded report: that of the placement that it is
    # about.
    attempt: int = 0
    # The current placement's epoch; of a superseded report that of the placement that it is about.
    epoch: Epoch | None = None
    # The environment that it is placed in; of a superseded report the one that told it.
    environment: str = ""
    # The decision behind the placement.
    decision_id: str = ""
    # Why, as a code.
    reason: str = ""
    # Why, in words.
    message: str = ""
    # The condition that changed.
    condition: Condition | None = None
    # The report that caused it.
    report: AttemptReport | None = None
    # What was made of the report.
    verdict: ReportVerdict = ReportVerdict.UNSPECIFIED


class OperationRequeued(Message):
    """An operation has to be placed again."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # Its project.
    project: Annotated[str, Field(min_length=1)]
    # The new round.
    round: int
    # The rendered operation, as accepted.
    effective: Bytes = b""
    # Why, as a code.
    reason: str = ""
    # Environments that must not be chosen in this round.
    exclude: tuple[str, ...] = ()
    # Whether the previous environment was lost.
    failed_over: bool = False


class OperationFreed(Message):
    """What an operation held in an environment is free again."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # Its project.
    project: Annotated[str, Field(min_length=1)]
    # The round whose placement is free.
    round: int = 0
    # The environment.
    environment: str = ""

