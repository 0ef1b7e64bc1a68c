"""The types of values in rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Plain:
    """A value without parts."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOL = Plain("bool")
INT = Plain("int")
DOUBLE = Plain("double")
TEXT = Plain("string")
NUMBERS = frozenset({INT, DOUBLE})


@dataclass(frozen=True, slots=True)
class Many:
    """A list, of at most `most` items; None: of an empty list that is written."""

    of: "Type | None"
    most: int

    def __str__(self) -> str:
        return f"list of {self.of}" if self.of is not None else "empty list"


@dataclass(frozen=True, slots=True)
class Member:
    """One field of a thing. `optional`: it may be missing; reading it then is an error, so ask `has` first."""

    type: "Type"
    meaning: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Thing:
    """Something with fields."""

    name: str
    members: Mapping[str, Member] = field(hash=False)

    def __str__(self) -> str:
        return self.name


Type = Plain | Many | Thing
