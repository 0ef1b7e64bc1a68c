"""What the SDK returns. Fields that a newer server adds are in `raw`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TERMINAL = frozenset({"completed", "failed", "cancelled"})
UNPLACEABLE = "unplaceable"

Source = str | bytes | Path | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a document; line and column count from 1, 0 where no place is known."""

    path: str = ""
    code: str = ""
    message: str = ""
    suggestion: str = ""
    line: int = 0
    column: int = 0

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "Problem":
        return cls(
            path=str(value.get("path") or ""),
            code=str(value.get("code") or ""),
            message=str(value.get("message") or ""),
            suggestion=str(value.get("suggestion") or ""),
            line=int(value.get("line") or 0),
            column=int(value.get("column") or 0),
        )

    def __str__(self) -> str:
        told = f"{self.message}; {self.suggestion}" if self.suggestion else self.message
        return f"{self.path}: {told}" if self.path else told


@dataclass(frozen=True, slots=True)
class Submission:
    """One document to submit, with the key that makes repeating it safe (empty: a fresh one)."""

    document: Source
    idempotency_key: str = ""


@dataclass(frozen=True, slots=True)
class Submitted:
    """An accepted operation. `existing` tells that the key had been used for the same document before."""

    id: str
    phase: str = "accepted"
    existing: bool = False
    idempotency_key: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A document that was not accepted; `conflicts_with` is the operation that has the key already."""

    message: str
    problems: tuple[Problem, ...] = ()
    status: int = 422
    conflicts_with: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as lineage knows it now."""

    id: str
    project: str = ""
    name: str = ""
    queue: str = ""
    phase: str = ""
    environment: str = ""
    attempt: int = 0
    reason: str = ""
    message: str = ""
    submitted_at: str = ""
    changed_at: str = ""
    ended_at: str = ""
    conditions: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "Operation":
        def text(name: str) -> str:
            return str(value.get(name) or "")

        return cls(
            id=text("operation"),
            project=text("project"),
            name=text("name"),
            queue=text("queue"),
            phase=text("phase"),
            environment=text("environment"),
            attempt=int(value.get("attempt") or 0),
            reason=text("reason"),
            message=text("message"),
            submitted_at=text("acceptedAt"),
            changed_at=text("changedAt"),
            ended_at=text("endedAt"),
            conditions=tuple(str(item.get("type") or "") for item in value.get("conditions") or ()),
            raw=value,
        )

    @property
    def finished(self) -> bool:
        return self.phase in TERMINAL

    @property
    def unplaceable(self) -> bool:
        """Whether no environment can run it as things stand; it waits until its queue timeout."""
        waiting = self.raw.get("waiting") or {}
        return not self.finished and (UNPLACEABLE in self.conditions or waiting.get("condition") == UNPLACEABLE)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to an operation.

    Steps of the lifecycle have a gapless `sequence`; what was assessed, decided or awaited in between has 0.
    """

    id: str
    event: str
    sequence: int = 0
    at: str = ""
    phase: str = ""
    environment: str = ""
    attempt: int = 0
    reason: str = ""
    message: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, value: Mapping[str, Any], event: str = "") -> "Event":
        """Read an entry of the timeline, or the body of an event with its name beside it."""
        found: Any = value.get("data")
        data: Mapping[str, Any] = found if isinstance(found, Mapping) else value
        name = event or str(value.get("event") or data.get("phase") or "")
        sequence = int(value.get("opSeq") or 0)
        return cls(
            id=str(value.get("id") or f"{data.get('operation', '')}:{sequence}"),
            event=name,
            sequence=sequence,
            at=str(value.get("at") or data.get("at") or ""),
            phase=str(data.get("phase") or ("accepted" if name == "accepted" else "")),
            environment=str(data.get("environment") or ""),
            attempt=int(data.get("attempt") or 0),
            reason=str(data.get("reason") or ""),
            message=str(data.get("message") or ""),
            raw=value,
        )

    @property
    def final(self) -> bool:
        return self.event in TERMINAL


@dataclass(frozen=True, slots=True)
class Output:
    """One declared output of the latest attempt, as its environment found it."""

    name: str
    connection: str = ""
    path: str = ""
    bytes: int = 0
    sha256: str = ""
    exists: bool = False
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, name: str, value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> "Output":
        """Read what was recorded at the attempt's end, or the list of files while it runs."""
        if not isinstance(value, Mapping):
            total = sum(int(file.get("bytes") or 0) for file in value)
            return cls(name, bytes=total, exists=bool(value), raw={"files": list(value)})
        return cls(
            name=name,
            connection=str(value.get("connection") or ""),
            path=str(value.get("path") or ""),
            bytes=int(value.get("bytes") or 0),
            sha256=str(value.get("sha256") or ""),
            exists=bool(value.get("exists")),
            raw=value,
        )


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A piece of a log; `next_offset` continues it, `end` tells that nothing more will come."""

    text: str
    next_offset: int = 0
    end: bool = False
    message: str = ""
