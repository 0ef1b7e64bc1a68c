"""What deciding reads of an operation: a frozen value and its class.

Two operations with equal `Requirements` are the same question to every constraint, every preference and to admission.
`RequirementClass.key` is the SHA-256 of the canonical JSON of exactly these fields, so it is equal on every replica and
in every release that reads the same fields. `classify` reads them from an accepted operation.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from operator import attrgetter

import msgspec

DEFAULT_QUEUE = "default"


class Reading(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One named input: how many bytes it says it is (None: not said) and under which licence."""

    size: int | None = None
    license: str = ""


class ConnectionNeed(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One logical connection that the operation names, with everything it wants to do through it.

    `uses` are the places in the specification that name it, such as `inputs.events`; `readings` are its inputs.
    """

    name: str
    uses: tuple[str, ...]
    reads: bool = False
    writes: bool = False
    readings: tuple[Reading, ...] = ()
    licenses: tuple[str, ...] = ()
    data_class: str = ""


class AcceleratorNeed(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Accelerators for each replica: of a capability class, of one product, or of any class with these attributes.

    `memory` is bytes of each device.
    """

    name: str
    count: int = 1
    memory: int = 0
    precision: tuple[str, ...] = ()
    interconnect: str = ""
    partition: str = ""
    interruptible: str = "forbid"
    product: str = ""

    @property
    def by_attributes(self) -> bool:
        """Whether no class and no product is named: any that has the attributes will do."""
        return not self.name and not self.product

    @property
    def told(self) -> str:
        """The request in words, without its count."""
        if self.name:
            return f"class {self.name}"
        return f"product {self.product}" if self.product else "any class with the attributes asked for"


class Requirements(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Everything that decides where, and when, an operation may run.

    Quantities are whole numbers for one replica: `cpu` millicores, `memory` and `scratch` bytes, `expected_ms`
    milliseconds, `timeout_ms` the longest time of an attempt (0: none). `uninterruptible`: it is not stopped for
    others. `component` is what it is an instance of, with the version; `framework` is a gang's. `gang` names the one
    that it is a member of, `gang_members` how many have to be placed with it, `gang_spans` whether elsewhere too.
    Lists without an order of their own are sorted.
    """

    project: str
    queue: str = ""
    priority: str = ""
    workload: str = "job"
    replicas: int = 1
    command: bool = False
    image: bool = False
    image_variants: tuple[tuple[str, str], ...] = ()
    cpu: int = 0
    memory: int = 0
    scratch: int = 0
    accelerator: AcceleratorNeed | None = None
    connections: tuple[ConnectionNeed, ...] = ()
    registry: str = ""
    identity: str = ""
    jurisdictions: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    security_tier: str = ""
    data_class: str = ""
    controls: tuple[str, ...] = ()
    deadline: datetime | None = None
    allow: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    kubernetes: str = ""
    operators: tuple[str, ...] = ()
    operated_by: tuple[str, ...] = ()
    preferences: tuple[tuple[str, float], ...] = ()
    expected_ms: int = 0
    features: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    failed_over: bool = False
    recovery_mode: str = ""
    recovery_environments: tuple[str, ...] = ()
    checkpoints: str = ""
    timeout_ms: int = 0
    uninterruptible: bool = False
    component: str = ""
    framework: str = ""
    gang: str = ""
    gang_members: int = 0
    gang_spans: bool = False

    @property
    def needs_compute(self) -> bool:
        """Whether it asks for processors, memory or scratch space at all."""
        return bool(self.cpu or self.memory or self.scratch)

    @property
    def total_cpu(self) -> int:
        return self.cpu * self.replicas

    @property
    def total_memory(self) -> int:
        return self.memory * self.replicas

    @property
    def total_accelerators(self) -> int:
        return self.accelerator.count * self.replicas if self.accelerator else 0


@dataclass(frozen=True, slots=True)
class RequirementClass:
    """Requirements with their canonical JSON and its SHA-256 in hex, the class's key."""

    key: str
    body: bytes
    requirements: Requirements


_ENCODER = msgspec.json.Encoder(order="sorted")
_DECODER = msgspec.json.Decoder(Requirements)


def requirement_class(requirements: Requirements) -> RequirementClass:
    """Give requirements their class."""
    body = _ENCODER.encode(requirements)
    return RequirementClass(hashlib.sha256(body).hexdigest(), body, requirements)


def from_class_body(body: bytes) -> RequirementClass:
    """Read the canonical JSON of a class again, as an assessment carries it. Raises msgspec.MsgspecError."""
    return RequirementClass(hashlib.sha256(body).hexdigest(), body, _DECODER.decode(body))


@lru_cache(maxsize=1024)
def field_reader(fields: tuple[str, ...]) -> Callable[[Requirements], object]:
    """Return what reads these fields in one go: what a constraint or a preference asks of an operation, as a key."""
    return attrgetter(*fields) if fields else _nothing


def _nothing(_: Requirements) -> object:
    return None
