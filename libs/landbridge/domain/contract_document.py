"""Read an environment contract's document into the values that deciding works with."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from landbridge.domain import units
from landbridge.domain.contract import (
    Accepts,
    Boundaries,
    Contract,
    Cost,
    Location,
    OfferedClass,
    OfferedConnection,
    OfferedLink,
    Runtime,
    Storage,
    Window,
    as_date,
    quantity,
)

T = TypeVar("T")


class _Part(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A part of a document; fields that deciding does not read are skipped."""


class _Via(_Part, frozen=True):
    node_selector: dict[str, str] = {}


class _Class(_Part, frozen=True):
    cpu: str = ""
    memory: str = ""
    count: int | None = None
    per_node: int | None = None
    precision: tuple[str, ...] = ()
    interconnect: str = ""
    driver: str = ""
    interruptible: bool | None = None
    partition: str = ""
    product: str = ""
    scratch: str = msgspec.field(name="ephemeral-storage", default="")
    speed: float | None = None
    speed_source: str = ""
    via: _Via = _Via()


class _Connection(_Part, frozen=True):
    type: str = ""
    access: str = ""
    region: str = ""
    size: str = ""
    data_class: str = ""
    projects: tuple[str, ...] = ()
    licenses: tuple[str, ...] | None = None
    encrypted: bool | None = None
    bandwidth: str = ""
    cached: bool = False


class _Cost(_Part, frozen=True):
    currency: str = ""
    per_hour: dict[str, float | None] = {}
    egress_per_gb: float | None = msgspec.field(name="egressPerGB", default=None)
    source: str = ""
    ends: dict[str, datetime] = {}


class _Carbon(_Part, frozen=True):
    grams_per_kwh: float | None = msgspec.field(name="gramsPerKWh", default=None)
    source: str = ""
    measured: bool = False


class _Link(_Part, frozen=True):
    bandwidth: str = ""
    latency: str = ""
    encrypted: bool | None = None


class _Support(_Part, frozen=True):
    until: str = ""


class _Objectives(_Part, frozen=True):
    availability: str = ""
    start_within: str = ""


class _Spec(_Part, frozen=True):
    location: Location = Location()
    runtime: Runtime = Runtime()
    workloads: tuple[str, ...] = ()
    classes: dict[str, _Class] = {}
    storage: dict[str, Storage] = {}
    connections: dict[str, _Connection] = {}
    boundaries: Boundaries = Boundaries()
    quotas: dict[str, str | int] = {}
    cost: _Cost = _Cost()
    carbon: _Carbon = _Carbon()
    links: dict[str, _Link] = {}
    maintenance: tuple[Window, ...] = ()
    objectives: _Objectives = _Objectives()
    support: _Support = _Support()
    accepts: Accepts = Accepts()


class _Metadata(_Part, frozen=True):
    name: str
    version: int = 1


class _Document(_Part, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()


def _day_after(text: str) -> datetime | None:
    last = as_date(text)
    return last + timedelta(days=1) if last is not None else None


def parse_contract(document: bytes | Mapping[str, Any]) -> Contract:
    """Read a contract document, as JSON bytes or as the parsed mapping.

    Raises msgspec.MsgspecError or units.UnitError for a document that cannot have been registered.
    """
    if isinstance(document, bytes):
        raw = msgspec.json.decode(document, type=_Document)
    else:
        raw = msgspec.convert(document, _Document, strict=False)
    spec = raw.spec
    availability = spec.objectives.availability
    return Contract(
        environment=raw.metadata.name,
        version=raw.metadata.version,
        location=spec.location,
        runtime=spec.runtime,
        workloads=spec.workloads,
        classes={name: _offered_class(name, item) for name, item in sorted(spec.classes.items())},
        storage=dict(sorted(spec.storage.items())),
        connections={name: _offered_connection(name, item) for name, item in sorted(spec.connections.items())},
        boundaries=spec.boundaries,
        quotas={name: quantity(name, text) for name, text in sorted(spec.quotas.items())},
        cost=_cost(spec.cost),
        links={name: _link(item) for name, item in sorted(spec.links.items())},
        maintenance=spec.maintenance,
        accepts=spec.accepts,
        grams_per_kwh=spec.carbon.grams_per_kwh,
        carbon_source=spec.carbon.source,
        carbon_measured=spec.carbon.measured,
        availability=float(units.parse_percentage(availability) / Decimal(100)) if availability else None,
        start_within_ms=_optional(spec.objectives.start_within, units.parse_duration),
        support_ends=_day_after(spec.support.until),
    )


def _optional(text: str, parse: Callable[[str], T]) -> T | None:
    return parse(text) if text else None


def _offered_class(name: str, item: _Class) -> OfferedClass:
    return OfferedClass(
        name=name,
        count=item.count,
        per_node=item.per_node,
        cpu=_optional(item.cpu, units.parse_cpu),
        memory=_optional(item.memory, units.parse_bytes),
        scratch=_optional(item.scratch, units.parse_bytes),
        precision=item.precision,
        interconnect=item.interconnect,
        driver=item.driver,
        interruptible=item.interruptible,
        partition=item.partition,
        product=item.product,
        speed=item.speed,
        speed_source=item.speed_source,
        node_selector=item.via.node_selector,
    )


def _offered_connection(name: str, item: _Connection) -> OfferedConnection:
    return OfferedConnection(
        name=name,
        type=item.type,
        access=item.access or "read-only",
        region=item.region,
        size=_optional(item.size, units.parse_bytes),
        data_class=item.data_class,
        projects=item.projects,
        licenses=item.licenses,
        encrypted=item.encrypted,
        bandwidth=_optional(item.bandwidth, units.parse_bandwidth),
        cached=item.cached,
    )


def _cost(item: _Cost) -> Cost:
    prices = {name: price for name, price in sorted(item.per_hour.items()) if price is not None}
    ends = {name: end if end.tzinfo else end.replace(tzinfo=UTC) for name, end in sorted(item.ends.items())}
    return Cost(item.currency, prices, item.egress_per_gb, item.source, ends)


def _link(item: _Link) -> OfferedLink:
    return OfferedLink(
        bandwidth=_optional(item.bandwidth, units.parse_bandwidth),
        latency_ms=_optional(item.latency, units.parse_duration),
        encrypted=item.encrypted,
    )
