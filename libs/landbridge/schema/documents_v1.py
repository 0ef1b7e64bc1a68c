# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again.
"""Documents that people write. Unknown fields are errors; quantities and durations are text; named things are maps."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field
from landbridge.schema.base import Bandwidth, Bytes, Commit, Currency, Date, Digest, Document, Duration, Moment, Name, NameOrAll, Percent, Quantity, Reference, Sha256, Variable

__all__ = [
    "Accelerator",
    "AcceptanceCriterion",
    "Accepts",
    "Access",
    "AdmissionBoundary",
    "Behaviour",
    "Boundaries",
    "CapabilityAttributes",
    "CapabilityClass",
    "CapabilityClassSpec",
    "CapabilityKind",
    "Carbon",
    "Checkpoints",
    "Choosing",
    "ClassOffer",
    "Component",
    "ComponentSpec",
    "Connection",
    "ConnectionOffer",
    "ConnectionSpec",
    "ConnectionType",
    "Constraints",
    "ContractPhase",
    "ControlPlaneBoundary",
    "CostModel",
    "DataClass",
    "DeviceException",
    "Disconnection",
    "DisconnectionPolicy",
    "EnvironmentContract",
    "EnvironmentContractSpec",
    "EnvironmentContractStatus",
    "EnvironmentSelection",
    "EnvironmentSettings",
    "EvidenceRecord",
    "Executor",
    "FrameworkVia",
    "Gang",
    "GangAfterStart",
    "GangFramework",
    "IdentityBoundary",
    "Image",
    "ImageVariant",
    "Input",
    "Interruptible",
    "Lifecycle",
    "LinkClaim",
    "LinkStatus",
    "Location",
    "MachineList",
    "MaintenanceWindow",
    "Models",
    "Movement",
    "NetworkBoundary",
    "NetworkDefault",
    "ObjectMetadata",
    "Objectives",
    "Operation",
    "OperationMetadata",
    "OperationSpec",
    "Operator",
    "Output",
    "Overflow",
    "Owner",
    "Parameter",
    "ParameterType",
    "Policy",
    "PolicyScope",
    "PolicySpec",
    "Port",
    "Preemption",
    "Preset",
    "PresetSpec",
    "Project",
    "ProjectDefaults",
    "ProjectLimits",
    "ProjectSpec",
    "Queue",
    "QueueSpec",
    "Reclaim",
    "Recovery",
    "RecoveryMode",
    "Replication",
    "ResourceRequests",
    "Resources",
    "Retries",
    "Rollout",
    "Rule",
    "RuleKind",
    "RuleSpec",
    "Runtime",
    "Scenario",
    "ScenarioPolicy",
    "ScenarioSpec",
    "SecurityTier",
    "ServiceRoute",
    "Simulation",
    "Source",
    "StorageOffer",
    "Support",
    "TenancyBoundary",
    "Toleration",
    "Trace",
    "TraceFormat",
    "Via",
    "WorkloadType",
]


class ParameterType(StrEnum):
    """What the values of a parameter are. They are always written as text."""

    # Not stated: text.
    UNSPECIFIED = ""
    # Any text.
    TEXT = "text"
    # A whole number: 8, -1.
    INTEGER = "integer"
    # A number: 0.001, 1e-3, 8.
    NUMBER = "number"
    # true or false.
    BOOLEAN = "boolean"
    # Bytes or processors: 64Gi, 500m.
    QUANTITY = "quantity"
    # A length of time: 15m, 1h30m.
    DURATION = "duration"


class Preemption(StrEnum):
    """Whether waiting work may displace running work of a lower priority."""

    # Not stated: never.
    UNSPECIFIED = ""
    # It may not.
    NEVER = "never"
    # It may displace work of a lower priority in this queue.
    LOWER_PRIORITY = "lower-priority"


class Reclaim(StrEnum):
    """Whether waiting work within its queue's quota may displace running work that other queues of the same tree hold
    beyond theirs. Such work always goes first when something is released."""

    # Not stated: never.
    UNSPECIFIED = ""
    # It may not; it waits until the borrowers end.
    NEVER = "never"
    # It may, of a lower priority.
    LOWER_PRIORITY = "lower-priority"
    # It may, of any priority.
    ANY = "any"


class RuleKind(StrEnum):
    """What follows for an environment that does not meet a rule."""

    # Not stated: never.
    UNSPECIFIED = ""
    # It cannot run the operation, whatever one waits for.
    NEVER = "never"
    # It may later, without anybody changing the operation.
    NOT_NOW = "not-now"


class CapabilityKind(StrEnum):
    """What kind of hardware a class is."""

    # Not stated.
    UNSPECIFIED = ""
    # An accelerator, asked for by count.
    ACCELERATOR = "accelerator"
    # Processors and memory.
    CPU = "cpu"


class Executor(StrEnum):
    """How work is run in an environment."""

    # Not stated.
    UNSPECIFIED = ""
    # Plain processes of the dispatcher's machine.
    PROCESS = "process"
    # Nothing runs: durations and outcomes are made up, for tests and planning.
    SIMULATED = "simulated"
    # A Kubernetes cluster.
    KUBERNETES = "kubernetes"
    # A Slurm cluster.
    SLURM = "slurm"
    # A managed model service.
    MANAGED_ENDPOINT = "managed-endpoint"


class ContractPhase(StrEnum):
    """Where a contract version stands."""

    # Not stated.
    UNSPECIFIED = ""
    # Written, not in use.
    DRAFT = "draft"
    # Being tried with a representative suite.
    CANARY = "canary"
    # Takes work.
    ACTIVE = "active"
    # Finishes its work and takes no more.
    RETIRING = "retiring"
    # Over.
    RETIRED = "retired"


class Access(StrEnum):
    """What may be done through a connection."""

    # Not stated: read-only.
    UNSPECIFIED = ""
    # Reading.
    READ_ONLY = "read-only"
    # Reading and writing.
    READ_WRITE = "read-write"
    # Writing.
    WRITE_ONLY = "write-only"


class NetworkDefault(StrEnum):
    """Whether traffic is allowed unless a rule says otherwise."""

    # Not stated: allow.
    UNSPECIFIED = ""
    # It is not.
    DENY = "deny"
    # It is.
    ALLOW = "allow"


class Interruptible(StrEnum):
    """Whether work may run on hardware that can be taken away."""

    # Not stated: forbidden.
    UNSPECIFIED = ""
    # It may.
    ALLOW = "allow"
    # It must not.
    FORBID = "forbid"
    # Only there.
    REQUIRE = "require"


class DisconnectionPolicy(StrEnum):
    """What happens to running work while its environment is cut off."""

    # Not stated: continue.
    UNSPECIFIED = ""
    # It runs on; nothing moves because time passed.
    CONTINUE = "continue"
    # It runs to its end; nothing moves because time passed.
    MUST_FINISH = "must-finish"
    # It seals a checkpoint, stops, and may be placed again.
    CHECKPOINT_THEN_STOP = "checkpoint-then-stop"
    # It stops after the grace and may be placed again.
    STOP_AFTER_GRACE = "stop-after-grace"


class RecoveryMode(StrEnum):
    """How interrupted work goes on."""

    # Not stated.
    UNSPECIFIED = ""
    # From its latest checkpoint.
    RESUME = "resume"
    # From the beginning.
    RESTART = "restart"
    # Not at all.
    NEVER = "never"


class GangFramework(StrEnum):
    """What a distributed program expects of whoever starts it."""

    # Not stated: ranks.
    UNSPECIFIED = ""
    # Every replica runs the command and finds RANK, WORLD_SIZE and MASTER_ADDR.
    RANKS = "ranks"
    # The replicas are a Ray cluster; the command runs once, as its driver.
    RAY = "ray"


class GangAfterStart(StrEnum):
    """What becomes of the members of a gang once all have been granted their places."""

    # Not stated: together.
    UNSPECIFIED = ""
    # One that fails or is cancelled ends the others; one that has to be placed again has all of them placed again.
    TOGETHER = "together"
    # Each goes on by itself.
    APART = "apart"


class Operator(StrEnum):
    """Who operates an environment."""

    # Not stated.
    UNSPECIFIED = ""
    # The organisation itself.
    OWN = "own"
    # A partner under contract.
    PARTNER = "partner"
    # A public provider.
    PROVIDER = "provider"


class TraceFormat(StrEnum):
    """How a file of work is read."""

    # Not stated: operations.
    UNSPECIFIED = ""
    # Columns at, duration, operation and, if they are there, count, project and queue.
    OPERATIONS = "operations"
    # Columns of a list of pods: name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, creation_time,
    # deletion_time, scheduled_time.
    PODS = "pods"


class Choosing(StrEnum):
    """How the place is chosen among those that may be."""

    # Not stated: by rank.
    UNSPECIFIED = ""
    # As Landbridge does: by weighed preferences.
    RANKED = "ranked"
    # The first, in the order of their names, that has room.
    FIRST_FIT = "first-fit"
    # Any that has room.
    RANDOM = "random"


class WorkloadType(StrEnum):
    """What kind of workload an operation is."""

    # Not stated.
    UNSPECIFIED = ""
    # One workload that ends.
    JOB = "job"
    # Several replicas that start together and end.
    DISTRIBUTED_JOB = "distributed-job"
    # A workload that answers requests until it is stopped.
    SERVICE = "service"


class DataClass(StrEnum):
    """How sensitive data is. Each class includes the duties of those before it."""

    # Not stated.
    UNSPECIFIED = ""
    # Anybody may see it.
    PUBLIC = "public"
    # Everybody in the organisation may see it.
    INTERNAL = "internal"
    # Only those who need it may see it.
    CONFIDENTIAL = "confidential"
    # It must not leave the environments that are licensed for it; logs and prompts stay where they arise.
    RESTRICTED = "restricted"


class SecurityTier(StrEnum):
    """How well an environment is protected. Each tier includes the one before it."""

    # Not stated.
    UNSPECIFIED = ""
    # No promises.
    OPEN = "open"
    # The organisation's baseline.
    STANDARD = "standard"
    # Fit for restricted data.
    RESTRICTED = "restricted"


class ConnectionType(StrEnum):
    """What a connection leads to."""

    # Not stated.
    UNSPECIFIED = ""
    # An S3-compatible object store.
    S3 = "s3"
    # An OCI registry.
    REGISTRY = "registry"
    # A Git server.
    GIT = "git"
    # A mounted volume.
    VOLUME = "volume"
    # A directory of the machine, for plain processes.
    DIRECTORY = "directory"
    # A table catalogue.
    CATALOGUE = "catalogue"
    # A search or vector index.
    INDEX = "index"
    # A cache.
    CACHE = "cache"
    # A model service behind an endpoint.
    MODEL_ENDPOINT = "model-endpoint"


class Replication(StrEnum):
    """How an artifact is kept."""

    # Not stated.
    UNSPECIFIED = ""
    # Copied wherever it is needed.
    GLOBAL = "global"
    # Stays in its region.
    REGIONAL = "regional"
    # Not kept: it can be built again.
    REBUILD = "rebuild"


class ObjectMetadata(Document):
    """What every document but an operation says about itself."""

    # The name, unique among documents of its kind.
    name: Name
    # The version; a version never changes.
    version: Annotated[int, Field(ge=0)] = 0
    # Free labels, never used for placement.
    labels: Annotated[Mapping[str, str], Field(max_length=64)] = Field(default_factory=dict)
    # Free notes, never read by Landbridge.
    annotations: Annotated[Mapping[str, str], Field(max_length=64)] = Field(default_factory=dict)


class Owner(Document):
    """Who answers for something."""

    # The team.
    team: Annotated[str, Field(max_length=200)] = ""
    # How to reach it.
    contact: Annotated[str, Field(max_length=200)] = ""


class Parameter(Document):
    """One parameter of a component."""

    # What it means.
    description: Annotated[str, Field(max_length=1000)] = ""
    # The value if none is given; absent means one must be given.
    default: Annotated[str, Field(max_length=32768)] | None = None
    # A regular expression that values match.
    pattern: Annotated[str, Field(max_length=1000)] = ""
    # What its values are.
    type: ParameterType = ParameterType.UNSPECIFIED
    # The only values allowed; empty means any of the type.
    choices: Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=100)] = ()


class ImageVariant(Document):
    """One variant of an image."""

    # The variant's digest.
    digest: Digest
    # The repository, if it is another one.
    name: Annotated[str, Field(max_length=255)] = ""
    # The processor architecture that it is for.
    architecture: Annotated[str, Field(max_length=40)] = ""
    # The capability class that it is for.
    accelerator: Name = ""


class Image(Document):
    """An image of a logical registry, pinned by digest."""

    # The registry's connection.
    registry: Name = ""
    # The repository in it.
    name: Annotated[str, Field(max_length=255)] = ""
    # The digest of the image or of a multi-architecture index.
    digest: Digest = ""
    # Variants by accelerator runtime or architecture, chosen at placement.
    variants: Annotated[Mapping[Name, ImageVariant], Field(max_length=20)] = Field(default_factory=dict)


class Source(Document):
    """Code of a logical Git connection at one commit."""

    # The Git connection.
    connection: Name = ""
    # The full commit id.
    commit: Commit = ""
    # The repository below the connection.
    repository: Annotated[str, Field(max_length=255)] = ""
    # The directory in it to start in.
    path: Annotated[str, Field(max_length=1024)] = ""


class Input(Document):
    """Data to read."""

    # The logical connection.
    connection: Name = ""
    # The path below it.
    path: Annotated[str, Field(max_length=1024)] = ""
    # Where the workload sees it.
    mount_path: Annotated[str, Field(max_length=1024)] = ""
    # Its licence as an SPDX id or LicenseRef; the environment must allow it.
    license: Annotated[str, Field(max_length=200)] = ""
    # Its size, for staging time and transfer.
    size: Quantity = ""
    # How sensitive it is.
    data_class: DataClass = DataClass.UNSPECIFIED


class Output(Document):
    """An artifact to write."""

    # The logical connection.
    connection: Name = ""
    # The path below it.
    path: Annotated[str, Field(max_length=1024)] = ""
    # Where the workload writes it.
    mount_path: Annotated[str, Field(max_length=1024)] = ""
    # How it is kept.
    replication: Replication = Replication.UNSPECIFIED
    # How long it is kept.
    retention: Duration = ""
    # Its expected size.
    size: Quantity = ""
    # Its licence as an SPDX id or LicenseRef.
    license: Annotated[str, Field(max_length=200)] = ""
    # How sensitive it is.
    data_class: DataClass = DataClass.UNSPECIFIED


class Checkpoints(Document):
    """Where and how often progress is sealed."""

    # The logical connection; every recovery environment must read it.
    connection: Name = ""
    # The path below it.
    path: Annotated[str, Field(max_length=1024)] = ""
    # The longest time between two checkpoints.
    every: Duration = ""
    # The format, such as pytorch-dcp.
    format: Annotated[str, Field(max_length=100)] = ""
    # Their expected size.
    size: Quantity = ""


class ResourceRequests(Document):
    """Processor, memory and local storage as quantities."""

    # Processors: 8, 500m.
    cpu: Quantity = ""
    # Memory in bytes: 64Gi.
    memory: Quantity = ""
    # Local scratch storage in bytes: 100Gi.
    ephemeral_storage: Quantity = Field(default="", alias="ephemeral-storage")


class DeviceException(Document):
    """Why one exact device is needed."""

    # The product.
    product: Annotated[str, Field(min_length=1, max_length=200)]
    # Why no class will do.
    reason: Annotated[str, Field(min_length=1, max_length=2000)]
    # The operation that measured it.
    measured_by: Annotated[str, Field(min_length=1, max_length=64)]
    # When it must be looked at again.
    review_by: Date


class Accelerator(Document):
    """Accelerators by what they can do."""

    # The capability class of the catalogue.
    class_: Name = Field(default="", alias="class")
    # How many for each replica.
    count: Annotated[int, Field(ge=0, le=4096)] = 0
    # Number formats that it must compute in.
    precision: Annotated[tuple[Annotated[str, Field(max_length=20)], ...], Field(max_length=20)] = ()
    # The interconnect between them.
    interconnect: Annotated[str, Field(max_length=40)] = ""
    # Whether it may be taken away while it is in use.
    interruptible: Interruptible = Interruptible.UNSPECIFIED
    # Memory of each, at least.
    memory: Quantity = ""
    # The partition of each, such as 1g.10gb; empty for whole ones.
    partition: Annotated[str, Field(max_length=40)] = ""
    # One exact product instead of a class; visible and reviewed.
    exception: DeviceException | None = None


class Resources(Document):
    """What each replica needs."""

    # Processor, memory and local storage.
    requests: ResourceRequests | None = None
    # Accelerators of one capability class.
    accelerator: Accelerator | None = None


class EnvironmentSelection(Document):
    """A choice of environments by name."""

    # Only these; empty means all.
    allow: Annotated[tuple[Name, ...], Field(max_length=200)] = ()
    # Never these.
    forbid: Annotated[tuple[Name, ...], Field(max_length=200)] = ()


class Constraints(Document):
    """Hard rules."""

    # The environment lies in one of these jurisdictions.
    jurisdictions: Annotated[tuple[Annotated[str, Field(max_length=40)], ...], Field(max_length=100)] = ()
    # The environment lies in one of these regions.
    regions: Annotated[tuple[Annotated[str, Field(max_length=100)], ...], Field(max_length=100)] = ()
    # The environment is protected at least so well.
    security_tier: SecurityTier = SecurityTier.UNSPECIFIED
    # Controls that must be in force, such as default-deny-egress.
    controls: Annotated[tuple[Name, ...], Field(max_length=50)] = ()
    # It must be finished by then.
    deadline: Moment | None = None
    # Which environments come into question.
    environments: EnvironmentSelection | None = None
    # The processor architectures that it can run on.
    architectures: Annotated[tuple[Annotated[str, Field(max_length=40)], ...], Field(max_length=20)] = ()
    # A range of Kubernetes versions, such as >=1.33,<1.37.
    kubernetes: Annotated[str, Field(max_length=100)] = ""
    # Operators that the environment must offer, such as kueue.
    operators: Annotated[tuple[Name, ...], Field(max_length=20)] = ()
    # Who may operate the environment: own, partner, provider; empty means anybody.
    operated_by: Annotated[tuple[Operator, ...], Field(max_length=10)] = ()


class Retries(Document):
    """What happens after a failed attempt."""

    # How many further attempts there may be.
    limit: Annotated[int, Field(ge=0, le=100)] | None = None
    # The pause before the first of them; it doubles each time.
    backoff: Duration = ""
    # The longest pause.
    max_backoff: Duration = ""
    # Exit codes that are final.
    except_exit_codes: Annotated[tuple[Annotated[int, Field(ge=0, le=255)], ...], Field(max_length=256)] = ()


class Disconnection(Document):
    """What happens while the environment is cut off."""

    # The policy.
    policy: DisconnectionPolicy = DisconnectionPolicy.UNSPECIFIED
    # How long sealing the last checkpoint may take.
    checkpoint_within: Duration = ""
    # How long stopping may take.
    grace: Duration = ""


class Recovery(Document):
    """How interrupted work goes on."""

    # From where.
    mode: RecoveryMode = RecoveryMode.UNSPECIFIED
    # In which environments; empty means any eligible one.
    environments: Annotated[tuple[Name, ...], Field(max_length=200)] = ()


class Lifecycle(Document):
    """Times, retries, disconnection and recovery."""

    # How long an attempt is expected to take; for windows, deadline and forecasts.
    expected_duration: Duration = ""
    # The longest time of one attempt.
    timeout: Duration = ""
    # The longest time in the queue; then it fails with the reason no-eligible-environment.
    queue_timeout: Duration = ""
    # What happens after a failed attempt.
    retries: Retries | None = None
    # What happens while its environment is cut off.
    disconnection: Disconnection | None = None
    # How interrupted work goes on.
    recovery: Recovery | None = None
    # How long a stop may take before it is forced.
    stop_grace: Duration = ""


class AcceptanceCriterion(Document):
    """One criterion: a metric with bounds, an output that exists, or an exit code. Exactly one of metric, output and
    exitCodes is stated."""

    # The metric's name, as logged by the workload.
    metric: Annotated[str, Field(max_length=200)] = ""
    # The metric is at least this.
    at_least: float | None = None
    # The metric is at most this.
    at_most: float | None = None
    # The output's name.
    output: Name = ""
    # The output is there (or is not).
    exists: bool | None = None
    # The output is at least so large.
    min_size: Quantity = ""
    # The output's content has this SHA-256, in hex.
    sha256: Sha256 = ""
    # The main process ended with one of these.
    exit_codes: Annotated[tuple[Annotated[int, Field(ge=0, le=255)], ...], Field(max_length=256)] = ()


class Port(Document):
    """A port that a service answers on."""

    # The number.
    port: Annotated[int, Field(ge=1, le=65535)] = 0
    # tcp, http, https, grpc.
    protocol: Annotated[str, Field(pattern='^(tcp|http|https|grpc)$')] = ""


class ServiceRoute(Document):
    """The stable address of a service for its callers."""

    # The name that callers use.
    name: Name = ""
    # The path prefix.
    path: Annotated[str, Field(max_length=1024)] = ""
    # The port's name.
    port: Name = ""
    # The path that answers when the service is ready.
    health_path: Annotated[str, Field(max_length=1024)] = ""


class Gang(Document):
    """How replicas, or the operations that name the same gang, start together."""

    # All replicas, or all members, start within this time or none does.
    start_within: Duration = ""
    # Whether replicas or members may be in several environments.
    span_environments: bool = False
    # What the program expects of whoever starts it.
    framework: GangFramework = GangFramework.UNSPECIFIED
    # The gang that the operation is a member of: one of several that start together or not at all. Unique in the
    # project.
    name: Name = ""
    # How many operations are members of it.
    members: Annotated[int, Field(ge=2, le=100)] = 0
    # What becomes of the members once all have been granted their places.
    after_start: GangAfterStart = GangAfterStart.UNSPECIFIED


class OperationSpec(Document):
    """What is wanted. A preset or component may state any part of it, so nothing is required here; the rendered
    operation is checked as a whole."""

    # The kind of workload.
    type: WorkloadType = WorkloadType.UNSPECIFIED
    # How many replicas a distributed job has.
    replicas: Annotated[int, Field(ge=0, le=10000)] = 0
    # The queue that it waits in.
    queue: Name = ""
    # The name of a priority class of the queue.
    priority: Name = ""
    # Presets to apply, in order: name or name@version.
    presets: Annotated[tuple[Reference, ...], Field(max_length=20)] = ()
    # The component that it is an instance of: name or name@version.
    component: Reference = ""
    # Values for the component's parameters.
    parameters: Annotated[Mapping[Name, str], Field(max_length=100)] = Field(default_factory=dict)
    # The image, pinned by digest. Plain processes need none.
    image: Image | None = None
    # The program and its arguments; $(NAME) stands for a variable of env.
    command: Annotated[tuple[Annotated[str, Field(max_length=32768)], ...], Field(max_length=1000)] = ()
    # Further arguments.
    args: Annotated[tuple[Annotated[str, Field(max_length=32768)], ...], Field(max_length=1000)] = ()
    # The code, where it is not in the image.
    source: Source | None = None
    # Environment variables.
    env: Annotated[Mapping[Variable, str], Field(max_length=500)] = Field(default_factory=dict)
    # Data to read, by name; $LANDBRIDGE_INPUT_<NAME> holds the local path.
    inputs: Annotated[Mapping[Name, Input], Field(max_length=100)] = Field(default_factory=dict)
    # Artifacts to write, by name; $LANDBRIDGE_OUTPUT_<NAME> holds the local path.
    outputs: Annotated[Mapping[Name, Output], Field(max_length=100)] = Field(default_factory=dict)
    # Where and how often it seals its progress.
    checkpoints: Checkpoints | None = None
    # What each replica needs.
    resources: Resources | None = None
    # The logical role that it runs as; each environment maps it to a local principal.
    identity: Name = ""
    # Hard rules: an environment that violates one is not eligible.
    constraints: Constraints | None = None
    # Weights of preferences by name; the rest comes from preset, project and policy.
    preferences: Annotated[Mapping[Name, Annotated[float, Field(ge=0, le=1000)]], Field(max_length=50)] = Field(default_factory=dict)
    # Times, retries, disconnection and recovery.
    lifecycle: Lifecycle | None = None
    # What must hold at the end for the operation to be completed.
    acceptance: Annotated[tuple[AcceptanceCriterion, ...], Field(max_length=100)] = ()
    # How sensitive its data, logs and prompts are.
    data_class: DataClass = DataClass.UNSPECIFIED
    # Ports that a service answers on, by name.
    ports: Annotated[Mapping[Name, Port], Field(max_length=20)] = Field(default_factory=dict)
    # The stable address of a service.
    route: ServiceRoute | None = None
    # How the replicas of a distributed job start.
    gang: Gang | None = None


class ComponentSpec(Document):
    """A workload with parameters."""

    # What it does, for people.
    description: Annotated[str, Field(max_length=4000)] = ""
    # Who answers for it.
    owner: Owner | None = None
    # Parameters by name; $(parameters.<name>) stands for a value anywhere in the operation's texts.
    parameters: Annotated[Mapping[Name, Parameter], Field(max_length=100)] = Field(default_factory=dict)
    # The operation that it stands for.
    operation: OperationSpec
    # Projects that may use it; empty means all.
    projects: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()


class Component(Document):
    """A reusable definition of a workload."""

    # The version of this shape.
    api_version: Literal["landbridge/v1"]
    # The kind of document.
    kind: Literal["Component"]
    # What it is called; operations name it as name@version.
    metadata: ObjectMetadata
    # What it is.
    spec: ComponentSpec


class EnvironmentSettings(Document):
    """Settings for one environment."""

    # Environment variables.
    env: Annotated[Mapping[Variable, str], Field(max_length=500)] = Field(default_factory=dict)


class PresetSpec(Document):
    """What a preset sets. The operation's own fields win; maps merge by name, lists are replaced."""

    # What it is for.
    description: Annotated[str, Field(max_length=4000)] = ""
    # The part of an operation that it sets.
    patch: OperationSpec
    # Environment variables that apply only where the operation is placed in the named environment.
    environments: Annotated[Mapping[Name, EnvironmentSettings], Field(max_length=200)] = Field(default_factory=dict)
    # Projects that may use it; empty means all.
    projects: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()


