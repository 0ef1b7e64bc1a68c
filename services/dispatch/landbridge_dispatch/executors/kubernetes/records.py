"""What a slot's Job says about itself, in annotations: enough for whoever comes next, without any other file."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from landbridge_dispatch.executors.kubernetes import names

T = TypeVar("T")


class Place(msgspec.Struct, frozen=True, rename="camel"):
    """Where an output or a checkpoint lies: `path` below its logical connection."""

    connection: str
    path: str


class Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What never changes of a slot. Times are milliseconds."""

    operation: str
    generation: int
    counter: int
    attempt: int = 0
    project: str = ""
    type: str = "job"
    ranks: int = 1
    """How many pods take the slot."""
    operator: str = ""
    """Which one runs it; empty: none, it is a Job's or a Deployment's."""
    policy: str = "continue"
    within_ms: int = 0
    loss_grace_ms: int = 0
    stop_grace_ms: int = 30_000
    gang_within_ms: int = 0
    outputs: Mapping[str, Place] = {}
    checkpoint: Place | None = None
    acceptance: tuple[dict[str, Any], ...] = ()
    resolved: Mapping[str, Any] = {}
    memory_bytes: int = 0


class Claim(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The pod that took the slot for a rank, when (seconds since the epoch, the dispatcher's clock), on which node."""

    pod: str
    at: float
    node: str = ""


class Stop(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An order to stop. `seals`: the wrapper asks for a checkpoint first; `until`: when the pod is ended anyway."""

    reason: str
    grace_ms: int
    at: float
    seals: bool = False
    until: float = 0.0


class Grave(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Nothing may start here. `buried`: by the dispatcher's decision, so that no end is to be told."""

    reason: str
    at: float
    message: str = ""
    denied: bool = False
    buried: bool = False


class End(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """How a workload ended, kept from when it was first seen: pods may be gone a moment later."""

    outcome: str
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    at: float = 0.0
    provider: str = ""
    outputs: Mapping[str, Any] = {}
    metrics: Mapping[str, float] = {}
    acceptance: tuple[dict[str, Any], ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """The dispatcher's own final answer."""

    state: str
    outcome: str = ""
    reason: str = ""


def encode(value: Any) -> str:
    """Return the text of an annotation."""
    return msgspec.json.encode(value).decode()


def annotations(item: Mapping[str, Any]) -> Mapping[str, str]:
    """Return an object's annotations."""
    return item["metadata"].get("annotations") or {}


def read(item: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """Return what an annotation says; None where it is absent or was written by somebody who does not know how."""
    text = annotations(item).get(name)
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:
        return None


def record_of(job: Mapping[str, Any]) -> Record | None:
    """Return the record of a slot; None for a Job that is no slot."""
    return read(job, names.RECORD, Record)


def claims_of(job: Mapping[str, Any]) -> dict[str, Claim]:
    """Return which pod took the slot for each rank."""
    return read(job, names.CLAIMS, dict[str, Claim]) or {}


def integer(job: Mapping[str, Any], name: str) -> int:
    """Return a whole number that stands in an annotation; 0 for none."""
    text = annotations(job).get(name, "")
    return int(text) if text.isdecimal() else 0
