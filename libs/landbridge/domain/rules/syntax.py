"""The syntax tree of an expression."""

from dataclasses import dataclass
from typing import Final, TypeAlias

# Words that CEL keeps for itself; none of them can be a variable.
RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"}
    | {"namespace", "return", "var", "void", "while"}
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is written."""

    at: int
    value: bool | int | float | str


@dataclass(frozen=True, slots=True)
class Listed:
    """A list that is written."""

    at: int
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """`of.name`."""

    at: int
    of: "Node"
    name: str


@dataclass(frozen=True, slots=True)
class Item:
    """`of[key]`."""

    at: int
    of: "Node"
    key: "Node"


@dataclass(frozen=True, slots=True)
class Has:
    """`has(of.name)`: whether it is stated."""

    at: int
    field: Field


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator; a method has its object as first argument."""

    at: int
    name: str
    arguments: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """`over.macro(variable, body)`."""

    at: int
    macro: str
    over: "Node"
    variable: str
    body: "Node"


Node: TypeAlias = Literal | Listed | Name | Field | Item | Has | Call | Loop