class Preset(Document):
    """A named patch of operations."""

    # The version of this shape.
    api_version: Literal["landbridge/v1"]
    # The kind of document.
    kind: Literal["Preset"]
    # What it is called; operations name it as name@version.
    metadata: ObjectMetadata
    # What it sets.
    spec: PresetSpec


class ProjectDefaults(Document):
    """What operations get unless they say otherwise."""

    # Presets to apply first, in order: name or name@version.
    presets: Annotated[tuple[Reference, ...], Field(max_length=20)] = ()
    # How sensitive data is.
    data_class: DataClass = DataClass.UNSPECIFIED
    # The logical role.
    identity: Name = ""
    # Times, retries, disconnection and recovery.
    lifecycle: Lifecycle | None = None
    # Hard rules.
    constraints: Constraints | None = None


class ProjectLimits(Document):
    """What a project may hold at a time."""

    # Operations that are placed or run.
    running: Annotated[int, Field(ge=0)] | None = None
    # Operations that wait to be placed for the first time; more are refused.
    queued: Annotated[int, Field(ge=0)] | None = None
    # Resources by name: cpu, memory, a capability class.
    quota: Annotated[Mapping[str, Quantity], Field(max_length=100)] = Field(default_factory=dict)
    # Submissions a minute.
    submissions_per_minute: Annotated[int, Field(ge=0)] | None = None


