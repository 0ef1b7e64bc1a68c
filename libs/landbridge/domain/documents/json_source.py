"""JSON text to plain values.

Places are looked for only when there is something to tell, so that a good document is read fast.
"""

import json
import re
from typing import Any, Final

from landbridge.domain.documents.credentials import shown_key
from landbridge.domain.documents.limits import INT_MAX, MAX_DEPTH, MAX_NODES, MAX_PROBLEMS
from landbridge.domain.documents.places import Path, Place, Places, path_text
from landbridge.domain.documents.text import place_in
from landbridge.domain.errors import Problem

_TOKEN: Final = re.compile(r'[ \t\r\n]*(?:("(?:[^"\\]|\\.)*")|([{}\[\],:])|([^\s{}\[\],:"]+))', re.DOTALL)


class _Unusable(ValueError):  # noqa: N818 - never leaves this module
    """A number that JSON allows and we do not."""

    def __init__(self, message: str, number: str) -> None:
        super().__init__(message)
        self.number = number


class JsonText:
    """One JSON document: its value, and its places on demand."""

    def __init__(self, text: str, offset: int = 0) -> None:
        self.text = text
        self.offset = offset
        self.value: Any = None
        self.problems: list[Problem] = []
        self.broken = False
        self._repeated = False
        self._places: Places | None = None

    def read(self) -> "JsonText":
        """Parse; `problems` tell what is wrong. `broken` means that there is no value at all."""
        try:
            self.value = json.loads(
                self.text,
                object_pairs_hook=self._object,
                parse_int=_whole_number,
                parse_float=_number,
                parse_constant=_no_number,
            )
        except json.JSONDecodeError as error:
            hint = "check quotes, commas and brackets up to here"
            message = f"not readable as JSON: {error.msg[:1].lower()}{error.msg[1:]}"
            self._stop("json-syntax", message, hint, (error.lineno + self.offset, error.colno))
        except _Unusable as error:
            line, column = place_in(self.text, self.text.find(error.number))
            self._stop("number-range", str(error), "write it as text in quotes", (line + self.offset, column))
        except RecursionError:
            self._stop("too-deep", f"expected at most {MAX_DEPTH} levels of nesting", "", (0, 0))
        else:
            self._bounds()
        if self._repeated and not self.broken:
            self._find_repeated()
        return self

    @property
    def places(self) -> Places:
        """The places of all keys and values; found when first asked for."""
        if self._places is None:
            self._places = _Scanner(self.text, self.offset).run() if not self.broken else Places()
        return self._places

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            self._repeated = True
            found = dict(reversed(pairs))  # the first one counts
        return found

    def _bounds(self) -> None:
        """Refuse what is nested too deep or has too many values."""
        nodes, level, depth = 1, [self.value], 0
        while level:
            depth += 1
            below: list[Any] = []
            for item in level:
                inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
                nodes += len(inner)
                below += [child for child in inner if isinstance(child, (dict, list))]
            if nodes > MAX_NODES:
                self._stop("too-many-nodes", f"expected at most {MAX_NODES} values", "", (0, 0))
                return
            if depth > MAX_DEPTH:
                self._stop("too-deep", f"expected at most {MAX_DEPTH} levels of nesting", "", (0, 0))
                return
            level = below

    def _find_repeated(self) -> None:
        scanner = _Scanner(self.text, self.offset)
        self._places = scanner.run()
        self.problems += scanner.repeated

    def _stop(self, code: str, message: str, suggestion: str, place: Place) -> None:
        self.broken = True
        self.value = None
        self.problems.append(Problem("", code, message, suggestion, *place))


def _whole_number(text: str) -> int:
    if len(text) <= 20 and abs(number := int(text)) <= INT_MAX:
        return number
    raise _Unusable("a whole number of more than 64 bits", text)


def _number(text: str) -> float:
    number = float(text)
    if abs(number) == float("inf"):
        raise _Unusable("a number that is too large", text)
    return number


def _no_number(text: str) -> float:
    raise _Unusable(f"{text} is not a finite number", text)


class _Scanner:
    """Walks the tokens of a text that is known to be valid JSON, and notes where everything stands."""

    def __init__(self, text: str, offset: int) -> None:
        self.text = text
        self.line = offset + 1
        self.line_start = 0
        self.seen = 0
        self.places = Places()
        self.repeated: list[Problem] = []

    def run(self) -> Places:
        stack: list[tuple[Path, bool, set[str]]] = []  # path, whether an object, its keys so far
        counts: list[int] = []
        key: Path | None = None
        for match in _TOKEN.finditer(self.text):
            if len(self.repeated) > MAX_PROBLEMS or len(self.places.values) > MAX_NODES:
                break
            string, mark, _ = match.groups()
            place = self._place(match.start(match.lastindex or 0))
            if mark in {",", ":"}:
                continue
            if mark in ("}", "]"):
                stack.pop()
                counts.pop()
                continue
            if stack and stack[-1][1] and key is None:
                key = self._key(stack[-1], json.loads(string or '""'), place)
                continue
            path = self._value_path(stack, counts, key)
            key = None
            self.places.values.setdefault(path, place)
            if mark:
                stack.append((path, mark == "{", set()))
                counts.append(0)
        return self.places

    def _key(self, frame: tuple[Path, bool, set[str]], name: str, place: Place) -> Path:
        path = (*frame[0], name)
        if name in frame[2]:
            line = self.places.keys.get(path, place)[0]
            message = f"duplicate key {shown_key(name)}, first given in line {line}"
            self.repeated.append(Problem(path_text(path), "duplicate-key", message, "keep one of them", *place))
        frame[2].add(name)
        self.places.keys.setdefault(path, place)
        return path

    @staticmethod
    def _value_path(stack: list[tuple[Path, bool, set[str]]], counts: list[int], key: Path | None) -> Path:
        if not stack:
            return ()
        if key is not None:
            return key
        counts[-1] += 1
        return (*stack[-1][0], counts[-1] - 1)

    def _place(self, index: int) -> Place:
        self.line += self.text.count("\n", self.seen, index)
        newest = self.text.rfind("\n", self.seen, index)
        if newest >= 0:
            self.line_start = newest + 1
        self.seen = index
        return self.line, index - self.line_start + 1
