"""From bytes to text: size, encoding and characters that have no place in a document; and its cuts into documents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from landbridge.domain.documents.limits import MAX_DOCUMENT_BYTES, MAX_DOCUMENTS, MAX_STREAM_BYTES
from landbridge.domain.documents.places import Place
from landbridge.domain.errors import Problem

_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
# Characters that make text read differently from what it is (Unicode TR36, "Trojan Source").
BIDI: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_MARKER: Final = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NAMES: Final[Mapping[str, str]] = {"\x00": "NUL", "\x1b": "ESC", "\x7f": "DEL"}


@dataclass(frozen=True, slots=True)
class Slice:
    """One document of a text. `line` is how many lines of the text stand before it."""

    text: str
    line: int


def place_in(text: str, index: int) -> Place:
    """Return line and column of a position in a text, from 1."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def decode(body: bytes, limit: int = MAX_DOCUMENT_BYTES) -> str | Problem:
    """Return the text of a body, or why it is none."""
    if len(body) > limit:
        return Problem(
            "",
            "too-large",
            f"expected at most {limit // 1024} KiB, found {-(-len(body) // 1024)} KiB",
            "keep data in a connection and name it under inputs",
        )
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return Problem("", "not-utf-8", "expected UTF-8 text, found UTF-16", "save the file as UTF-8")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = body[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        message = f"expected UTF-8 text, found the byte 0x{body[error.start]:02x}"
        return Problem("", "not-utf-8", message, "save the file as UTF-8", line, column)
    return _refuse_characters(text) or text


def _refuse_characters(text: str) -> Problem | None:
    found = _CONTROL.search(text) or BIDI.search(text)
    if found is None:
        return None
    problem = character_problem("", found[0])
    line, column = place_in(text, found.start())
    return Problem("", problem.code, problem.message, problem.suggestion, line, column)


def character_problem(path: str, character: str) -> Problem:
    """Return the problem of one character that is not allowed anywhere in a document."""
    name = _NAMES.get(character, f"U+{ord(character):04X}")
    if BIDI.fullmatch(character):
        return Problem(
            path, "bidi-control", f"{name} turns the direction of the text, which hides what it says", "remove it"
        )
    return Problem(path, "control-character", f"control character {name} is not allowed", "remove it")


def forbidden_character(text: str) -> str:
    """Return the first character of `text` that is allowed nowhere, or an empty string."""
    found = _CONTROL.search(text) or BIDI.search(text)
    return found[0] if found else ""


_BARE: Final = frozenset({"", "---", "---\n", "---\r\n"})


def split(body: bytes, limit: int = MAX_STREAM_BYTES) -> list[Slice] | Problem:
    """Cut a stream of documents at its `---` lines, without parsing: such a line is a border wherever it stands.

    Documents of comments and blank lines only are left out.
    """
    text = decode(body, limit)
    if isinstance(text, Problem):
        return text
    slices: list[Slice] = []
    start = line = 0
    borders = [match.start() for match in _MARKER.finditer(text)]
    for border in [*borders, len(text)]:
        part = text[start:border]
        if part not in _BARE:
            if _is_directive(part):
                return Problem("", "directive", "YAML directives (%) are off", "remove the line", line + 1, 1)
            if _has_content(part):
                slices.append(Slice(part, line))
        line += part.count("\n")
        start = border
    if len(slices) > MAX_DOCUMENTS:
        return Problem("", "too-many-documents", f"expected at most {MAX_DOCUMENTS} documents, found {len(slices)}")
    return slices


def _content(part: str) -> list[str]:
    body = part.removeprefix("---").removeprefix("...")
    return [line for line in map(str.strip, body.splitlines()) if line and not line.startswith("#")]


def _has_content(part: str) -> bool:
    return bool(_content(part))


def _is_directive(part: str) -> bool:
    return part.lstrip()[:1] in ("%", "#") and any(line.startswith("%") for line in _content(part)[:1])