class ProjectSpec(Document):
    """What a project may do and what it defaults to."""

    # What it is for.
    description: Annotated[str, Field(max_length=4000)] = ""
    # Who answers for it.
    owner: Owner | None = None
    # The queue of operations that name none.
    default_queue: Name = ""
    # The environments that it may use.
    environments: EnvironmentSelection | None = None
    # What its operations get unless they say otherwise.
    defaults: ProjectDefaults | None = None
    # What it may hold at a time.
    limits: ProjectLimits | None = None
    # Weights of preferences for its operations.
    preferences: Annotated[Mapping[Name, Annotated[float, Field(ge=0, le=1000)]], Field(max_length=50)] = Field(default_factory=dict)
    # Its share of contended capacity, relative to other projects.
    weight: Annotated[float, Field(ge=0, le=1000000)] | None = None
    # The policy that applies to it.
    policy: Name = ""
    # Logical roles that its operations may run as; empty means all.
    identities: Annotated[tuple[Name, ...], Field(max_length=100)] = ()


class Project(Document):
    """A tenant."""

    # The version of this shape.
    api_version: Literal["landbridge/v1"]
    # The kind of document.
    kind: Literal["Project"]
    # What it is called.
    metadata: ObjectMetadata
    # What it may do and what it defaults to.
    spec: ProjectSpec | None = None


