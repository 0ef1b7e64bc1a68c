"""What a plain YAML scalar means here, and the ones that readers disagree about.

We read YAML 1.2's core schema: only `true`, `false` and `null` are words with a meaning, numbers are decimal. What
YAML 1.1 readers take for something else (`no`, `0755`, `1:30`) is reported instead of guessed.
"""

import re
from dataclasses import dataclass
from typing import Final

from landbridge.domain.documents.limits import INT_MAX

_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+|(?:0|[1-9][0-9]*)(?=[eE]))(?:[eE][-+]?[0-9]{1,4})?"
)
_STARTS_LIKE_NUMBER: Final = frozenset("0123456789+-.")
_OLD_WORDS: Final = frozenset(("yes", "no", "on", "off"))
_OLD_NUMBER: Final = re.compile(
    r"[-+]?(?:0[0-9_]+|0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|[1-9][0-9_]*_[0-9_]*)"
)
_NOT_FINITE: Final = frozenset((".inf", "-.inf", "+.inf", ".nan"))
_WORDS: Final[dict[str, object]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a plain scalar was not read: `message` says what others make of it, `suggestion` how to write it."""

    message: str
    suggestion: str


def resolve(text: str) -> tuple[object, Doubt | None]:
    """Return the value of a plain scalar; with a doubt, the value is its text."""
    if text in _WORDS:
        return _WORDS[text], None
    if text[0] in _STARTS_LIKE_NUMBER:
        return _number(text)
    if len(text) <= 3 and text.lower() in _OLD_WORDS:
        meant = "true" if text.lower() in ("yes", "on") else "false"
        return text, Doubt(
            f"{text} is text to some YAML readers and {meant} to others",
            f'write "{text}" if text is meant, {meant} otherwise',
        )
    return text, None


def _number(text: str) -> tuple[object, Doubt | None]:
    if _INT.fullmatch(text):
        return _integer(text)
    if len(text) <= 40 and _FLOAT.fullmatch(text):
        number = float(text)
        if abs(number) == float("inf"):
            return text, Doubt("a number that is too large", "write it in quotes if text is meant")
        return number, None
    if text.lower() in _NOT_FINITE:
        return text, Doubt(f"{text} is not a finite number", "give a number, or put it in quotes if text is meant")
    if len(text) <= 40 and _OLD_NUMBER.fullmatch(text):
        return text, Doubt(
            f"{text} means different numbers to different YAML readers", f'write "{text}" if text is meant'
        )
    return text, None


def _integer(text: str) -> tuple[object, Doubt | None]:
    if len(text) <= 20:
        number = int(text)
        if -INT_MAX <= number <= INT_MAX:
            return number, None
    return text, Doubt("a whole number of more than 64 bits", "write it in quotes if text is meant")
