"""What a dispatcher reads of an accepted operation: a typed view of the effective specification's bytes.

Intake has validated the whole document; here only the fields that starting and stopping need are decoded, which keeps
the hot path short. Durations become milliseconds, quantities bytes or millicores.
"""

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from landbridge.domain import units
from landbridge.domain.environment_settings import variables_in
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect

STOP_GRACE_MS = 30_000


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What an operation says about itself."""

    name: str = ""
    project: str = ""


class Input(msgspec.Struct, frozen=True, rename="camel"):
    """Data to read."""

    connection: str = ""
    path: str = ""


class Output(msgspec.Struct, frozen=True, rename="camel"):
    """An artifact to write."""

    connection: str = ""
    path: str = ""


class Checkpoints(msgspec.Struct, frozen=True, rename="camel"):
    """Where progress is sealed."""

    connection: str = ""
    path: str = ""


class Source(msgspec.Struct, frozen=True, rename="camel"):
    """Code of a Git connection at one commit."""

    connection: str = ""
    commit: str = ""
    repository: str = ""
    path: str = ""


class ImageVariant(msgspec.Struct, frozen=True, rename="camel"):
    """An image for one architecture or one class of accelerators."""

    digest: str = ""
    name: str = ""
    architecture: str = ""
    accelerator: str = ""


class Image(msgspec.Struct, frozen=True, rename="camel"):
    """An image of a logical registry."""

    registry: str = ""
    name: str = ""
    digest: str = ""
    variants: Mapping[str, ImageVariant] = {}


class Port(msgspec.Struct, frozen=True, rename="camel"):
    """A port that a service answers on."""

    port: int = 0
    protocol: str = "http"


class Route(msgspec.Struct, frozen=True, rename="camel"):
    """The stable address of a service."""

    name: str = ""
    path: str = ""
    port: str = ""
    health_path: str = ""


class Requests(msgspec.Struct, frozen=True, rename="camel"):
    """What each replica needs, as quantities."""

    cpu: str = ""
    memory: str = ""
    ephemeral_storage: str = msgspec.field(default="", name="ephemeral-storage")


class Accelerator(msgspec.Struct, frozen=True, rename="camel"):
    """Accelerators of one capability class. `instead_of` is the one that was named, where another class serves."""

    class_: str = msgspec.field(default="", name="class")
    count: int = 1
    instead_of: str = ""


class Resources(msgspec.Struct, frozen=True, rename="camel"):
    """Requests and accelerators."""

    requests: Requests = Requests()
    accelerator: Accelerator | None = None

    @property
    def told(self) -> dict[str, str]:
        """What each replica gets, by resource, as quantities; accelerators by their class."""
        quantities = {"cpu": self.requests.cpu, "memory": self.requests.memory}
        if self.accelerator is not None and self.accelerator.class_:
            quantities[self.accelerator.class_] = str(max(1, self.accelerator.count))
        return {name: quantity for name, quantity in quantities.items() if quantity}


class DeclaredDisconnection(msgspec.Struct, frozen=True, rename="camel"):
    """The disconnection policy as written."""

    policy: str = ""
    checkpoint_within: str = ""
    stop_after: str = ""
    grace: str = ""


class Lifecycle(msgspec.Struct, frozen=True, rename="camel"):
    """Times and policies of an attempt."""

    timeout: str = ""
    stop_grace: str = ""
    expected_duration: str = ""
    disconnection: DeclaredDisconnection = DeclaredDisconnection()


class Criterion(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One acceptance criterion as written."""

    metric: str = ""
    at_least: float | None = None
    at_most: float | None = None
    output: str = ""
    exists: bool | None = None
    min_size: str = ""
    sha256: str = ""
    exit_codes: tuple[int, ...] = ()


class Gang(msgspec.Struct, frozen=True, rename="camel"):
    """What the program of a gang expects of whoever starts it."""

    framework: str = "ranks"


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    """What is wanted, as far as an executor is concerned."""

    type: str = "job"
    replicas: int = 1
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    inputs: Mapping[str, Input] = {}
    outputs: Mapping[str, Output] = {}
    checkpoints: Checkpoints | None = None
    source: Source | None = None
    image: Image | None = None
    ports: Mapping[str, Port] = {}
    route: Route | None = None
    gang: Gang = Gang()
    resources: Resources = Resources()
    identity: str = ""
    lifecycle: Lifecycle = Lifecycle()
    acceptance: tuple[Criterion, ...] = ()
    data_class: str = "internal"

    def connections(self) -> frozenset[str]:
        """Return the logical connections that the operation names."""
        if not self.inputs and not self.outputs and self.checkpoints is None and self.source is None:
            return _NONE
        named = {part.connection for part in self.inputs.values()}
        named |= {part.connection for part in self.outputs.values()}
        if self.checkpoints is not None:
            named.add(self.checkpoints.connection)
        if self.source is not None:
            named.add(self.source.connection)
        return frozenset(named - {""})


_NONE: frozenset[str] = frozenset()


class Settings(msgspec.Struct, frozen=True, rename="camel"):
    """What presets set for one environment."""

    env: Mapping[str, str] = {}


class Operation(msgspec.Struct, frozen=True, rename="camel"):
    """An accepted operation."""

    metadata: Metadata = Metadata()
    spec: Spec = Spec()
    environment_settings: Mapping[str, Settings] = {}

    def placed_in(self, environment: str) -> "Operation":
        """Return the operation as it is in that environment: what presets set for it is applied."""
        here = self.environment_settings.get(environment)
        if here is None or not here.env:
            return self
        spec = msgspec.structs.replace(self.spec, env=variables_in(self.spec.env, here.env))
        return msgspec.structs.replace(self, spec=spec)

    def served_by(self, accelerator_class: str) -> "Operation":
        """Return the operation with accelerators of the class that was chosen for it; empty: of the one it names."""
        accelerator = self.spec.resources.accelerator
        if not accelerator_class or accelerator is None:
            return self
        assigned = Accelerator(accelerator_class, accelerator.count, accelerator.class_)
        resources = msgspec.structs.replace(self.spec.resources, accelerator=assigned)
        return msgspec.structs.replace(self, spec=msgspec.structs.replace(self.spec, resources=resources))


_decoder = msgspec.json.Decoder(Operation)


def read_operation(spec: bytes) -> Operation:
    """Decode the effective specification's bytes. Raises msgspec.MsgspecError."""
    return _decoder.decode(spec)


@lru_cache(maxsize=4096)
def milliseconds(duration: str, default: int = 0) -> int:
    """Return a written duration in milliseconds; `default` where it is not stated."""
    return units.parse_duration(duration) if duration else default


@lru_cache(maxsize=256)
def disconnection_of(lifecycle: Lifecycle) -> Disconnection:
    """Return the declared policy with its times, as the rules of ownership count them."""
    declared = lifecycle.disconnection
    policy = OnDisconnect(declared.policy or "continue")
    within = declared.checkpoint_within if policy is OnDisconnect.CHECKPOINT_THEN_STOP else declared.stop_after
    grace_ms = milliseconds(declared.grace, milliseconds(lifecycle.stop_grace, STOP_GRACE_MS))
    return Disconnection(policy, milliseconds(within), grace_ms)
