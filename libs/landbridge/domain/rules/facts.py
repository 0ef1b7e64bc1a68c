"""The values of the variables of rules: what of an operation and of a contract an expression reads, and nothing else.

What is not stated is not there, so that asking for it without `has` is an error and never an answer.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from landbridge.domain.candidate import Candidate
from landbridge.domain.contract import OfferedClass, OfferedConnection
from landbridge.domain.requirements import AcceleratorNeed, ConnectionNeed, Requirements
from landbridge.domain.rules.variables import ACCELERATOR, CLASS, ENVIRONMENT, NEEDED, OFFERED, OPERATION

_GIB: Final = 2**30


Reads = Mapping[str, frozenset[str]]
"""The fields that an expression reads, by the thing that has them."""
_NOTHING: Final[frozenset[str]] = frozenset()


def _scaled(amount: int | None, by: int) -> float | None:
    return None if amount is None else amount / by


ACCELERATOR_FIELDS: Final[Mapping[str, Callable[[AcceleratorNeed], Any]]] = {
    "class": lambda need: need.name,
    "count": lambda need: need.count,
    "memoryGiB": lambda need: need.memory / _GIB,
    "precision": lambda need: list(need.precision),
    "interconnect": lambda need: need.interconnect,
    "partition": lambda need: need.partition,
    "interruptible": lambda need: need.interruptible,
    "product": lambda need: need.product,
}
NEEDED_FIELDS: Final[Mapping[str, Callable[[ConnectionNeed], Any]]] = {
    "name": lambda need: need.name,
    "reads": lambda need: need.reads,
    "writes": lambda need: need.writes,
    "licenses": lambda need: list(need.licenses),
    "dataClass": lambda need: need.data_class,
}
CLASS_FIELDS: Final[Mapping[str, Callable[[OfferedClass], Any]]] = {
    "name": lambda offer: offer.name,
    "accelerator": lambda offer: offer.is_accelerator,
    "count": lambda offer: offer.count,
    "perNode": lambda offer: offer.per_node,
    "cpu": lambda offer: _scaled(offer.cpu, 1000),
    "memoryGiB": lambda offer: _scaled(offer.memory, _GIB),
    "precision": lambda offer: list(offer.precision),
    "interconnect": lambda offer: offer.interconnect,
    "driver": lambda offer: offer.driver,
    "partition": lambda offer: offer.partition,
    "product": lambda offer: offer.product,
    "interruptible": lambda offer: offer.interruptible,
}
OFFERED_FIELDS: Final[Mapping[str, Callable[[OfferedConnection], Any]]] = {
    "name": lambda offer: offer.name,
    "type": lambda offer: offer.type,
    "access": lambda offer: offer.access,
    "region": lambda offer: offer.region,
    "dataClass": lambda offer: offer.data_class,
    "encrypted": lambda offer: offer.encrypted,
    "cached": lambda offer: offer.cached,
}
T = TypeVar("T")


def _values(fields: Mapping[str, Callable[[T], Any]], of: T, names: frozenset[str]) -> dict[str, Any]:
    """Return the named fields that are stated."""
    found = {name: fields[name](of) for name in names}
    return {name: value for name, value in found.items() if value is not None}


# Of each field of `operation`: the requirements that it follows from, and its value; None: not stated. Things in it are
# cut down to the fields that are read.
OPERATION_FIELDS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Requirements], Any]]]] = {
    "project": (("project",), lambda r: r.project),
    "queue": (("queue",), lambda r: r.queue),
    "priority": (("priority",), lambda r: r.priority),
    "type": (("workload",), lambda r: r.workload),
    "replicas": (("replicas",), lambda r: r.replicas),
    "cpu": (("cpu",), lambda r: r.cpu / 1000),
    "memoryGiB": (("memory",), lambda r: r.memory / _GIB),
    "accelerator": (("accelerator",), lambda r: r.accelerator),
    "connections": (("connections",), lambda r: r.connections),
    "registry": (("registry",), lambda r: r.registry),
    "identity": (("identity",), lambda r: r.identity),
    "jurisdictions": (("jurisdictions",), lambda r: list(r.jurisdictions)),
    "regions": (("regions",), lambda r: list(r.regions)),
    "securityTier": (("security_tier",), lambda r: r.security_tier),
    "dataClass": (("data_class",), lambda r: r.data_class),
    "controls": (("controls",), lambda r: list(r.controls)),
    "expectedSeconds": (("expected_ms",), lambda r: r.expected_ms / 1000),
    "timeoutSeconds": (("timeout_ms",), lambda r: r.timeout_ms / 1000),
    "failedOver": (("failed_over",), lambda r: r.failed_over),
}


def _network(candidate: Candidate) -> str | None:
    network = candidate.contract.boundaries.network
    return (network.default or None) if network is not None else None


def _managed(candidate: Candidate) -> bool | None:
    section = candidate.contract.boundaries.control_plane
    return section.managed if section is not None else None


ENVIRONMENT_FIELDS: Final[Mapping[str, Callable[[Candidate], Any]]] = {
    "name": lambda c: c.environment,
    "contractVersion": lambda c: c.contract_version,
    "regions": lambda c: sorted(c.regions),
    "jurisdictions": lambda c: sorted(c.jurisdictions),
    "operatedBy": lambda c: c.contract.location.operated_by or None,
    "executor": lambda c: c.contract.runtime.executor,
    "kubernetes": lambda c: c.contract.runtime.kubernetes or None,
    "architectures": lambda c: list(c.contract.runtime.architectures),
    "operators": lambda c: list(c.contract.runtime.operators),
    "workloads": lambda c: list(c.contract.workloads),
    "securityTier": lambda c: c.contract.boundaries.security_tier or None,
    "managedControlPlane": _managed,
    "networkDefault": _network,
    "classes": lambda c: c.contract.classes.values(),
    "connections": lambda c: c.contract.connections.values(),
    "availability": lambda c: c.contract.availability,
}


def operation_facts(requirements: Requirements, reads: Reads) -> dict[str, Any]:
    """Return the fields of `operation` that are read."""
    found = {name: OPERATION_FIELDS[name][1](requirements) for name in reads.get(OPERATION, _NOTHING)}
    need = found.get("accelerator")
    if need is not None:
        found["accelerator"] = _values(ACCELERATOR_FIELDS, need, reads.get(ACCELERATOR, _NOTHING))
    if "connections" in found:
        names = reads.get(NEEDED, _NOTHING)
        found["connections"] = [_values(NEEDED_FIELDS, each, names) for each in found["connections"]]
    return {name: value for name, value in found.items() if value is not None}


def environment_facts(candidate: Candidate, reads: Reads) -> dict[str, Any]:
    """Return the fields of `environment` that are read."""
    found = _values(ENVIRONMENT_FIELDS, candidate, reads.get(ENVIRONMENT, _NOTHING))
    if "classes" in found:
        names = reads.get(CLASS, _NOTHING)
        found["classes"] = [_values(CLASS_FIELDS, offer, names) for offer in found["classes"]]
    if "connections" in found:
        names = reads.get(OFFERED, _NOTHING)
        found["connections"] = [_values(OFFERED_FIELDS, offer, names) for offer in found["connections"]]
    return found
