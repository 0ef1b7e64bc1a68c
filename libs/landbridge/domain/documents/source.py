"""From one body to plain values: YAML or JSON, whichever it is, with everything that is wrong with the text itself."""

from collections.abc import Callable
from dataclasses import dataclass, field

from landbridge.domain.documents.json_source import JsonText
from landbridge.domain.documents.places import Path, Place, Places, path_text
from landbridge.domain.documents.text import BIDI, character_problem, decode, forbidden_character
from landbridge.domain.documents.walk import all_text, texts
from landbridge.domain.documents.yaml_source import read_yaml
from landbridge.domain.errors import Problem


@dataclass(slots=True)
class Source:
    """One document as read, before anything is known of its kind.

    `problems` are those of the text; paths in `spoiled` have no usable value, so nothing else is said about them.
    `broken` means that reading stopped and `value` is incomplete: no further check makes sense.
    """

    value: object = None
    problems: list[Problem] = field(default_factory=list)
    spoiled: set[Path] = field(default_factory=set)
    broken: bool = False
    find_places: Callable[[], Places] = Places

    def problem(self, path: Path, code: str, message: str, suggestion: str = "", *, at_key: bool = False) -> Problem:
        """Make a problem with the place of `path`: at its value, or at its key."""
        places = self.find_places()
        place: Place = places.of_key(path) if at_key else places.of_value(path)
        return Problem(path_text(path), code, message, suggestion, *place)

    def is_spoiled(self, path: Path) -> bool:
        """Tell whether `path`, or something above it, was already refused as text."""
        return bool(self.spoiled) and any(path[:size] in self.spoiled for size in range(len(path) + 1))


def read_source(body: bytes) -> Source:
    """Read one document. Never raises: whatever is wrong is in `problems`."""
    text = decode(body)
    if isinstance(text, Problem):
        return Source(problems=[text], broken=True)
    return read_text(text)


def read_text(text: str, offset: int = 0) -> Source:
    """Read one document of a larger text; `offset` is how many lines stand before it."""
    source = _read(text, offset)
    if not source.broken:
        if not isinstance(source.value, dict):
            found = "nothing" if source.value is None else "a list" if isinstance(source.value, list) else "plain text"
            source.problems.append(
                source.problem(
                    (), "not-a-document", f"expected a map with apiVersion, kind, metadata and spec, found {found}"
                )
            )
            source.broken = True
        else:
            _check_characters(source)
    return source


def _read(text: str, offset: int) -> Source:
    if text.lstrip()[:1] not in ("{", "["):
        return _from_yaml(text, offset)
    read = JsonText(text, offset).read()
    if not read.broken or read.problems[0].code != "json-syntax":
        return Source(read.value, read.problems, broken=read.broken, find_places=lambda: read.places)
    # YAML may begin with a brace as well; what begins like JSON and is neither is told of as JSON.
    other = _from_yaml(text, offset)
    if other.broken and other.problems[-1].code == "yaml-syntax" and text.lstrip()[1:].lstrip()[:1] in ('"', ""):
        return Source(None, read.problems, broken=True)
    return other


def _from_yaml(text: str, offset: int) -> Source:
    read = read_yaml(text.removeprefix("..."), offset)
    return Source(read.value, read.problems, read.spoiled, read.broken, find_places=lambda: read.places)


def _check_characters(source: Source) -> None:
    """Refuse what escaped characters can smuggle into a text that looks clean."""
    if not forbidden_character(all_text(source.value)):
        return
    for item in texts(source.value):
        found = forbidden_character(item.text)
        if found and not (BIDI.fullmatch(found) and source.is_spoiled(item.path)):
            problem = character_problem("", found)
            path = item.path[:-1] if item.is_key else item.path
            source.problems.append(source.problem(path, problem.code, problem.message, problem.suggestion))
            source.spoiled.add(item.path)
            # Half a surrogate pair cannot be written as UTF-8 at all, so nothing further can be said.
            source.broken = source.broken or "\ud800" <= found <= "\udfff"