class QueueSpec(Document):
    """How a queue works."""

    # What it is for.
    description: Annotated[str, Field(max_length=4000)] = ""
    # Priority of operations that name no class; higher goes first.
    priority: int = 0
    # Priorities by class name.
    priority_classes: Annotated[Mapping[Name, int], Field(max_length=50)] = Field(default_factory=dict)
    # Operations that may be placed at a time; absent means no limit.
    concurrency: Annotated[int, Field(ge=0)] | None = None
    # Resources by name that its operations may hold at a time.
    quota: Annotated[Mapping[str, Quantity], Field(max_length=100)] = Field(default_factory=dict)
    # Projects that may use it; empty means all.
    projects: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()
    # Whether nothing leaves it.
    paused: bool = False
    # The environments that it routes to.
    environments: EnvironmentSelection | None = None
    # The queue that it is a part of.
    parent: Name = ""
    # Resources by name that it may take from its siblings while they are free.
    borrow: Annotated[Mapping[str, Quantity], Field(max_length=100)] = Field(default_factory=dict)
    # Whether waiting work may displace running work. What is declared must-finish or never recovers is not
    # displaced.
    preemption: Preemption = Preemption.UNSPECIFIED
    # Its share of contended capacity, relative to its siblings; compared where at least one of them states a
    # weight.
    weight: Annotated[float, Field(ge=0, le=1000000)] | None = None
    # The longest that an operation waits here unless it says otherwise.
    queue_timeout: Duration = ""
    # The time of waiting that counts as one point of priority; absent means that waiting does not raise it.
    ageing: Duration = ""
    # Whether waiting work within the quota may displace what others borrowed.
    reclaim: Reclaim = Reclaim.UNSPECIFIED


