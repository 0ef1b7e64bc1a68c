"""From text to words: the lexical part of CEL, as far as rules use it."""

import re
from typing import Final, NamedTuple

LONGEST_EXPRESSION: Final = 2_000


class ExpressionError(Exception):
    """An expression cannot be accepted: where (offset from 0), what is expected and found, and what to do."""

    def __init__(self, offset: int, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message
        self.suggestion = suggestion


class Word(NamedTuple):
    """One word: its kind (`int`, `double`, `text`, `name`, `sign`, `end`), itself, and where it begins."""

    kind: str
    text: str
    at: int


_PATTERN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<double>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    |(?P<int>0x[0-9a-fA-F]+|\d+)(?P<uint>[uU])?
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[<>!?:+\-*/%.,()\[\]])
    """,
    re.VERBOSE,
)
# What the evaluating library reads the same way; others are not needed in names of things.
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "t": "\t"}


def words(expression: str) -> list[Word]:
    """Return the words of an expression, an `end` last. Raises ExpressionError."""
    if len(expression) > LONGEST_EXPRESSION:
        message = f"expected at most {LONGEST_EXPRESSION} characters, found {len(expression)}"
        raise ExpressionError(0, message, "split it into several rules: all of them must hold")
    found: list[Word] = []
    at = 0
    while at < len(expression):
        match = _PATTERN.match(expression, at)
        if match is None:
            raise ExpressionError(at, _unknown(expression[at]))
        if match["uint"]:
            raise ExpressionError(at, "unsigned numbers are not used in rules", "leave the u out")
        kind = match.lastgroup or ""
        if kind == "text":
            _check_escapes(match[kind], at)
        if kind != "space":
            found.append(Word(kind, match[kind], at))
        at = match.end()
    return [*found, Word("end", "", len(expression))]


def unquoted(word: Word) -> str:
    """Return what a text means."""
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], word.text[1:-1])


def _check_escapes(text: str, at: int) -> None:
    for match in _ESCAPE.finditer(text[1:-1]):
        if match[1] not in _ESCAPES:
            expected = "expected \\\\, \\\", \\', \\n or \\t"
            raise ExpressionError(at + 1 + match.start(), f"{expected}, found {match[0]}")


def _unknown(character: str) -> str:
    if character in "\"'":
        return "a text that does not end on its line"
    if character in "{}":
        return "maps and messages are not used in rules"
    return f"unexpected character {character!r}"
