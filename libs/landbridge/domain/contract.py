"""An environment contract as deciding reads it: parsed once per version, quantities as whole numbers.

None always means "not stated", which is never the same as zero or as "everything". Nothing is validated here: the
contract-verifier registered the document.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache

import msgspec

from landbridge.domain import units

RUNNING = "running"
CPU = "cpu"
MEMORY = "memory"
SCRATCH = "ephemeral-storage"
EGRESS = "egress"


class Part(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A part of the document; fields that deciding does not read are skipped."""


class Location(Part, frozen=True):
    """Where the environment is and who operates it."""

    regions: tuple[str, ...] = ()
    jurisdictions: tuple[str, ...] = ()
    operated_by: str = ""


class Via(Part, frozen=True):
    """The operator that runs gangs of a framework; `fallback` is what does where it is absent, if anything."""

    operator: str = ""
    fallback: str = ""


class Runtime(Part, frozen=True):
    """How work is run; `via` by a gang's framework."""

    executor: str = ""
    kubernetes: str = ""
    architectures: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    via: dict[str, Via] = {}


class Identity(Part, frozen=True):
    """Who workloads are: a local principal by logical role."""

    roles: dict[str, str] = {}
    token_ttl: str = msgspec.field(name="tokenTTL", default="")
    revocation: str = ""


class Network(Part, frozen=True):
    """What workloads reach."""

    default: str = ""
    egress: tuple[str, ...] = ()


class Admission(Part, frozen=True):
    """What is let in."""

    pod_security: str = ""
    images: tuple[str, ...] = ()
    require_signature: bool | None = None


class Tenancy(Part, frozen=True):
    """How tenants are kept apart."""

    namespace: str = ""


class ControlPlane(Part, frozen=True):
    """Who controls the environment itself."""

    managed: bool | None = None
    operator_access: str = ""
    node_trust: str = ""
    secret_delivery: str = ""
    audit: str = ""


class Boundaries(Part, frozen=True):
    """What is kept apart and how; None: not stated."""

    security_tier: str = ""
    identity: Identity | None = None
    network: Network | None = None
    admission: Admission | None = None
    tenancy: Tenancy | None = None
    control_plane: ControlPlane | None = None


class Storage(Part, frozen=True):
    """One storage class."""

    encrypted: bool | None = None


class Window(Part, frozen=True):
    """A recurring maintenance window as written."""

    rrule: str
    duration: str
    time_zone: str = "UTC"
    start: str = ""


class Accepts(Part, frozen=True):
    """The site's own last word; an empty list accepts all."""

    projects: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OfferedClass:
    """One capability class of an environment: accelerators if `count` is stated, else processors and memory.

    `memory` is bytes of each device for accelerators, and of the whole class otherwise; `cpu` is millicores.
    `speed` is how fast one device or processor is, on the fleet's own scale.
    `node_selector` are the labels of the nodes that offer it.
    """

    name: str
    count: int | None = None
    per_node: int | None = None
    cpu: int | None = None
    memory: int | None = None
    scratch: int | None = None
    precision: tuple[str, ...] = ()
    interconnect: str = ""
    driver: str = ""
    interruptible: bool | None = None
    partition: str = ""
    product: str = ""
    speed: float | None = None
    speed_source: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_accelerator(self) -> bool:
        return self.count is not None


@dataclass(frozen=True, slots=True)
class OfferedConnection:
    """One logical connection of an environment. `size` is bytes, `bandwidth` bits per second."""

    name: str
    type: str = ""
    access: str = "read-only"
    region: str = ""
    size: int | None = None
    data_class: str = ""
    projects: tuple[str, ...] = ()
    licenses: tuple[str, ...] | None = None
    encrypted: bool | None = None
    bandwidth: int | None = None
    cached: bool = False

    def admits(self, project: str) -> bool:
        """Tell whether the environment opened the connection to a project; unstated means to all."""
        return not self.projects or project in self.projects or "*" in self.projects


@dataclass(frozen=True, slots=True)
class OfferedLink:
    """A network link to another environment, as claimed. `bandwidth` is bits per second, `latency_ms` milliseconds."""

    bandwidth: int | None = None
    latency_ms: int | None = None
    encrypted: bool | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """Prices. `per_hour` by class, for one accelerator or for one processor; absent or None means unknown.

    A stated 0 is a price: capacity that was paid for in advance. `source` is where the prices come from. `ends` is from
    when on a price is unknown, by class and for `egress`; `ended` are those that were withdrawn for that.
    """

    currency: str = ""
    per_hour: Mapping[str, float] = field(default_factory=dict)
    egress_per_gb: float | None = None
    source: str = ""
    ends: Mapping[str, datetime] = field(default_factory=dict)
    ended: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def until(self) -> datetime | None:
        """When the first of the prices ends; None: none does."""
        return min(self.ends.values(), default=None)

    def at(self, now: datetime) -> "Cost":
        """Return the prices that hold at a moment; the same object while none of them has ended."""
        over = {name: end for name, end in self.ends.items() if end <= now}
        if not over:
            return self
        return replace(
            self,
            per_hour={name: price for name, price in self.per_hour.items() if name not in over},
            egress_per_gb=None if EGRESS in over else self.egress_per_gb,
            ends={name: end for name, end in self.ends.items() if name not in over},
            ended={**self.ended, **over},
        )


@dataclass(frozen=True, slots=True)
class Contract:
    """One version of an environment's claims. `support_ends` is the first moment without support."""

    environment: str
    version: int
    location: Location
    runtime: Runtime
    workloads: tuple[str, ...]
    classes: Mapping[str, OfferedClass]
    storage: Mapping[str, Storage]
    connections: Mapping[str, OfferedConnection]
    boundaries: Boundaries
    quotas: Mapping[str, int]
    cost: Cost
    links: Mapping[str, OfferedLink]
    maintenance: tuple[Window, ...]
    accepts: Accepts
    grams_per_kwh: float | None = None
    carbon_source: str = ""
    carbon_measured: bool = False
    availability: float | None = None
    start_within_ms: int | None = None
    support_ends: datetime | None = None


def quantity(resource: str, text: str | int) -> int:
    """Return an amount of a resource as a whole number: cpu in millicores, memory in bytes, all else as it is."""
    if resource == CPU:
        return units.parse_cpu(str(text))
    return units.parse_bytes(str(text))


@lru_cache(maxsize=65536)
@lru_cache(maxsize=16_384)
def format_quantity(resource: str, amount: int) -> str:
    """Write an amount of a resource for people."""
    if resource == CPU:
        return units.format_cpu(amount)
    return units.format_bytes(amount) if resource in (MEMORY, SCRATCH) else str(amount)


def as_date(text: str) -> datetime | None:
    """Read a date as its first moment in UTC; None for an empty text."""
    return datetime.fromisoformat(f"{text}T00:00:00+00:00") if text else None