class Queue(Document):
    """A line in which operations wait."""

    # The version of this shape.
    api_version: Literal["landbridge/v1"]
    # The kind of document.
    kind: Literal["Queue"]
    # What it is called.
    metadata: ObjectMetadata
    # How it works.
    spec: QueueSpec | None = None


class PolicyScope(Document):
    """For whom a policy weighs."""

    # These projects; empty means all.
    projects: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()
    # These queues; empty means all.
    queues: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()
    # These workload types; empty means all.
    types: Annotated[tuple[WorkloadType, ...], Field(max_length=10)] = ()


class Overflow(Document):
    """When a worse environment is taken because better ones are full."""

    # Whether it ever is. In the best environment any class that can serve may do so.
    allowed: bool | None = None
    # How long an operation waits for the better ones first.
    after: Duration = ""


class PolicySpec(Document):
    """How a policy weighs, and for whom."""

    # What it is for.
    description: Annotated[str, Field(max_length=4000)] = ""
    # Weights of preferences by name; 0 turns one off.
    preferences: Annotated[Mapping[Name, Annotated[float, Field(ge=0, le=1000)]], Field(max_length=50)] = Field(default_factory=dict)
    # For whom it weighs; empty means everybody.
    scope: PolicyScope | None = None
    # Which of several that apply goes first; higher wins.
    precedence: int = 0
    # When a worse environment is taken because better ones are full.
    overflow: Overflow | None = None


class Policy(Document):
    """How choices between eligible environments are weighed."""

    # The version of this shape.
    api_version: Literal["landbridge/v1"]
    # The kind of document.
    kind: Literal["Policy"]
    # What it is called.
    metadata: ObjectMetadata
    # How it weighs.
    spec: PolicySpec


class RuleSpec(Document):
    """What a rule demands, of whom and where."""

    # What it is for.
    description: Annotated[str, Field(max_length=4000)] = ""
    # The condition that must hold, in CEL, of the variables operation and environment. If it cannot be evaluated,
    # the environment is not eligible.
    expression: Annotated[str, Field(min_length=1, max_length=2000)]
    # What people are told where it does not hold.
    message: Annotated[str, Field(min_length=1, max_length=500)]
    # What follows where it does not hold.
    violation: RuleKind = RuleKind.UNSPECIFIED
    # Of which operations it is demanded; empty means all.
    scope: PolicyScope | None = None
    # In which environments; empty means all.
    environments: EnvironmentSelection | None = None


class Rule(Document):
    """A condition of an operator's own that an operation and an environment must meet together, in CEL."""

    # The version of this shape.
    api_version: Literal["landbridge/v1"]
    # The kind of document.
    kind: Literal["Rule"]
    # What it is called; the reason code of what breaks it is rule:<name>.
    metadata: ObjectMetadata
    # What it demands.
    spec: RuleSpec


class CapabilityAttributes(Document):
    """Minimum attributes of a class."""

    # Memory of each device.
    memory: Quantity = ""
    # Number formats that it computes in.
    precision: Annotated[tuple[Annotated[str, Field(max_length=20)], ...], Field(max_length=20)] = ()
    # The interconnect between devices of a node.
    interconnect: Annotated[str, Field(max_length=40)] = ""
    # The partition of each device; empty for whole ones.
    partition: Annotated[str, Field(max_length=40)] = ""
    # A range of driver versions.
    driver: Annotated[str, Field(max_length=100)] = ""
    # Whether devices may be taken away while in use.
    interruptible: bool | None = None
    # The processor architecture.
    architecture: Annotated[str, Field(max_length=40)] = ""


class CapabilityClassSpec(Document):
    """What a class guarantees."""

    # What it is for.
    description: Annotated[str, Field(max_length=4000)] = ""
    # What kind of hardware it is.
    kind: CapabilityKind = CapabilityKind.UNSPECIFIED
    # What users can rely on, a sentence each.
    guarantees: Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=50)] = ()
    # Minimum attributes.
    attributes: CapabilityAttributes | None = None
    # Products known to fulfil it, for people and exceptions.
    products: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=200)] = ()


class CapabilityClass(Document):
    """What a class of hardware guarantees, wherever it is offered."""

    # The version of this shape.
    api_version: Literal["landbridge/v1"]
    # The kind of document.
    kind: Literal["CapabilityClass"]
    # What it is called.
    metadata: ObjectMetadata
    # What it guarantees.
    spec: CapabilityClassSpec


