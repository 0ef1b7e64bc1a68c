"""From words to the syntax tree, by the precedence of CEL."""

from typing import Final

from landbridge.domain.rules.syntax import RESERVED, Call, Field, Has, Item, Listed, Literal, Loop, Name, Node
from landbridge.domain.rules.words import ExpressionError, Word, unquoted, words

MOST_NODES: Final = 400
DEEPEST: Final = 24
_MACROS: Final = frozenset({"all", "exists", "exists_one", "filter", "map"})
# Binary operators from the loosest to the tightest; all are read from left to right.
_LEVELS: Final = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"<", "<=", ">", ">=", "==", "!=", "in"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)
_LARGEST: Final = 2**63 - 1


def parse(expression: str) -> Node:
    """Return the syntax tree. Raises ExpressionError for what is no expression, or is not used in rules."""
    reader = _Reader(words(expression))
    found = reader.choice()
    if reader.word.kind != "end":
        raise ExpressionError(reader.word.at, f"expected an operator or the end, found {reader.word.text!r}")
    return found


class _Reader:
    def __init__(self, found: list[Word]) -> None:
        self._words = found
        self._place = 0
        self._nodes = 0
        self._depth = 0

    @property
    def word(self) -> Word:
        return self._words[self._place]

    def _take(self) -> Word:
        word = self.word
        self._place += word.kind != "end"
        return word

    def _is(self, *signs: str) -> bool:
        return self.word.text in signs and self.word.kind in ("sign", "name")

    def _expect(self, sign: str) -> Word:
        if not self._is(sign):
            raise ExpressionError(self.word.at, f"expected {sign!r}, found {_shown(self.word)}")
        return self._take()

    def _node(self, at: int) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            message = f"expected at most {MOST_NODES} parts"
            raise ExpressionError(at, message, "split it into several rules: all of them must hold")

    # -- precedence ---------------------------------------------------------------------------------------------------

    def choice(self) -> Node:
        """Read `condition ? one : other`, or anything tighter."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionError(self.word.at, f"expected at most {DEEPEST} levels of brackets")
        found = self._binary(0)
        if self._is("?"):
            at = self._take().at
            self._node(at)
            one = self.choice()
            self._expect(":")
            found = Call(at, "?:", (found, one, self.choice()))
        self._depth -= 1
        return found

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        found = self._binary(level + 1)
        while self._is(*_LEVELS[level]):
            sign = self._take()
            self._node(sign.at)
            found = Call(sign.at, sign.text, (found, self._binary(level + 1)))
        return found

    def _unary(self) -> Node:
        if not self._is("!", "-"):
            return self._member()
        sign = self._take()
        self._node(sign.at)
        if self._is("!", "-"):
            raise ExpressionError(self.word.at, f"expected a value after {sign.text!r}, found {self.word.text!r}")
        return Call(sign.at, f"{sign.text}_", (self._member(),))

    def _member(self) -> Node:
        found = self._primary()
        while self._is(".", "["):
            sign = self._take()
            self._node(sign.at)
            if sign.text == "[":
                found = Item(sign.at, found, self.choice())
                self._expect("]")
                continue
            name = self._name("a field or a function")
            found = self._method(found, name) if self._is("(") else Field(name.at, found, name.text)
        return found

    def _method(self, of: Node, name: Word) -> Node:
        arguments = self._arguments(")")
        if name.text not in _MACROS:
            return Call(name.at, name.text, (of, *arguments))
        if len(arguments) != 2 or not isinstance(arguments[0], Name):
            raise ExpressionError(name.at, f"expected {name.text}(name, condition)")
        return Loop(name.at, name.text, of, arguments[0].name, arguments[1])

    def _arguments(self, end: str) -> tuple[Node, ...]:
        self._take()
        found: list[Node] = []
        while not self._is(end):
            found.append(self.choice())
            if not self._is(end):
                self._expect(",")
        self._take()
        return tuple(found)

    def _primary(self) -> Node:
        word = self.word
        self._node(word.at)
        if self._is("("):
            self._take()
            found = self.choice()
            self._expect(")")
            return found
        if self._is("["):
            return Listed(word.at, self._arguments("]"))
        if word.kind in ("int", "double", "text"):
            return self._literal(self._take())
        name = self._name("a value")
        if name.text in ("true", "false"):
            return Literal(name.at, name.text == "true")
        return self._function(name) if self._is("(") else Name(name.at, name.text)

    def _function(self, name: Word) -> Node:
        arguments = self._arguments(")")
        if name.text != "has":
            return Call(name.at, name.text, arguments)
        if len(arguments) != 1 or not isinstance(arguments[0], Field):
            raise ExpressionError(name.at, "expected has(something.field)")
        return Has(name.at, arguments[0])

    @staticmethod
    def _literal(word: Word) -> Literal:
        if word.kind == "text":
            return Literal(word.at, unquoted(word))
        if word.kind == "double":
            return Literal(word.at, float(word.text))
        value = int(word.text, 0) if word.text.startswith("0x") else int(word.text)
        if value > _LARGEST:
            raise ExpressionError(word.at, f"expected at most {_LARGEST}, found {word.text}")
        return Literal(word.at, value)

    def _name(self, wanted: str) -> Word:
        word = self.word
        if word.text == "null":
            suggestion = "what is not stated is not null; ask has(something.field)"
            raise ExpressionError(word.at, "null is not used in rules", suggestion)
        if word.kind != "name" or word.text in RESERVED or word.text == "in":
            raise ExpressionError(word.at, f"expected {wanted}, found {_shown(word)}")
        return self._take()


def _shown(word: Word) -> str:
    return "the end" if word.kind == "end" else repr(word.text)
