"""What an import says: the operation, what became of each field, and what a person has to add."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from landbridge.domain.documents.places import Path, path_text


class Why(StrEnum):
    """Why a field was not mapped. The first three need a person, the others are for information."""

    NAME = "needs-a-name"
    """It names something physical; Landbridge wants the logical name: connection, class, role."""
    DECISION = "needs-a-decision"
    """What it means here depends on what was meant by it."""
    SECRET = "secret"  # noqa: S105 - a word of the report
    """It carries a secret or leads to one; operations never do."""
    NOT_NEEDED = "not-needed"
    """Landbridge or the environment does it by itself."""
    NO_COUNTERPART = "no-counterpart"
    """There is nothing like it here."""
    UNKNOWN = "unknown-field"
    """The format has no such field, or it is newer than this importer."""
    UNREADABLE = "unreadable"
    """YAML readers disagree about what it says."""

    @property
    def asks(self) -> bool:
        """Whether a person has to look at it."""
        return self in (Why.NAME, Why.DECISION, Why.SECRET, Why.UNREADABLE)


@dataclass(frozen=True, slots=True)
class Left:
    """Why something is not mapped: a reason, and what to do about it."""

    why: Why
    reason: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Mapped:
    """A field that became part of the operation. `note` says what changed on the way."""

    source: Path
    target: Path
    note: str = ""

    def members(self) -> dict[str, str]:
        return {
            "from": path_text(self.source),
            "to": path_text(self.target),
            **({"note": self.note} if self.note else {}),
        }


@dataclass(frozen=True, slots=True)
class Unmapped:
    """A field, or a part of one, that did not. `found` is the value for people, never a secret.

    `answer` is what a name can be given for, so that the next import maps it.
    """

    source: Path
    left: Left
    found: str = ""
    answer: str = ""

    def members(self) -> dict[str, str]:
        told = {
            "from": path_text(self.source),
            "why": self.left.why.value,
            "found": self.found,
            "reason": self.left.reason,
            "advice": self.left.advice,
            "map": self.answer,
        }
        return {name: text for name, text in told.items() if text}


@dataclass(frozen=True, slots=True)
class Missing:
    """What stands against the operation as it is: a value that a person must add, or change."""

    target: str
    code: str
    message: str
    suggestion: str = ""

    def members(self) -> dict[str, str]:
        told = {"at": self.target, "code": self.code, "message": self.message, "suggestion": self.suggestion}
        return {name: text for name, text in told.items() if text}


@dataclass(frozen=True, slots=True)
class Imported:
    """One declaration brought in. `missing` is empty exactly if the operation is valid."""

    format: str
    operation: Mapping[str, Any]
    mapped: tuple[Mapped, ...]
    unmapped: tuple[Unmapped, ...]
    missing: tuple[Missing, ...]
    names_used: frozenset[str] = frozenset()
    """Which of the given names something asked for."""

    def members(self) -> dict[str, Any]:
        """Return everything for programs."""
        return {
            "format": self.format,
            "valid": not self.missing,
            "operation": dict(self.operation),
            "missing": [each.members() for each in self.missing],
            "mapped": [each.members() for each in self.mapped],
            "unmapped": [each.members() for each in self.unmapped],
        }