class Movement(Document):
    """Whether and how data may be copied to another environment."""

    # Whether it may be copied at all.
    allowed: bool = False
    # Only over encrypted links.
    encrypted_only: bool | None = None
    # Copies are deleted after this time.
    delete_after: Duration = ""


class ConnectionSpec(Document):
    """What a connection leads to and which duties come with it."""

    # What it is for.
    description: Annotated[str, Field(max_length=4000)] = ""
    # What it leads to.
    type: ConnectionType = ConnectionType.UNSPECIFIED
    # Who answers for it.
    owner: Owner | None = None
    # How sensitive it is.
    data_class: DataClass = DataClass.UNSPECIFIED
    # Jurisdictions that it must not leave; empty means none.
    jurisdictions: Annotated[tuple[Annotated[str, Field(max_length=40)], ...], Field(max_length=100)] = ()
    # Licences of what it holds, as SPDX ids or LicenseRefs.
    licenses: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=100)] = ()
    # Its size.
    size: Quantity = ""
    # Projects that may name it; empty means all.
    projects: Annotated[tuple[NameOrAll, ...], Field(max_length=1000)] = ()
    # Whether and how its data may be copied to another environment.
    movement: Movement | None = None
    # How long data is kept.
    retention: Duration = ""
    # Whether what it holds replicates, stays or can be rebuilt.
    replication: Replication = Replication.UNSPECIFIED


class Connection(Document):
    """A logical connection: what the data, registry or service is, not where it is."""

    # The version of this shape.
    api_version: Literal["landbridge/v1"]
    # The kind of document.
    kind: Literal["Connection"]
    # What it is called.
    metadata: ObjectMetadata
    # What it is.
    spec: ConnectionSpec


class Location(Document):
    """Where an environment is and who operates it."""

    # Regions.
    regions: Annotated[tuple[Annotated[str, Field(max_length=100)], ...], Field(max_length=50)] = ()
    # Jurisdictions whose law applies.
    jurisdictions: Annotated[tuple[Annotated[str, Field(max_length=40)], ...], Field(max_length=50)] = ()
    # Who operates it.
    operated_by: Operator = Operator.UNSPECIFIED
    # The provider's name.
    provider: Annotated[str, Field(max_length=100)] = ""
    # Availability zones.
    zones: Annotated[tuple[Annotated[str, Field(max_length=100)], ...], Field(max_length=50)] = ()


class Support(Document):
    """Until when something is supported."""

    # The last day.
    until: Date = ""
    # Why it differs from the rest of the fleet.
    reason: Annotated[str, Field(max_length=2000)] = ""


class Simulation(Document):
    """How a simulated environment behaves."""

    # How long a job takes.
    duration: Duration = ""
    # The share of attempts that fail, 0 to 1.
    failure_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    # How long starting takes.
    start_delay: Duration = ""


class FrameworkVia(Document):
    """The operator that runs the gangs of a framework."""

    # The operator: jobset, kubeflow-trainer, kubeflow-training or kuberay; one of runtime.operators.
    operator: Annotated[str, Field(pattern='^(jobset|kubeflow-trainer|kubeflow-training|kuberay)$', min_length=1)]
    # What runs them where the operator is absent. Not stated: they do not run.
    fallback: Annotated[str, Field(pattern='^(indexed-job)$')] = ""


class Runtime(Document):
    """How work is run."""

    # The executor.
    executor: Executor
    # The Kubernetes version, such as "1.35".
    kubernetes: Annotated[str, Field(pattern='^v?[0-9]+\\.[0-9]+(\\.[0-9]+)?([-+][0-9A-Za-z.+-]+)?$')] = ""
    # Processor architectures.
    architectures: Annotated[tuple[Annotated[str, Field(max_length=40)], ...], Field(max_length=20)] = ()
    # Operators that are installed.
    operators: Annotated[tuple[Name, ...], Field(max_length=50)] = ()
    # The operating system.
    os: Annotated[str, Field(max_length=40)] = ""
    # Versions of further software, by name.
    versions: Annotated[Mapping[str, str], Field(max_length=100)] = Field(default_factory=dict)
    # For simulated environments: how long work takes and how it ends.
    simulation: Simulation | None = None
    # How gangs are run in a cluster, by their framework: ranks, ray. Not stated: ranks by Indexed Jobs, ray not at
    # all.
    via: Annotated[Mapping[Name, FrameworkVia], Field(max_length=10)] = Field(default_factory=dict)


class Toleration(Document):
    """A taint that is tolerated, as in Kubernetes."""

    # The taint's key.
    key: Annotated[str, Field(max_length=253)] = ""
    # Equal or Exists.
    operator: Annotated[str, Field(pattern='^(Equal|Exists)$')] = ""
    # The taint's value.
    value: Annotated[str, Field(max_length=253)] = ""
    # NoSchedule, PreferNoSchedule or NoExecute.
    effect: Annotated[str, Field(pattern='^(NoSchedule|PreferNoSchedule|NoExecute)$')] = ""


class Via(Document):
    """How an executor reaches a capability class."""

    # A Kubernetes device class.
    device_class: Annotated[str, Field(max_length=253)] = ""
    # An extended resource.
    resource: Annotated[str, Field(max_length=253)] = ""
    # Labels that nodes carry.
    node_selector: Annotated[Mapping[str, str], Field(max_length=50)] = Field(default_factory=dict)
    # Taints that are tolerated.
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=50)] = ()
    # A Slurm partition.
    partition: Annotated[str, Field(max_length=100)] = ""
    # A Slurm generic resource.
    gres: Annotated[str, Field(max_length=100)] = ""


class ClassOffer(Document):
    """How much of a capability class is offered, and how it is reached."""

    # Processors in all.
    cpu: Quantity = ""
    # Memory in all for processor classes, of each device for accelerators.
    memory: Quantity = ""
    # Devices in all.
    count: Annotated[int, Field(ge=0)] | None = None
    # Devices of one node.
    per_node: Annotated[int, Field(ge=0)] | None = None
    # Number formats that it computes in.
    precision: Annotated[tuple[Annotated[str, Field(max_length=20)], ...], Field(max_length=20)] = ()
    # The interconnect between devices of a node.
    interconnect: Annotated[str, Field(max_length=40)] = ""
    # A range of driver versions.
    driver: Annotated[str, Field(max_length=100)] = ""
    # Whether devices may be taken away while in use.
    interruptible: bool | None = None
    # The partition of each device; empty for whole ones.
    partition: Annotated[str, Field(max_length=40)] = ""
    # The product, for exceptions and lineage.
    product: Annotated[str, Field(max_length=200)] = ""
    # Local scratch storage in all.
    ephemeral_storage: Quantity = Field(default="", alias="ephemeral-storage")
    # How the executor reaches it.
    via: Via | None = None
    # How fast one device, or one processor, is on the fleet's own scale: 2 does in half the time what 1 does.
    speed: Annotated[float, Field(ge=0)] | None = None
    # Where the speed comes from, such as a benchmark with its date.
    speed_source: Annotated[str, Field(max_length=200)] = ""


