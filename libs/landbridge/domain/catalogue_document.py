"""Read documents of the catalogue into the values that deciding works with.

Documents come as parsed JSON. Each reader raises msgspec.MsgspecError or units.UnitError for a document that intake
cannot have accepted.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from landbridge.domain import units
from landbridge.domain.catalogue import (
    ANYWHERE,
    EVERYBODY,
    CapabilityClass,
    Connection,
    OperatorRule,
    Policy,
    Project,
    Queue,
    Reclaim,
    Scope,
    Selection,
)
from landbridge.domain.contract import quantity

S = TypeVar("S")
_RECLAIM = {item.value: item for item in Reclaim}


class _Part(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A part of a document; fields that deciding does not read are skipped."""


class _Overflow(_Part, frozen=True):
    allowed: bool | None = None
    after: str = ""


class _QueueSpec(_Part, frozen=True):
    priority: int = 0
    priority_classes: dict[str, int] = {}
    concurrency: int | None = None
    quota: dict[str, str | int] = {}
    projects: tuple[str, ...] = ()
    paused: bool = False
    environments: Selection = ANYWHERE
    parent: str = ""
    borrow: dict[str, str | int] = {}
    weight: float | None = None
    ageing: str = ""
    preemption: str = ""
    reclaim: str = ""


class _Limits(_Part, frozen=True):
    running: int | None = None
    quota: dict[str, str | int] = {}


class _ProjectSpec(_Part, frozen=True):
    environments: Selection = ANYWHERE
    limits: _Limits = _Limits()
    preferences: dict[str, float] = {}
    weight: float | None = None
    policy: str = ""
    identities: tuple[str, ...] = ()


class _PolicySpec(_Part, frozen=True):
    preferences: dict[str, float] = {}
    scope: Scope = EVERYBODY
    precedence: int = 0
    overflow: _Overflow = _Overflow()


class _RuleSpec(_Part, frozen=True):
    expression: str = ""
    message: str = ""
    violation: str = ""
    scope: Scope = EVERYBODY
    environments: Selection = ANYWHERE


class _Attributes(_Part, frozen=True):
    memory: str = ""
    precision: tuple[str, ...] = ()
    interconnect: str = ""
    partition: str = ""
    driver: str = ""
    interruptible: bool | None = None
    architecture: str = ""


class _ClassSpec(_Part, frozen=True):
    kind: str = ""
    attributes: _Attributes = _Attributes()


class _Movement(_Part, frozen=True):
    allowed: bool = False
    encrypted_only: bool | None = None


class _ConnectionSpec(_Part, frozen=True):
    data_class: str = ""
    jurisdictions: tuple[str, ...] = ()
    size: str = ""
    projects: tuple[str, ...] = ()
    movement: _Movement | None = None


def read_queue(name: str, version: int, document: Mapping[str, Any]) -> Queue:
    spec = _spec(document, _QueueSpec)
    return Queue(
        name=name,
        version=version,
        priority=spec.priority,
        priority_classes=spec.priority_classes,
        concurrency=spec.concurrency,
        quota=_quantities(spec.quota),
        projects=spec.projects,
        paused=spec.paused,
        paused_by_document=spec.paused,
        environments=spec.environments,
        parent=spec.parent,
        borrow=_quantities(spec.borrow),
        weight=spec.weight,
        ageing_ms=units.parse_duration(spec.ageing) if spec.ageing else 0,
        preempts=spec.preemption == "lower-priority",
        reclaim=_RECLAIM.get(spec.reclaim, Reclaim.NEVER),
    )


def read_project(name: str, version: int, document: Mapping[str, Any]) -> Project:
    spec = _spec(document, _ProjectSpec)
    return Project(
        name=name,
        version=version,
        environments=spec.environments,
        running=spec.limits.running,
        quota=_quantities(spec.limits.quota),
        preferences=spec.preferences,
        weight=1.0 if spec.weight is None else spec.weight,
        policy=spec.policy,
        identities=spec.identities,
    )


def read_policy(name: str, version: int, document: Mapping[str, Any]) -> Policy:
    spec = _spec(document, _PolicySpec)
    return Policy(
        name=name,
        version=version,
        preferences=spec.preferences,
        scope=spec.scope,
        precedence=spec.precedence,
        overflow_allowed=spec.overflow.allowed is not False,
        overflow_after_ms=units.parse_duration(spec.overflow.after) if spec.overflow.after else 0,
    )


def read_rule(name: str, version: int, document: Mapping[str, Any]) -> OperatorRule:
    spec = _spec(document, _RuleSpec)
    return OperatorRule(
        name=name,
        version=version,
        expression=spec.expression,
        message=spec.message,
        never=spec.violation != "not-now",
        scope=spec.scope,
        environments=spec.environments,
    )


def read_class(name: str, version: int, document: Mapping[str, Any]) -> CapabilityClass:
    spec = _spec(document, _ClassSpec)
    attributes = spec.attributes
    return CapabilityClass(
        name=name,
        version=version,
        accelerator=spec.kind != "cpu",
        memory=units.parse_bytes(attributes.memory) if attributes.memory else None,
        precision=attributes.precision,
        interconnect=attributes.interconnect,
        partition=attributes.partition,
        driver=attributes.driver,
        interruptible=attributes.interruptible,
        architecture=attributes.architecture,
    )


def read_connection(name: str, version: int, document: Mapping[str, Any]) -> Connection:
    spec = _spec(document, _ConnectionSpec)
    return Connection(
        name=name,
        version=version,
        data_class=spec.data_class,
        jurisdictions=spec.jurisdictions,
        size=units.parse_bytes(spec.size) if spec.size else None,
        projects=spec.projects,
        movement_allowed=spec.movement.allowed if spec.movement is not None else None,
        encrypted_only=spec.movement is None or spec.movement.encrypted_only is not False,
    )


def _spec(document: Mapping[str, Any], kind: type[S]) -> S:
    return msgspec.convert(document.get("spec") or {}, kind, strict=False)


def _quantities(stated: Mapping[str, str | int]) -> dict[str, int]:
    return {name: quantity(name, text) for name, text in sorted(stated.items())}
