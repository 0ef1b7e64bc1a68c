"""Read what deciding needs from an accepted operation, in about 20 microseconds.

Only the fields that end in `Requirements` are decoded; all others are skipped. Nothing here validates: intake did.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from landbridge.domain import units
from landbridge.domain.features import RANKS, WORKLOAD_TYPES, features_of
from landbridge.domain.requirements import (
    DEFAULT_QUEUE,
    AcceleratorNeed,
    ConnectionNeed,
    Reading,
    RequirementClass,
    Requirements,
    requirement_class,
)


def classify(effective: bytes, *, excluded: tuple[str, ...] = (), failed_over: bool = False) -> RequirementClass:
    """Read an effective operation (canonical JSON, as accepted) and give it its class.

    `excluded` and `failed_over` belong to the round: environments that must not be chosen again, and whether the
    previous one was lost. Raises msgspec.MsgspecError or units.UnitError for bytes that intake cannot have accepted.
    """
    operation = _EFFECTIVE.decode(effective)
    found = _requirements(operation)
    if excluded or failed_over:
        found = _in_round(found, operation.spec, excluded, failed_over=failed_over)
    return requirement_class(found)


class _Part(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """A part of the document. Unknown fields are ignored: they are nobody's business here."""


class _Read(_Part, frozen=True):
    """What inputs, outputs and checkpoints have in common."""

    connection: str = ""
    license: str = ""
    size: str = ""
    data_class: str = ""


class _Variant(_Part, frozen=True):
    architecture: str = ""
    accelerator: str = ""


class _Image(_Part, frozen=True):
    registry: str = ""
    digest: str = ""
    variants: dict[str, _Variant] = {}


class _Source(_Part, frozen=True):
    connection: str = ""


class _Requests(_Part, frozen=True):
    cpu: str = ""
    memory: str = ""
    scratch: str = msgspec.field(name="ephemeral-storage", default="")


class _Exception(_Part, frozen=True):
    product: str = ""


class _Accelerator(_Part, frozen=True):
    name: str = msgspec.field(name="class", default="")
    count: int = 0
    precision: tuple[str, ...] = ()
    interconnect: str = ""
    interruptible: str = ""
    memory: str = ""
    partition: str = ""
    exception: _Exception | None = None


class _Resources(_Part, frozen=True):
    requests: _Requests = _Requests()
    accelerator: _Accelerator | None = None


class _Selection(_Part, frozen=True):
    allow: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()


class _Constraints(_Part, frozen=True):
    jurisdictions: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    security_tier: str = ""
    controls: tuple[str, ...] = ()
    deadline: datetime | None = None
    environments: _Selection = _Selection()
    architectures: tuple[str, ...] = ()
    kubernetes: str = ""
    operators: tuple[str, ...] = ()
    operated_by: tuple[str, ...] = ()


class _Disconnection(_Part, frozen=True):
    policy: str = ""


class _Recovery(_Part, frozen=True):
    mode: str = ""
    environments: tuple[str, ...] = ()


class _Lifecycle(_Part, frozen=True):
    expected_duration: str = ""
    timeout: str = ""
    disconnection: _Disconnection = _Disconnection()
    recovery: _Recovery = _Recovery()


class _Gang(_Part, frozen=True):
    framework: str = ""
    name: str = ""
    members: int = 0
    span_environments: bool = False


class _Spec(_Part, frozen=True):
    type: str = ""
    replicas: int = 0
    queue: str = ""
    priority: str = ""
    component: str = ""
    image: _Image | None = None
    command: msgspec.Raw = msgspec.Raw()
    source: _Source | None = None
    inputs: dict[str, _Read] = {}
    outputs: dict[str, _Read] = {}
    checkpoints: _Read | None = None
    resources: _Resources = _Resources()
    identity: str = ""
    constraints: _Constraints = _Constraints()
    preferences: dict[str, float] = {}
    lifecycle: _Lifecycle = _Lifecycle()
    gang: _Gang = _Gang()
    acceptance: msgspec.Raw = msgspec.Raw()
    data_class: str = ""


class _Metadata(_Part, frozen=True):
    project: str


class _Effective(_Part, frozen=True):
    metadata: _Metadata
    spec: _Spec
    environment_settings: msgspec.Raw = msgspec.Raw()


DISTRIBUTED = WORKLOAD_TYPES[1]
_EFFECTIVE = msgspec.json.Decoder(_Effective)
_EMPTY = (b"", b"[]", b"null", b"{}")

_cpu = lru_cache(maxsize=4096)(units.parse_cpu)
_bytes = lru_cache(maxsize=4096)(units.parse_bytes)
_duration = lru_cache(maxsize=4096)(units.parse_duration)