class StorageOffer(Document):
    """A storage class that is offered."""

    # The Kubernetes storage class.
    storage_class: Annotated[str, Field(max_length=253)] = ""
    # Whether it is encrypted at rest.
    encrypted: bool | None = None
    # How much there is.
    size: Quantity = ""


class ConnectionOffer(Document):
    """A logical connection that exists here."""

    # What it leads to.
    type: ConnectionType = ConnectionType.UNSPECIFIED
    # What may be done.
    access: Access = Access.UNSPECIFIED
    # The region of the data.
    region: Annotated[str, Field(max_length=100)] = ""
    # How much it holds.
    size: Quantity = ""
    # The most sensitive data that may be reached through it.
    data_class: DataClass = DataClass.UNSPECIFIED
    # Projects that may use it; "*" or empty means all.
    projects: Annotated[tuple[NameOrAll, ...], Field(max_length=1000)] = ()
    # Environments that see the same content.
    shared_with: Annotated[tuple[Name, ...], Field(max_length=200)] = ()
    # Licences that are allowed here, as SPDX ids or LicenseRefs; empty means all.
    licenses: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=100)] = ()
    # Whether data is encrypted at rest.
    encrypted: bool | None = None
    # How fast it reads.
    bandwidth: Bandwidth = ""
    # Whether the content is a local copy that may be behind.
    cached: bool = False


class IdentityBoundary(Document):
    """Who workloads are."""

    # The local principal of each logical role.
    roles: Annotated[Mapping[Name, str], Field(max_length=200)] = Field(default_factory=dict)
    # How long a workload's credentials live.
    token_ttl: Duration = Field(default="", alias="tokenTTL")
    # How fast a withdrawn credential stops working.
    revocation: Duration = ""


class NetworkBoundary(Document):
    """What workloads reach."""

    # What holds for traffic that no rule names.
    default: NetworkDefault = NetworkDefault.UNSPECIFIED
    # Connections that may be reached.
    egress: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()


class AdmissionBoundary(Document):
    """What is let in."""

    # The pod security standard: privileged, baseline or restricted.
    pod_security: Annotated[str, Field(pattern='^(privileged|baseline|restricted)$')] = ""
    # Registry connections that images may come from; empty means any.
    images: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    # Whether images must be signed.
    require_signature: bool | None = None


class TenancyBoundary(Document):
    """How tenants are kept apart."""

    # The namespace of a project; {project} stands for its name.
    namespace: Annotated[str, Field(max_length=100)] = ""


class ControlPlaneBoundary(Document):
    """Who controls the environment itself."""

    # Whether a provider manages the control plane.
    managed: bool | None = None
    # How operators get in: none, audited, free.
    operator_access: Annotated[str, Field(max_length=100)] = ""
    # What makes a node trusted, such as secure-boot.
    node_trust: Annotated[str, Field(max_length=100)] = ""
    # How secrets reach workloads, such as csi.
    secret_delivery: Annotated[str, Field(max_length=100)] = ""
    # How long audit records are kept.
    audit: Duration = ""


class Boundaries(Document):
    """What is kept apart and how."""

    # How well the environment is protected.
    security_tier: SecurityTier = SecurityTier.UNSPECIFIED
    # Who workloads are.
    identity: IdentityBoundary | None = None
    # What workloads reach.
    network: NetworkBoundary | None = None
    # What is let in.
    admission: AdmissionBoundary | None = None
    # How tenants are kept apart.
    tenancy: TenancyBoundary | None = None
    # Who controls the environment itself.
    control_plane: ControlPlaneBoundary | None = None


class CostModel(Document):
    """Prices."""

    # ISO 4217 code.
    currency: Currency = ""
    # Price per hour by capability class: of a device, or of a processor.
    per_hour: Annotated[Mapping[Name, Annotated[float, Field(ge=0)]], Field(max_length=200)] = Field(default_factory=dict)
    # Price of a gigabyte that leaves.
    egress_per_gb: Annotated[float, Field(ge=0)] | None = Field(default=None, alias="egressPerGB")
    # Where the prices come from, such as a list with its date.
    source: Annotated[str, Field(max_length=200)] = ""
    # From when on a price is unknown, by capability class; egress for the price of data that leaves.
    ends: Annotated[Mapping[Name, Moment], Field(max_length=200)] = Field(default_factory=dict)


class Carbon(Document):
    """Carbon intensity of power."""

    # Grams of CO2 equivalent per kWh.
    grams_per_kwh: Annotated[float, Field(ge=0)] | None = Field(default=None, alias="gramsPerKWh")
    # Where the number comes from.
    source: Annotated[str, Field(max_length=200)] = ""
    # Whether the environment reads the intensity of now itself, from the source that its bindings name. Then only
    # that counts, and it is unknown while there is no reading that is fresh.
    measured: bool = False


class LinkClaim(Document):
    """A link to another environment."""

    # How much it carries.
    bandwidth: Bandwidth = ""
    # How long a round trip takes.
    latency: Duration = ""
    # Whether it is encrypted.
    encrypted: bool | None = None


class MaintenanceWindow(Document):
    """A recurring window."""

    # An RFC 5545 recurrence rule.
    rrule: Annotated[str, Field(min_length=1, max_length=500)]
    # How long the window is.
    duration: Duration
    # The IANA time zone of the rule.
    time_zone: Annotated[str, Field(max_length=60)] = ""
    # The first day, for rules that count from one.
    start: Date = ""


class Objectives(Document):
    """What the owner aims at."""

    # The share of time that it works.
    availability: Percent = ""
    # How soon placed work starts.
    start_within: Duration = ""


class Accepts(Document):
    """What the site accepts."""

    # Projects; "*" or empty means all.
    projects: Annotated[tuple[NameOrAll, ...], Field(max_length=1000)] = ()
    # Registry connections that images may come from; empty means all.
    images: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    # Logical roles; empty means all.
    identities: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    # Connections; empty means all.
    connections: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()


class Rollout(Document):
    """How a version of a contract takes over from the one before."""

    # How long the one before stays active beside this one, for work that only it fits. Without, it retires at once.
    overlap: Duration = ""


class EnvironmentContractSpec(Document):
    """What an environment claims."""

    # Who answers for it.
    owner: Owner | None = None
    # Where it is and who operates it.
    location: Location | None = None
    # Until when it is supported, and why it differs from the fleet.
    support: Support | None = None
    # How work is run.
    runtime: Runtime
    # Workload types that it takes.
    workloads: Annotated[tuple[WorkloadType, ...], Field(max_length=10)] = ()
    # Capability classes of the catalogue, and how they are reached here.
    classes: Annotated[Mapping[Name, ClassOffer], Field(max_length=200)] = Field(default_factory=dict)
    # Storage classes.
    storage: Annotated[Mapping[Name, StorageOffer], Field(max_length=50)] = Field(default_factory=dict)
    # Logical connections that exist here, and for whom.
    connections: Annotated[Mapping[Name, ConnectionOffer], Field(max_length=1000)] = Field(default_factory=dict)
    # What is kept apart and how; each line has a positive and a negative probe.
    boundaries: Boundaries | None = None
    # Most that may be held at a time: a capability class, cpu, memory, or running.
    quotas: Annotated[Mapping[str, Quantity], Field(max_length=200)] = Field(default_factory=dict)
    # Prices; what is absent is unknown, never zero.
    cost: CostModel | None = None
    # Carbon intensity of its power.
    carbon: Carbon | None = None
    # Links to other environments, claimed here and measured by a probe.
    links: Annotated[Mapping[Name, LinkClaim], Field(max_length=200)] = Field(default_factory=dict)
    # Windows in which nothing new starts that would not end before them.
    maintenance: Annotated[tuple[MaintenanceWindow, ...], Field(max_length=50)] = ()
    # What its owner aims at.
    objectives: Objectives | None = None
    # What the site accepts: its own last word.
    accepts: Accepts | None = None
    # How this version takes over from the one before.
    rollout: Rollout | None = None


