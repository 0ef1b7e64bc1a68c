"""The documents besides contracts that deciding reads: queues, projects, policies, rules, classes, connections.

A `Catalogue` is one consistent view of them, with what follows from all contracts together (which names exist anywhere,
which jurisdictions a region lies in). It is replaced as a whole when a document changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from landbridge.domain.contract import Contract, Part

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Selection(Part, frozen=True):
    """A choice of environments by name; an empty `allow` means all."""

    allow: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()


class Scope(Part, frozen=True):
    """For whom a policy weighs; an empty list means all."""

    projects: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    def covers(self, project: str, queue: str, workload: str) -> bool:
        return (
            (not self.projects or project in self.projects)
            and (not self.queues or queue in self.queues)
            and (not self.types or workload in self.types)
        )


class Reclaim(StrEnum):
    """Which work beyond its queue's quota may be displaced for work within its own."""

    NEVER = "never"
    LOWER_PRIORITY = "lower-priority"
    ANY = "any"


ANYWHERE = Selection()
EVERYBODY = Scope()


class QueueControl(Part, frozen=True):
    """What people decided about a queue, beside its document. `draining` is since when it takes nothing new."""

    version: int = 0
    paused: bool = False
    draining: datetime | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """A line in which operations wait. `quota` and `borrow` by resource, cpu in millicores, memory in bytes.

    `weight` None: not stated. `ageing_ms` is the time of waiting that counts as one point of priority; 0: none does.
    `draining` is when it was told to take nothing new; None: it was not. `paused` is by its document or by a person.
    """

    name: str
    version: int = 0
    priority: int = 0
    priority_classes: Mapping[str, int] = field(default_factory=dict)
    concurrency: int | None = None
    quota: Mapping[str, int] = field(default_factory=dict)
    projects: tuple[str, ...] = ()
    paused: bool = False
    environments: Selection = ANYWHERE
    parent: str = ""
    borrow: Mapping[str, int] = field(default_factory=dict)
    weight: float | None = None
    ageing_ms: int = 0
    preempts: bool = False
    reclaim: Reclaim = Reclaim.NEVER
    draining: datetime | None = None
    paused_by_document: bool = False

    def controlled(self, control: QueueControl) -> "Queue":
        """Return the queue as people have it, beside what its document says."""
        paused = self.paused_by_document or control.paused
        return replace(self, paused=paused, draining=control.draining)

    def priority_of(self, priority_class: str) -> int:
        """Return the priority of a class of this queue; of no class, or of one it does not know, the queue's own."""
        return self.priority_classes.get(priority_class, self.priority)


@dataclass(frozen=True, slots=True)
class Project:
    """A tenant: what it may use and hold, and its weight in fair sharing."""

    name: str
    version: int = 0
    environments: Selection = ANYWHERE
    running: int | None = None
    quota: Mapping[str, int] = field(default_factory=dict)
    preferences: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0
    policy: str = ""
    identities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """How choices are weighed, for whom, and when a worse environment is taken because better ones are full."""

    name: str
    version: int = 0
    preferences: Mapping[str, float] = field(default_factory=dict)
    scope: Scope = EVERYBODY
    precedence: int = 0
    overflow_allowed: bool = True
    overflow_after_ms: int = 0


@dataclass(frozen=True, slots=True)
class OperatorRule:
    """A condition of an operator's own. `expression` is CEL; `never`: where it does not hold, waiting does not help."""

    name: str
    version: int = 0
    expression: str = ""
    message: str = ""
    never: bool = True
    scope: Scope = EVERYBODY
    environments: Selection = ANYWHERE


@dataclass(frozen=True, slots=True)
class CapabilityClass:
    """What a class guarantees wherever it is offered. `memory` is bytes of each device; None: not guaranteed."""

    name: str
    version: int = 0
    accelerator: bool = True
    memory: int | None = None
    precision: tuple[str, ...] = ()
    interconnect: str = ""
    partition: str = ""
    driver: str = ""
    interruptible: bool | None = None
    architecture: str = ""


@dataclass(frozen=True, slots=True)
class Connection:
    """The duties of a logical connection, wherever it is offered."""

    name: str
    version: int = 0
    data_class: str = ""
    jurisdictions: tuple[str, ...] = ()
    size: int | None = None
    projects: tuple[str, ...] = ()
    movement_allowed: bool | None = None
    encrypted_only: bool = True


@dataclass(frozen=True, slots=True)
class Catalogue:
    """One consistent view. `known_*` are the names that exist in any contract or document.

    `region_egress` is the highest price that any environment of a region states for a GB that leaves it, and its
    currency; regions with no stated price, or with prices in several currencies, are missing.
    """

    queues: Mapping[str, Queue] = field(default_factory=dict)
    projects: Mapping[str, Project] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(default_factory=dict)
    classes: Mapping[str, CapabilityClass] = field(default_factory=dict)
    connections: Mapping[str, Connection] = field(default_factory=dict)
    rules: Mapping[str, OperatorRule] = field(default_factory=dict)
    known_connections: frozenset[str] = frozenset()
    known_classes: frozenset[str] = frozenset()
    known_environments: frozenset[str] = frozenset()
    region_jurisdictions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    region_environments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    region_egress: Mapping[str, tuple[float, str]] = field(default_factory=dict)


EMPTY = Catalogue()


def build_catalogue(
    contracts: Iterable[Contract],
    *,
    queues: Mapping[str, Queue] = NOTHING,
    projects: Mapping[str, Project] = NOTHING,
    policies: Mapping[str, Policy] = NOTHING,
    classes: Mapping[str, CapabilityClass] = NOTHING,
    connections: Mapping[str, Connection] = NOTHING,
    rules: Mapping[str, OperatorRule] = NOTHING,
) -> Catalogue:
    """Bring documents and what follows from all contracts into one view."""
    known_connections, known_classes, known_environments = set(connections), set(classes), set()
    jurisdictions: dict[str, set[str]] = {}
    environments: dict[str, set[str]] = {}
    prices: dict[str, set[tuple[float, str]]] = {}
    for contract in contracts:
        known_environments.add(contract.environment)
        known_connections.update(contract.connections)
        known_classes.update(contract.classes)
        for region in contract.location.regions:
            environments.setdefault(region, set()).add(contract.environment)
            # Places of one region may state more or fewer of the jurisdictions around it; what all state is certain.
            stated = set(contract.location.jurisdictions)
            jurisdictions[region] = jurisdictions[region] & stated if region in jurisdictions else stated
            if contract.cost.egress_per_gb is not None:
                prices.setdefault(region, set()).add((contract.cost.egress_per_gb, contract.cost.currency))
    return Catalogue(
        queues=queues,
        projects=projects,
        policies=policies,
        classes=classes,
        connections=connections,
        rules=rules,
        known_connections=frozenset(known_connections),
        known_classes=frozenset(known_classes),
        known_environments=frozenset(known_environments),
        region_jurisdictions={region: frozenset(found) for region, found in sorted(jurisdictions.items())},
        region_environments={region: tuple(sorted(found)) for region, found in sorted(environments.items())},
        region_egress={region: max(found) for region, found in sorted(prices.items()) if _one_currency(found)},
    )


def _one_currency(prices: set[tuple[float, str]]) -> bool:
    return len({currency for _, currency in prices}) == 1
