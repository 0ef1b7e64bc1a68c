"""From bytes to a typed document, or everything that is wrong with it at once."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pydantic import BaseModel

from landbridge.domain.documents.canonical import canonical_json
from landbridge.domain.documents.kinds import API_VERSION, KINDS, READABLE, SCENARIO, Kind
from landbridge.domain.documents.limits import MAX_DOCUMENT_BYTES, MAX_PROBLEMS
from landbridge.domain.documents.portability import portability_problems
from landbridge.domain.documents.rules_complete import complete_problems
from landbridge.domain.documents.rules_documents import DOCUMENT_RULES, metadata_problems
from landbridge.domain.documents.rules_operation import local_problems
from landbridge.domain.documents.scope import Scope
from landbridge.domain.documents.shape import check_shape, unknown_kind
from landbridge.domain.documents.source import Source, read_source, read_text
from landbridge.domain.documents.text import split
from landbridge.domain.documents.walk import at, text_at
from landbridge.domain.errors import Problem, in_reading_order, render_problems

_PLACES = {"Operation": "submit it as an operation", SCENARIO.name: "give it to landbridge simulate"}


@dataclass(frozen=True, slots=True)
class Document:
    """A document that holds by itself. `value` is normalised: quantities are text, keys as people write them.

    `body` are the bytes as written; nothing may re-serialise them. `model` is the document as a typed model.
    """

    kind: Kind
    name: str
    project: str
    model: BaseModel
    value: dict[str, Any]
    body: bytes
    source: Source

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes as written, in hex."""
        return sha256(self.body).hexdigest()

    @property
    def canonical(self) -> bytes:
        """The normalised document as canonical JSON."""
        return canonical_json(self.value)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A document that was refused, with everything that is wrong.

    Kind, name and project as far as they could be read.
    """

    problems: tuple[Problem, ...]
    kind: str = ""
    name: str = ""
    project: str = ""

    def text(self, source: str = "document") -> str:
        """Return the problems in the one text that CLI, HTTP and events share."""
        return render_problems(self.problems, source)


def read_document(body: bytes, kinds: Collection[str] = tuple(KINDS)) -> Document | Refusal:
    """Read one document of one of `kinds`. Never raises: what is wrong is a Refusal."""
    parts = split(body, MAX_DOCUMENT_BYTES)
    if isinstance(parts, list) and len(parts) > 1:
        line = parts[1].line + 1
        told = Problem(
            "", "several-documents", f"expected one document, found {len(parts)}", "send them one by one", line, 1
        )
        return Refusal((told,))
    if isinstance(parts, Problem):
        return Refusal((parts,))
    return _judge(read_source(body), body, kinds)


def read_documents(body: bytes, kinds: Collection[str] = tuple(KINDS)) -> list[Document | Refusal]:
    """Read a stream of documents separated by `---`, each for itself; places count from the start of the stream."""
    parts = split(body)
    if isinstance(parts, Problem):
        return [Refusal((parts,))]
    if not parts:
        return [Refusal((Problem("", "not-a-document", "expected a document, found nothing"),))]
    if len(parts) == 1:
        return [_judge(read_source(body), body, kinds)]
    return [_judge(read_text(part.text, part.line), part.text.encode(), kinds) for part in parts]


def _judge(source: Source, body: bytes, kinds: Collection[str]) -> Document | Refusal:
    model: BaseModel | None = None
    kind: Kind | None = None
    problems = list(source.problems)
    if not source.broken:
        kind, told = _kind(source, kinds)
        problems += told
        if kind is not None:
            model, shape = check_shape(source, kind.model)
            problems += shape
            problems += _further(_rules(source, kind), shape)
        else:
            problems += portability_problems(source, "Operation")
    name, project = text_at(source.value, "metadata", "name"), text_at(source.value, "metadata", "project")
    if problems or model is None or kind is None:
        return Refusal(_cut(in_reading_order(problems)), text_at(source.value, "kind"), name, project)
    value: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
    return Document(kind, name, project, model, value, body, source)


def _kind(source: Source, kinds: Collection[str]) -> tuple[Kind | None, list[Problem]]:
    """Return the kind to check against. A missing kind is told, and the only one that may come is assumed."""
    found = at(source.value, "kind")
    known = READABLE.get(found) if isinstance(found, str) else None
    if known is None:
        told = [source.problem(("kind",), *item) for item in unknown_kind(found, tuple(kinds))]
        only = READABLE[next(iter(kinds))] if len(kinds) == 1 else None
        version = at(source.value, "apiVersion")
        if only is None and version is not None and version != API_VERSION:
            told.append(
                source.problem(("apiVersion",), "unknown-version", f"expected {API_VERSION}", f"write {API_VERSION}")
            )
        return only, [] if only is not None else told
    if known.name not in kinds:
        expected = ", ".join(kinds) if len(kinds) <= 3 else "another kind"
        hint = _PLACES.get(known.name, "apply it with the other documents")
        return known, [source.problem(("kind",), "wrong-kind", f"expected {expected}, found {known.name}", hint)]
    return known, []


def _rules(source: Source, kind: Kind) -> Iterator[Problem]:
    yield from portability_problems(source, kind.name)
    yield from metadata_problems(source, kind)
    if kind.name == "Operation":
        scope = Scope(source)
        yield from local_problems(scope)
        # What a preset or component may still add is judged on the rendered operation.
        if not scope.has("presets") and not scope.has("component") and isinstance(at(source.value, "spec"), dict):
            yield from complete_problems(scope)
    elif kind.name in DOCUMENT_RULES:
        yield from DOCUMENT_RULES[kind.name](source)


def _further(found: Iterator[Problem], told: list[Problem]) -> list[Problem]:
    """Leave out what only repeats a shape problem of the same place: `missing` and `required` are one thing."""
    seen = {problem.path for problem in told}
    return [problem for problem in found if problem.path not in seen or problem.code == "credential"]


def _cut(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    if len(problems) <= MAX_PROBLEMS:
        return problems
    more = len(problems) - MAX_PROBLEMS
    return (
        *problems[:MAX_PROBLEMS],
        Problem("", "too-many-problems", f"and {more} more problems or further unread text"),
    )