class LinkStatus(Document):
    """Whether an environment is heard."""

    # connected, lost, reconciling or never.
    state: Annotated[str, Field(pattern='^(connected|lost|reconciling|never)$')] = ""
    # When it was last heard.
    last_heard: Moment | None = None
    # Until when its lease runs.
    lease_until: Moment | None = None


class EvidenceRecord(Document):
    """The latest proof of one claim."""

    # The claim as a path into spec, such as classes.gpu-80gb.
    claim: Annotated[str, Field(min_length=1, max_length=300)]
    # proven, failed or unknown.
    result: Annotated[str, Field(pattern='^(proven|failed|unknown)$')] = ""
    # How much was proven, where the claim is a number.
    proven: float | None = None
    # How much is claimed, where the claim is a number.
    claimed: float | None = None
    # The probe's name.
    probe: Annotated[str, Field(max_length=100)] = ""
    # What exactly was probed.
    subject: Annotated[str, Field(max_length=300)] = ""
    # When it was observed.
    at: Moment | None = None
    # Until when it counts.
    expires: Moment | None = None
    # What does not work.
    failing: Annotated[str, Field(max_length=2000)] = ""
    # What was seen, for people.
    detail: Annotated[str, Field(max_length=2000)] = ""


class EnvironmentContractStatus(Document):
    """What is proven, written by the contract verifier."""

    # Where this version stands.
    phase: ContractPhase = ContractPhase.UNSPECIFIED
    # Whether the environment is heard.
    link: LinkStatus | None = None
    # The latest proof of each claim.
    evidence: tuple[EvidenceRecord, ...] = ()


class EnvironmentContract(Document):
    """What an environment claims to offer. The owner writes spec; the contract verifier alone writes status."""

    # The version of this shape.
    api_version: Literal["landbridge/v1"]
    # The kind of document.
    kind: Literal["EnvironmentContract"]
    # The environment's name and the contract's version, which never changes.
    metadata: ObjectMetadata
    # What is claimed.
    spec: EnvironmentContractSpec
    # What is proven; refused when a contract is registered.
    status: EnvironmentContractStatus | None = None


class OperationMetadata(Document):
    """What an operation says about itself."""

    # A name for people; the id derives from project and idempotency key.
    name: Name
    # The project (tenant).
    project: Name
    # Free labels, never used for placement.
    labels: Annotated[Mapping[str, str], Field(max_length=64)] = Field(default_factory=dict)
    # Free notes, never read by Landbridge.
    annotations: Annotated[Mapping[str, str], Field(max_length=64)] = Field(default_factory=dict)


class Operation(Document):
    """One declared unit of work: what is wanted, not where it runs."""

    # The version of this shape.
    api_version: Literal["landbridge/v1"]
    # The kind of document.
    kind: Literal["Operation"]
    # What it is called and who it belongs to.
    metadata: OperationMetadata
    # What is wanted.
    spec: OperationSpec


class Models(Document):
    """Models of accelerators; the first is what serves a request that names none."""

    # Their names as in the list.
    models: Annotated[tuple[Annotated[str, Field(max_length=100)], ...], Field(min_length=1, max_length=100)]


class MachineList(Document):
    """A list of machines with the columns sn, cpu_milli, memory_mib, gpu and model, one machine a row."""

    # The file, beside the scenario.
    file: Annotated[str, Field(min_length=1, max_length=1000)]
    # Which models belong to which environment; every model of the list belongs to one.
    environments: Annotated[Mapping[Name, Models], Field(min_length=1, max_length=500)]


class Trace(Document):
    """Work over time."""

    # The file, beside the scenario.
    file: Annotated[str, Field(min_length=1, max_length=1000)]
    # How it is read.
    format: TraceFormat = TraceFormat.UNSPECIFIED
    # The project of work that names none.
    project: Name = ""
    # The queue of work that names none.
    queue: Name = ""
    # Queues by the quality of service that a list of pods gives.
    queues: Annotated[Mapping[str, Name], Field(max_length=100)] = Field(default_factory=dict)
    # All arrivals are brought closer together, or further apart, so that they come within this time.
    arrivals_within: Duration = ""


class ScenarioPolicy(Document):
    """One way to decide."""

    # What it is called.
    name: Name
    # How the place is chosen.
    choosing: Choosing = Choosing.UNSPECIFIED
    # Weights of preferences by name, instead of those of all policies and projects.
    preferences: Annotated[Mapping[Name, Annotated[float, Field(ge=0, le=1000)]], Field(max_length=50)] = Field(default_factory=dict)
    # Files with documents that replace those of the same kind and name.
    documents: Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=100)] = ()


class Behaviour(Document):
    """How one environment really does. What policies learn of it they learn as in production: from what they observe."""

    # How fast it does the work: 2 is twice as fast as the trace says.
    speed: Annotated[float, Field(ge=0.01, le=100)] | None = None
    # How long it takes from placement to start.
    start_delay: Duration = ""
    # The share of attempts that it lets down: they end on the way and wait again for all of their work.
    failures: Annotated[float, Field(ge=0, le=0.95)] = 0.0


class ScenarioSpec(Document):
    """What is simulated."""

    # What it is for.
    description: Annotated[str, Field(max_length=4000)] = ""
    # Files with environment contracts, queues, projects, policies, capability classes, connections and the
    # operations that a trace names; beside the scenario.
    documents: Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(min_length=1, max_length=1000)]
    # A list of machines from which contracts get their classes.
    machines: MachineList | None = None
    # The work.
    trace: Trace
    # What is compared, at least one.
    policies: Annotated[tuple[ScenarioPolicy, ...], Field(min_length=1, max_length=20)]
    # How environments really do, where that differs from what contracts say and work expects; by their names.
    behaviour: Annotated[Mapping[Name, Behaviour], Field(max_length=500)] = Field(default_factory=dict)
    # Another number draws anew which attempts environments let down; the same one always draws the same.
    seed: Annotated[int, Field(ge=0)] = 0


class Scenario(Document):
    """A question to the simulator: how would this work fare in these environments, under these policies?"""

    # The version of this shape.
    api_version: Literal["landbridge/v1"]
    # The kind of document.
    kind: Literal["Scenario"]
    # What it is called.
    metadata: ObjectMetadata
    # What is simulated.
    spec: ScenarioSpec

