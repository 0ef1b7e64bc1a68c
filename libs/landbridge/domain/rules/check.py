"""Whether an expression makes sense: every name is known, every type fits, it says yes or no, and it ends soon."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from landbridge.domain.rules.syntax import Call, Field, Has, Item, Listed, Literal, Loop, Name, Node
from landbridge.domain.rules.types import BOOL, DOUBLE, INT, NUMBERS, TEXT, Many, Thing, Type
from landbridge.domain.rules.words import ExpressionError

# Steps of one evaluation, if every list is as long as it may be: some 30 milliseconds.
MOST_STEPS: Final = 50_000
FUNCTIONS: Final = ("has", "size", "startsWith", "endsWith", "contains", "string", "int", "double")
MACROS: Final = ("all", "exists", "exists_one", "filter", "map")


@dataclass(frozen=True, slots=True)
class Checked:
    """What an expression is found to be: its type, its steps at most, and the fields that it reads of which things."""

    type: Type
    steps: int
    reads: frozenset[tuple[str, str]]


def check(node: Node, variables: Mapping[str, Type]) -> Checked:
    """Check an expression that must say yes or no. Raises ExpressionError at the first thing that does not fit."""
    checker = _Checker(variables)
    found = checker.type_of(node)
    if found != BOOL:
        raise ExpressionError(node.at, f"expected a condition (bool), found {found}", "compare it with something")
    if checker.steps > MOST_STEPS:
        message = f"it may take {checker.steps} steps, expected at most {MOST_STEPS}"
        raise ExpressionError(node.at, message, "do not put loops over long lists into each other")
    return Checked(found, checker.steps, frozenset(checker.reads))


class _Checker:
    def __init__(self, variables: Mapping[str, Type]) -> None:
        self._variables = dict(variables)
        self.steps = 0
        self.reads: set[tuple[str, str]] = set()
        self._factor = 1  # how often what is being read is evaluated
        self._roots = frozenset(variables)

    def type_of(self, node: Node) -> Type:
        self.steps += self._factor
        return _READERS[type(node)](self, node)

    def literal(self, node: Literal) -> Type:
        if isinstance(node.value, bool):
            return BOOL
        return TEXT if isinstance(node.value, str) else INT if isinstance(node.value, int) else DOUBLE

    def listed(self, node: Listed) -> Type:
        types = [self.type_of(item) for item in node.items]
        for item, found in zip(node.items, types, strict=True):
            if found != types[0]:
                raise ExpressionError(item.at, f"expected {types[0]} like the first, found {found}")
        return Many(types[0] if types else None, len(types))

    def name(self, node: Name) -> Type:
        found = self._variables.get(node.name)
        if found is None:
            suggestion = _did_you_mean(node.name, self._variables) or f"there are {', '.join(sorted(self._variables))}"
            raise ExpressionError(node.at, f"no variable {node.name!r}", suggestion)
        if node.name in self._roots:
            raise ExpressionError(node.at, f"expected a field of {node.name}", f"such as {node.name}.{_first(found)}")
        return found

    def field(self, node: Field) -> Type:
        if isinstance(node.of, Name) and node.of.name in self._roots:
            found = self._variables[node.of.name]
        else:
            found = self.type_of(node.of)
        if not isinstance(found, Thing):
            raise ExpressionError(node.at, f"a {found} has no fields")
        member = found.members.get(node.name)
        if member is None:
            suggestion = _did_you_mean(node.name, found.members) or f"there are {', '.join(found.members)}"
            raise ExpressionError(node.at, f"{found} has no field {node.name!r}", suggestion)
        self.reads.add((found.name, node.name))
        return member.type

    def item(self, node: Item) -> Type:
        found, key = self.type_of(node.of), self.type_of(node.key)
        if not isinstance(found, Many) or found.of is None:
            raise ExpressionError(node.at, f"expected a list before [, found {found}")
        if key != INT:
            raise ExpressionError(node.key.at, f"expected a place in the list (int), found {key}")
        return found.of

    def has(self, node: Has) -> Type:
        self.field(node.field)
        return BOOL

    def call(self, node: Call) -> Type:
        types = [self.type_of(argument) for argument in node.arguments]
        rule = _CALLS.get(node.name)
        if rule is None:
            if node.name in MACROS:
                raise ExpressionError(node.at, f"expected list.{node.name}(name, condition)")
            suggestion = _did_you_mean(node.name, (*FUNCTIONS, *MACROS))
            if node.name == "matches":
                suggestion = "use startsWith, endsWith or contains"
            raise ExpressionError(
                node.at, f"no function {node.name!r}", suggestion or f"there are {', '.join(FUNCTIONS)}"
            )
        return rule(node, types)

    def loop(self, node: Loop) -> Type:
        over = self.type_of(node.over)
        if not isinstance(over, Many) or over.of is None:
            raise ExpressionError(node.over.at, f"expected a list before .{node.macro}, found {over}")
        if node.variable in self._variables:
            raise ExpressionError(node.at, f"{node.variable!r} is a name already", "choose another one")
        before, self._factor = self._factor, self._factor * max(over.most, 1)
        self._variables[node.variable] = over.of
        body = self.type_of(node.body)
        del self._variables[node.variable]
        self._factor = before
        if node.macro != "map" and body != BOOL:
            raise ExpressionError(node.body.at, f"expected a condition (bool), found {body}")
        if node.macro == "map":
            return Many(body, over.most)
        return over if node.macro == "filter" else BOOL


_READERS: Final[dict[type, Callable[..., Type]]] = {
    Literal: _Checker.literal,
    Listed: _Checker.listed,
    Name: _Checker.name,
    Field: _Checker.field,
    Item: _Checker.item,
    Has: _Checker.has,
    Call: _Checker.call,
    Loop: _Checker.loop,
}


# -- operators and functions ------------------------------------------------------------------------------------------


def _count(node: Call, types: list[Type], number: int) -> None:
    if len(types) != number:
        raise ExpressionError(node.at, f"{node.name} takes {number} value(s), found {len(types)}")


def _logic(node: Call, types: list[Type]) -> Type:
    for argument, found in zip(node.arguments, types, strict=True):
        if found != BOOL:
            sign = node.name.rstrip("_")
            raise ExpressionError(argument.at, f"expected a condition (bool) beside {sign}, found {found}")
    return BOOL


def _arithmetic(node: Call, types: list[Type]) -> Type:
    one, other = types
    if one not in NUMBERS or one != other or (node.name == "%" and one != INT):
        wanted = "two ints" if node.name == "%" else "two ints or two doubles"
        suggestion = "convert with double(…)" if {one, other} == NUMBERS else "rules reckon with numbers only"
        raise ExpressionError(node.at, f"{node.name} takes {wanted}, found {one} and {other}", suggestion)
    return one


def _negative(node: Call, types: list[Type]) -> Type:
    if types[0] not in NUMBERS:
        raise ExpressionError(node.at, f"expected a number after -, found {types[0]}")
    return types[0]


def _ordered(node: Call, types: list[Type]) -> Type:
    one, other = types
    if not ({one, other} <= NUMBERS or one == other == TEXT):
        raise ExpressionError(node.at, f"{node.name} compares numbers or strings, found {one} and {other}")
    return BOOL


def _equal(node: Call, types: list[Type]) -> Type:
    one, other = types
    if isinstance(one, Thing | Many) or isinstance(other, Thing | Many):
        suggestion = "compare what is in it, with in, exists or all"
        raise ExpressionError(node.at, f"{node.name} compares plain values, found {one} and {other}", suggestion)
    if one != other and not {one, other} <= NUMBERS:
        raise ExpressionError(node.at, f"{node.name} compares values of one type, found {one} and {other}")
    return BOOL


def _in(node: Call, types: list[Type]) -> Type:
    one, many = types
    if not isinstance(many, Many):
        raise ExpressionError(node.at, f"expected a list after in, found {many}")
    if many.of is not None and (many.of != one or isinstance(one, Thing | Many)):
        raise ExpressionError(node.at, f"{one} cannot be in a {many}")
    return BOOL


def _choice(node: Call, types: list[Type]) -> Type:
    condition, one, other = types
    if condition != BOOL:
        raise ExpressionError(node.arguments[0].at, f"expected a condition (bool) before ?, found {condition}")
    if one != other:
        raise ExpressionError(node.at, f"expected one type on both sides of :, found {one} and {other}")
    return one


def _size(node: Call, types: list[Type]) -> Type:
    _count(node, types, 1)
    if types[0] != TEXT and not isinstance(types[0], Many):
        raise ExpressionError(node.at, f"size is of a list or a string, found {types[0]}")
    return INT


def _text_in_text(node: Call, types: list[Type]) -> Type:
    _count(node, types, 2)
    if types != [TEXT, TEXT]:
        raise ExpressionError(node.at, f"{node.name} compares two strings, found {types[0]} and {types[1]}")
    return BOOL


def _conversion(to: Type, of: frozenset[Type]) -> Callable[[Call, list[Type]], Type]:
    def convert(node: Call, types: list[Type]) -> Type:
        _count(node, types, 1)
        if types[0] not in of:
            raise ExpressionError(node.at, f"{node.name} takes {' or '.join(sorted(map(str, of)))}, found {types[0]}")
        return to

    return convert


_CALLS: Final[dict[str, Callable[[Call, list[Type]], Type]]] = {
    **dict.fromkeys(("&&", "||", "!_"), _logic),
    **dict.fromkeys(("+", "-", "*", "/", "%"), _arithmetic),
    **dict.fromkeys(("<", "<=", ">", ">="), _ordered),
    **dict.fromkeys(("==", "!="), _equal),
    **dict.fromkeys(("startsWith", "endsWith", "contains"), _text_in_text),
    "-_": _negative,
    "in": _in,
    "?:": _choice,
    "size": _size,
    "string": _conversion(TEXT, frozenset({INT, DOUBLE, BOOL, TEXT})),
    "int": _conversion(INT, frozenset({INT, DOUBLE})),
    "double": _conversion(DOUBLE, frozenset({INT, DOUBLE})),
}


def _first(found: Type) -> str:
    return next(iter(found.members)) if isinstance(found, Thing) else "name"


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, sorted(known), n=1)
    return f'did you mean "{near[0]}"?' if near else ""
