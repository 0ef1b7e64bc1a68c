"""Submissions that differ from an earlier one in nothing but name, variables and arguments: answered from that one.

Applications submit the same operation again and again: a sweep, a nightly job, a shard each. Reading and rendering
cost four hundred microseconds; filling values into what was read and rendered before costs thirty. It must not be
possible to tell the difference, so only values that no rule can object to are filled in: all else takes the long way.

A body is cut at its double quotes: what stands outside texts is its structure, the texts are its tokens. A template is
learnt by reading and rendering the body with marks in place of the values that may differ.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from landbridge.domain.documents.credentials import may_hold_credential, secret_after_flag, secret_in_variable
from landbridge.domain.documents.providers import PORTABLE
from landbridge_intake.ready import Ready

MOST_TEMPLATES: Final = 2_048
MOST_SEEN: Final = 8_192
_MOST_BYTES: Final = 16 * 1024
_MOST_VALUES: Final = 64
_NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,40}[a-z0-9])?")
# No reference, no percent-encoding, nothing but plain text on one line; not empty, and no flag.
_VALUE: Final = re.compile(r"[A-Za-z0-9_./:=,+][A-Za-z0-9_./:=,+ -]{0,119}")
# What a provider's names are told by. Where none of it stands, no pattern matches.
_PROVIDER_MARK: Final = re.compile(
    "|".join(sorted({re.escape(pattern.mark) for rule in PORTABLE for pattern in rule.patterns}))
)

Variable = tuple[int, str]  # the token's number, and the variable's name, `--flag` before an argument, or ""
Make = Callable[[bytes], tuple[bytes, Ready] | None]  # from a body to its canonical document and what is accepted
Key = tuple[bytes, tuple[int, ...], tuple[bytes, ...]]


@dataclass(frozen=True, slots=True)
class _Slots:
    """A text with gaps: `parts` at odd places are tokens; `gaps` says which token takes which value."""

    parts: tuple[bytes, ...]
    gaps: tuple[tuple[int, int], ...]

    def fill(self, values: Sequence[bytes]) -> bytes:
        parts = list(self.parts)
        for place, value in self.gaps:
            parts[place] = values[value]
        return b'"'.join(parts)


@dataclass(frozen=True, slots=True)
class _Template:
    revision: int
    ready: Ready
    variables: tuple[Variable, ...]
    document: _Slots
    effective: _Slots


class Templates:
    """A bounded memory of templates. `make` is the long way."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, _Template] = OrderedDict()
        self._variables: OrderedDict[bytes, tuple[tuple[int, ...], ...]] = OrderedDict()
        self._seen: OrderedDict[Key, None] = OrderedDict()

    def match(self, body: bytes, revision: int) -> Ready | None:
        """Return what the long way would return for `body` in the catalogue of that revision; None if not known."""
        for template, values in self._candidates(body):
            if template.revision == revision:
                return _filled(template, body, values)
        return None

    def project_of(self, body: bytes) -> str:
        """Return the project that a document like one before names, in any catalogue; empty if not known."""
        for template, values in self._candidates(body):
            if _harmless(template.variables, [value.decode() for value in values]):
                return template.ready.project
        return ""

    def _candidates(self, body: bytes) -> Iterator[tuple[_Template, list[bytes]]]:
        parts = _cut(body)
        if parts is None:
            return
        structure = b'"'.join(parts[0::2])
        for numbers in self._variables.get(structure, ()):
            key = _key(structure, parts, numbers)
            template = self._known.get(key)
            if template is not None:
                self._known.move_to_end(key)
                yield template, [parts[number] for number in numbers]

    def learn(self, body: bytes, revision: int, make: Make) -> None:
        """Remember an accepted body; make a template of it when its like comes for the second time."""
        parts = _cut(body)
        if parts is None:
            return
        variables = _variables_of(parts)
        if not variables:
            return
        numbers = tuple(number for number, _ in variables)
        structure = b'"'.join(parts[0::2])
        key = _key(structure, parts, numbers)
        if key not in self._seen and key not in self._known:
            _keep(self._seen, key, None, MOST_SEEN)
            return
        template = _learnt(body, parts, variables, revision, make)
        if template is not None:
            _keep(self._known, key, template, MOST_TEMPLATES)
            choices = self._variables.get(structure, ())
            if numbers not in choices:
                _keep(self._variables, structure, (*choices, numbers), MOST_TEMPLATES)


def _keep(memory: "OrderedDict[Any, Any]", key: object, value: object, most: int) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > most:
        memory.popitem(last=False)


def _cut(body: bytes) -> list[bytes] | None:
    """Cut a body at its quotes, if it is JSON in plain characters without escapes."""
    if len(body) > _MOST_BYTES or not body.startswith(b"{") or b"\\" in body or not body.isascii():
        return None
    parts = body.split(b'"')
    return parts if len(parts) % 2 else None


