"""YAML text to plain values with the place of every key and value, in one pass over the parser's events.

No aliases, tags, merge keys or duplicate keys; bounded in depth and size while parsing, so hostile text stops early.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from landbridge.domain.documents.credentials import shown_key
from landbridge.domain.documents.limits import MAX_DEPTH, MAX_NODES, MAX_PROBLEMS
from landbridge.domain.documents.places import Path, Place, Places, path_text
from landbridge.domain.documents.scalars import Doubt, resolve
from landbridge.domain.errors import Problem

# The pure Python parser reads the same, about ten times slower.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Composed:
    """What was read. `spoiled` are the paths whose value is unusable and already told of."""

    value: object = None
    places: Places = field(default_factory=Places)
    problems: list[Problem] = field(default_factory=list)
    spoiled: set[Path] = field(default_factory=set)
    broken: bool = False  # reading stopped early: `value` is not the whole document


@dataclass(slots=True)
class _Frame:
    """One open map or list. `key` and `child` are the pending key of a map and its path.

    `repeated` tells that the pending key is a duplicate; `kept` is false for everything below one.
    """

    path: Path
    items: dict[str, object] | list[object]
    key: str | None = None
    child: Path = ()
    repeated: bool = False
    kept: bool = True


class _Stop(Exception):  # noqa: N818 - ends the pass, is never seen outside
    """Reading on makes no sense; the problem is recorded."""


class _Composer:
    """State of one pass. `offset` is how many lines of the whole text stand before this document."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.out = Composed()
        self.stack: list[_Frame] = []
        self.nodes = 0

    def run(self, text: str) -> Composed:
        out = self.out
        try:
            parser = _LOADER(text)
            event = parser.get_event()
            while not isinstance(event, yaml.StreamEndEvent):
                self.take(event)
                event = parser.get_event()
        except _Stop:
            out.broken = True
        except yaml.MarkedYAMLError as error:
            out.broken = True
            mark = error.problem_mark or error.context_mark
            told = ", ".join(part for part in (error.context, error.problem) if part)
            place = (mark.line + 1 + self.offset, mark.column + 1) if mark is not None else (0, 0)
            hint = "check indentation, quotes and brackets up to here"
            out.problems.append(Problem("", "yaml-syntax", f"not readable as YAML: {told}", hint, *place))
        except yaml.YAMLError:
            out.broken = True
            out.problems.append(Problem("", "yaml-syntax", "not readable as YAML", "check its characters"))
        return out

    def take(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self.scalar(event)
            case yaml.MappingStartEvent():
                self.open(event, {})
            case yaml.SequenceStartEvent():
                self.open(event, [])
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self.stack.pop()
            case yaml.AliasEvent():
                place = self.place(event)
                path = self.position(place)
                self.problem(path, "alias", "aliases (*name) are off", "write the value out", place)
                self.out.spoiled.add(path)
                self.put(path, None, place)
            case yaml.DocumentStartEvent() if event.version or event.tags:
                self.problem((), "directive", "YAML directives (%) are off", "remove the line", self.place(event))

    def scalar(self, event: Any) -> None:
        place = self.place(event)
        plain = bool(event.implicit[0]) and event.tag is None
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.key is None and isinstance(frame.items, dict):
            self.properties(event, (*frame.path, event.value), place)
            self.open_key(frame, event.value, plain, place)
            return
        path = self.position(place)
        self.properties(event, path, place)
        value: object = event.value
        if plain:
            value, doubt = resolve(event.value)
            if doubt is not None:
                self.doubt(path, doubt, place)
        self.put(path, value, place)

    def open_key(self, frame: _Frame, key: str, plain: bool, place: Place) -> None:
        path = (*frame.path, key)
        assert isinstance(frame.items, dict)
        frame.key, frame.child, frame.repeated = key, path, key in frame.items
        if plain:
            self.check_key(path, key, place)
        if frame.repeated:
            # Its value is still read, for its own problems, but hangs nowhere.
            line = self.out.places.keys.get(path, place)[0]
            told = f"duplicate key {shown_key(key)}, first given in line {line}"
            self.problem(path, "duplicate-key", told, "keep one of them", place)
        elif frame.kept:
            self.out.places.keys[path] = place

    def check_key(self, path: Path, key: str, place: Place) -> None:
        if key == "<<":
            self.problem(path, "alias", "merge keys (<<) are off, as aliases are", "write the values out", place)
            self.out.spoiled.add(path)
            return
        value, doubt = resolve(key)
        if doubt is not None:
            self.doubt(path, doubt, place)
        elif not isinstance(value, str):
            self.problem(
                path, "key-type", f"a key must be text, found {shown_key(key)} unquoted", "put it in quotes", place
            )

    def open(self, event: Any, items: dict[str, object] | list[object]) -> None:
        place = self.place(event)
        if len(self.stack) >= MAX_DEPTH:
            self.stop("too-deep", f"expected at most {MAX_DEPTH} levels of nesting", place)
        path = self.position(place)
        self.properties(event, path, place)
        kept = self.put(path, items, place)
        self.stack.append(_Frame(path, items, kept=kept))

    def position(self, place: Place) -> Path:
        """Return the path of the value that begins here."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.stop("too-many-nodes", f"expected at most {MAX_NODES} values", place)
        if not self.stack:
            return ()
        frame = self.stack[-1]
        if isinstance(frame.items, list):
            return (*frame.path, len(frame.items))
        if frame.key is None:
            self.stop("key-type", "a key must be plain text, found a list, a map or an alias", place)
        return frame.child

    def put(self, path: Path, value: object, place: Place) -> bool:
        """Hang a value where it belongs; return whether it is part of the document."""
        if not self.stack:
            self.out.value = value
            self.out.places.values[path] = place
            return True
        frame = self.stack[-1]
        kept = frame.kept and not frame.repeated
        if isinstance(frame.items, list):
            frame.items.append(value)
        else:
            if not frame.repeated and frame.key is not None:
                frame.items[frame.key] = value
            frame.key, frame.repeated = None, False
        if kept:
            self.out.places.values[path] = place
        return kept

    def properties(self, event: Any, path: Path, place: Place) -> None:
        if event.anchor is not None:
            self.problem(path, "anchor", "anchors (&name) are off", "write the value out where it is needed", place)
        if event.tag is not None:
            self.problem(path, "tag", "tags (!name) are off", "remove the tag; quote what must be text", place)
            self.out.spoiled.add(path)

    def doubt(self, path: Path, doubt: Doubt, place: Place) -> None:
        self.problem(path, "ambiguous-scalar", doubt.message, doubt.suggestion, place)
        self.out.spoiled.add(path)

    def problem(self, path: Path, code: str, message: str, suggestion: str, place: Place) -> None:
        self.out.problems.append(Problem(path_text(path), code, message, suggestion, *place))
        if len(self.out.problems) > MAX_PROBLEMS:
            raise _Stop

    def stop(self, code: str, message: str, place: Place) -> None:
        self.out.problems.append(Problem("", code, message, "", *place))
        raise _Stop

    def place(self, event: Any) -> Place:
        mark = event.start_mark
        return mark.line + 1 + self.offset, mark.column + 1


def read_yaml(text: str, offset: int = 0) -> Composed:
    """Read one YAML document. Never raises for what the text says; `problems` tell all that is wrong with it."""
    return _Composer(offset).run(text)
