"""The part of a document that holds an operation's fields, for rules that apply wherever such fields stand."""

from collections.abc import Mapping
from dataclasses import dataclass

from landbridge.domain import units
from landbridge.domain.documents.places import Path
from landbridge.domain.documents.source import Source
from landbridge.domain.documents.walk import at, list_at, map_at, text_at
from landbridge.domain.errors import Problem


@dataclass(frozen=True, slots=True)
class Scope:
    """An operation's spec inside a document: `("spec",)` of an Operation, `("spec", "patch")` of a Preset.

    Readers return None or something empty for what is absent or of another type: shape problems are told elsewhere.
    """

    source: Source
    base: Path = ("spec",)

    def at(self, *path: str | int) -> object:
        return at(self.source.value, *self.base, *path)

    def has(self, *path: str | int) -> bool:
        return self.at(*path) is not None

    def text(self, *path: str | int) -> str:
        return text_at(self.source.value, *self.base, *path)

    def map(self, *path: str | int) -> Mapping[str, object]:
        return map_at(self.source.value, *self.base, *path)

    def list(self, *path: str | int) -> list[object]:
        return list_at(self.source.value, *self.base, *path)

    def number(self, *path: str | int) -> float | None:
        found = self.at(*path)
        return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None

    def duration_ms(self, *path: str | int) -> int | None:
        """Return a duration in milliseconds; None if it is absent or unreadable."""
        found = self.text(*path)
        try:
            return units.parse_duration(found) if found else None
        except units.UnitError:
            return None

    def names(self, *path: str | int) -> set[str]:
        """Return the texts of a list."""
        return {item for item in self.list(*path) if isinstance(item, str)}

    def problem(self, path: Path, code: str, message: str, suggestion: str = "", *, at_key: bool = False) -> Problem:
        return self.source.problem((*self.base, *path), code, message, suggestion, at_key=at_key)