def _key(structure: bytes, parts: Sequence[bytes], numbers: tuple[int, ...]) -> Key:
    fixed = list(parts[1::2])
    for number in sorted(numbers, reverse=True):
        del fixed[number // 2]
    return structure, numbers, tuple(fixed)


# -- filling -----------------------------------------------------------------------------------------------------------


def _filled(template: _Template, body: bytes, values: Sequence[bytes]) -> Ready | None:
    texts = [value.decode() for value in values]
    if not _harmless(template.variables, texts):
        return None
    written = sha256(body).digest()
    effective = template.effective.fill(values)
    digest = sha256(effective).digest()
    return Ready(
        template.ready.project,
        texts[0],
        template.ready.queue,
        written,
        sha256(template.document.fill(values)).digest(),
        effective,
        digest,
        written.hex(),
        digest.hex(),
        template.ready.gang,
    )


def _harmless(variables: Sequence[Variable], texts: Sequence[str]) -> bool:
    """Tell whether no rule can object to these values, whatever stands around them. The first is the name."""
    if not _NAME.fullmatch(texts[0]):
        return False
    together = "\n".join(texts)
    if _PROVIDER_MARK.search(together.lower()) or may_hold_credential(together):
        return False
    return all(
        _VALUE.fullmatch(text) and not (secret_after_flag(about, text) if about[:1] == "-" else _secret(about, text))
        for (_, about), text in zip(variables[1:], texts[1:], strict=True)
    )


def _secret(variable: str, text: str) -> bool:
    return bool(variable) and secret_in_variable(variable, text)


# -- learning ----------------------------------------------------------------------------------------------------------


def _variables_of(parts: Sequence[bytes]) -> tuple[Variable, ...]:
    """Return the tokens that may differ, the name first; nothing if the body has no name or too many of them."""
    numbered = list(parts)
    numbered[1::2] = [b"%d" % number for number in range(1, len(parts), 2)]
    try:
        value, numbers = json.loads(b'"'.join(parts)), json.loads(b'"'.join(numbered))
    except ValueError:
        return ()
    found = list(_walk(value, numbers))
    return tuple(found) if found and found[0][1] == "" and len(found) <= _MOST_VALUES else ()


def _walk(value: Any, numbers: Any) -> Iterator[Variable]:
    """Yield what may differ. `numbers` is the same document with each text replaced by its token's number."""
    top = dict(_pairs(value, numbers))
    metadata = dict(_pairs(*top.get("metadata", (None, None))))
    spec = dict(_pairs(*top.get("spec", (None, None))))
    name, number = metadata.get("name", (None, None))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return
    yield int(number), ""
    for variable, (text, number) in _pairs(*spec.get("env", (None, None))):
        if isinstance(text, str) and _VALUE.fullmatch(text):
            yield int(number), variable
    arguments, numbers_of = spec.get("args", (None, None))
    if isinstance(arguments, list):
        yield from _arguments(arguments, numbers_of)


def _arguments(arguments: Sequence[Any], numbers: Sequence[Any]) -> Iterator[Variable]:
    """Yield arguments that stand behind a fixed one: whether a value is a secret is told by the flag before it."""
    free = False
    for index in range(1, len(arguments)):
        text, before = arguments[index], arguments[index - 1]
        free = not free and isinstance(text, str) and isinstance(before, str) and bool(_VALUE.fullmatch(text))
        if free:
            yield int(numbers[index]), before if before[:1] == "-" else "-"


def _pairs(value: Any, numbers: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the entries of an object beside those of its numbered twin, which has them in the same order."""
    if isinstance(value, dict) and isinstance(numbers, dict) and len(value) == len(numbers):
        for (key, item), number in zip(value.items(), numbers.values(), strict=True):
            yield key, (item, number)


def _learnt(
    body: bytes, parts: Sequence[bytes], variables: tuple[Variable, ...], revision: int, make: Make
) -> _Template | None:
    """Read and render the body with marks for values, and see where the marks come out. None if that is not plain."""
    marks = [b"zq%dqz" % number for number in range(len(variables))]
    marked = list(parts)
    for (number, _), mark in zip(variables, marks, strict=True):
        marked[number] = mark
    made, plain = make(b'"'.join(marked)), make(body)
    if made is None or plain is None:
        return None
    document, effective = _slots(made[0], marks), _slots(made[1].effective, marks)
    if document is None or effective is None:
        return None
    values = [parts[number] for number, _ in variables]
    # The proof on the example itself: filled with its own values, the template says what the long way said.
    if document.fill(values) != plain[0] or effective.fill(values) != plain[1].effective:
        return None
    return _Template(revision, plain[1], variables, document, effective)


def _slots(text: bytes, marks: Sequence[bytes]) -> _Slots | None:
    if b"\\" in text:
        return None
    parts = text.split(b'"')
    gaps = [(place, marks.index(part)) for place, part in enumerate(parts) if place % 2 and part in marks]
    if sum(text.count(mark) for mark in marks) != len(gaps):
        return None  # a value became part of another text
    return _Slots(tuple(parts), tuple(gaps))