def _requirements(operation: _Effective) -> Requirements:
    spec = operation.spec
    rules, lifecycle, requests = spec.constraints, spec.lifecycle, spec.resources.requests
    command = bytes(spec.command) not in _EMPTY
    image = spec.image
    return Requirements(
        project=operation.metadata.project,
        queue=spec.queue or DEFAULT_QUEUE,
        priority=spec.priority,
        workload=spec.type or "job",
        replicas=max(spec.replicas, 1),
        command=command or spec.source is not None,
        image=image is not None,
        image_variants=_variants(image),
        cpu=_cpu(requests.cpu) if requests.cpu else 0,
        memory=_bytes(requests.memory) if requests.memory else 0,
        scratch=_bytes(requests.scratch) if requests.scratch else 0,
        accelerator=_accelerator(spec.resources.accelerator),
        connections=_connections(spec),
        registry=image.registry if image is not None else "",
        identity=spec.identity,
        jurisdictions=_ordered(rules.jurisdictions),
        regions=_ordered(rules.regions),
        security_tier=rules.security_tier,
        data_class=spec.data_class,
        controls=_ordered(rules.controls),
        deadline=_utc(rules.deadline),
        allow=_ordered(rules.environments.allow),
        forbid=_ordered(rules.environments.forbid),
        architectures=_ordered(rules.architectures),
        kubernetes=rules.kubernetes,
        operators=_ordered(rules.operators),
        operated_by=_ordered(rules.operated_by),
        preferences=tuple(sorted(spec.preferences.items())) if spec.preferences else (),
        expected_ms=_duration(lifecycle.expected_duration) if lifecycle.expected_duration else 0,
        timeout_ms=_duration(lifecycle.timeout) if lifecycle.timeout else 0,
        uninterruptible=lifecycle.disconnection.policy == "must-finish" or lifecycle.recovery.mode == "never",
        features=_features(operation, image_only=image is not None and not command),
        component=spec.component,
        framework=(spec.gang.framework or RANKS) if spec.type == DISTRIBUTED else "",
        gang=spec.gang.name,
        gang_members=spec.gang.members if spec.gang.name else 0,
        gang_spans=bool(spec.gang.name) and spec.gang.span_environments,
    )


def _in_round(requirements: Requirements, spec: _Spec, excluded: tuple[str, ...], *, failed_over: bool) -> Requirements:
    """Add what belongs to the round. Recovery matters only to work that was interrupted."""
    changed = msgspec.structs.replace(requirements, excluded=_ordered(excluded), failed_over=failed_over)
    if not failed_over:
        return changed
    recovery = spec.lifecycle.recovery
    return msgspec.structs.replace(
        changed,
        recovery_mode=recovery.mode,
        recovery_environments=_ordered(recovery.environments),
        checkpoints=spec.checkpoints.connection if spec.checkpoints is not None else "",
    )


def _features(operation: _Effective, *, image_only: bool) -> tuple[str, ...]:
    spec = operation.spec
    return features_of(
        spec.type,
        spec.lifecycle.disconnection.policy,
        image_only=image_only,
        source=spec.source is not None,
        inputs=bool(spec.inputs),
        outputs=bool(spec.outputs),
        checkpoints=spec.checkpoints is not None,
        acceptance=bytes(spec.acceptance) not in _EMPTY,
        environment_settings=bytes(operation.environment_settings) not in _EMPTY,
        framework=spec.gang.framework,
        gang=bool(spec.gang.name),
    )


def _ordered(values: tuple[str, ...]) -> tuple[str, ...]:
    return values if len(values) < 2 else tuple(sorted(set(values)))


def _utc(moment: datetime | None) -> datetime | None:
    """Bring a moment to UTC, so that equal moments written with other offsets give equal classes."""
    return moment.astimezone(UTC) if moment is not None else None


def _variants(image: _Image | None) -> tuple[tuple[str, str], ...]:
    """Return (architecture, capability class) of every variant; none if the image itself (or its index) serves all."""
    if image is None or image.digest or not image.variants:
        return ()
    return tuple(sorted({(variant.architecture, variant.accelerator) for variant in image.variants.values()}))


_NO_ACCELERATOR = _Accelerator()


def _accelerator(asked: _Accelerator | None) -> AcceleratorNeed | None:
    if asked is None or asked == _NO_ACCELERATOR:
        return None
    return AcceleratorNeed(
        name=asked.name,
        count=max(asked.count, 1),
        memory=_bytes(asked.memory) if asked.memory else 0,
        precision=_ordered(asked.precision),
        interconnect=asked.interconnect,
        partition=asked.partition,
        interruptible=asked.interruptible or "forbid",
        product=asked.exception.product if asked.exception else "",
    )


class _Collected:
    """What has been found about one connection while going through the specification."""

    __slots__ = ("data_class", "licenses", "readings", "reads", "uses", "writes")

    def __init__(self) -> None:
        self.uses: list[str] = []
        self.reads = self.writes = False
        self.readings: list[Reading] = []
        self.licenses: set[str] = set()
        self.data_class = ""


def _connections(spec: _Spec) -> tuple[ConnectionNeed, ...]:
    found: dict[str, _Collected] = {}
    _collect(found, "inputs", spec.inputs, reads=True)
    _collect(found, "outputs", spec.outputs, writes=True)
    if spec.checkpoints is not None:
        _collect(found, "", {"checkpoints": spec.checkpoints}, reads=True, writes=True)
    if spec.source is not None and spec.source.connection:
        _collect(found, "", {"source": _Read(spec.source.connection)}, reads=True)
    if spec.image is not None and spec.image.registry:
        _collect(found, "", {"image": _Read(spec.image.registry)}, reads=True)
    if not found:
        return ()
    return tuple(
        ConnectionNeed(
            name=name,
            uses=tuple(sorted(need.uses)),
            reads=need.reads,
            writes=need.writes,
            readings=tuple(sorted(need.readings, key=lambda r: (r.size or 0, r.license))),
            licenses=tuple(sorted(need.licenses)),
            data_class=need.data_class,
        )
        for name, need in sorted(found.items())
    )


def _collect(
    found: dict[str, _Collected], section: str, named: Mapping[str, _Read], *, reads: bool = False, writes: bool = False
) -> None:
    for name, item in named.items():
        if not item.connection:
            continue
        need = found.get(item.connection)
        if need is None:
            need = found[item.connection] = _Collected()
        need.uses.append(f"{section}.{name}" if section else name)
        need.reads |= reads
        need.writes |= writes
        if section == "inputs":
            need.readings.append(Reading(_bytes(item.size) if item.size else None, item.license))
        if item.license:
            need.licenses.add(item.license)
        if item.data_class and (item.data_class == "restricted" or not need.data_class):
            need.data_class = item.data_class
