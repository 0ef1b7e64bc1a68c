"""From the bytes of a file to operations and their reports. Hostile input meets the bounds of our own documents."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from landbridge.domain.documents.limits import MAX_DOCUMENT_BYTES
from landbridge.domain.documents.places import Path, path_text
from landbridge.domain.documents.read import Refusal, read_document
from landbridge.domain.documents.source import Source, read_source, read_text
from landbridge.domain.documents.text import split
from landbridge.domain.errors import Problem, in_reading_order
from landbridge.domain.importing.formats import FORMATS, detect
from landbridge.domain.importing.report import Imported, Left, Missing, Why
from landbridge.domain.importing.sheet import Sheet

Change = Callable[[dict[str, Any]], None]
_DOUBT: Final = "ambiguous-scalar"
_WORDS: Final = {"yes": True, "on": True, "no": False, "off": False}
_TEXTS: Final = frozenset(("env", "envs", "labels", "annotations", "tags", "params", "value", "args", "command"))


def import_declarations(
    body: bytes, name: str = "", names: Mapping[str, str] | None = None, change: Change = lambda _: None
) -> list[Imported | Refusal]:
    """Bring in every document of a stream, each for itself. `name` is the format, told from the document if empty.

    `names` has logical names for what documents name physically; `change` is applied to each operation before it is
    judged. Never raises: what cannot be read at all is a Refusal with place and suggestion.
    """
    parts = split(body)
    if isinstance(parts, Problem):
        return [Refusal((parts,))]
    if any(len(part.text) > MAX_DOCUMENT_BYTES for part in parts):
        message = f"expected at most {MAX_DOCUMENT_BYTES // 1024} KiB a document"
        return [Refusal((Problem("", "too-large", message, "bring in the parts one by one"),))]
    if len(parts) <= 1:
        return [_import(read_source(body), name, names or {}, change)]
    return [_import(read_text(part.text, part.line), name, names or {}, change) for part in parts]


def _import(source: Source, name: str, names: Mapping[str, str], change: Change) -> Imported | Refusal:
    """Bring in one document."""
    fatal = [problem for problem in source.problems if problem.code != _DOUBT]
    if source.broken or fatal or not isinstance(source.value, dict):
        return Refusal(in_reading_order(source.problems))
    found = name or detect(source.value)
    if not found:
        message = "the format is not clear: no field tells Polyaxon, SkyPilot, dstack and Kubernetes apart"
        return Refusal((Problem("", "unknown-format", message, f"say which: --from {'|'.join(FORMATS)}"),))
    sheet = Sheet(source.value, names)
    doubtful = {path_text(path): path for path in source.spoiled}
    for problem in source.problems:
        path = doubtful.get(problem.path, ())
        if path and not _is_choice(sheet, path):
            sheet.leave(path, Left(Why.UNREADABLE, problem.message, problem.suggestion))
    FORMATS[found].fill(sheet)
    sheet.close(FORMATS[found].title)
    change(sheet.draft)
    return Imported(
        found,
        sheet.draft,
        tuple(sheet.mapped),
        tuple(sheet.unmapped),
        _missing(sheet.draft),
        frozenset(sheet.used),
    )


def _is_choice(sheet: Sheet, path: Path) -> bool:
    """Read `off` or `yes` as the system that the file was written for reads it, where it cannot be meant as text."""
    meant = _WORDS.get(sheet.text(*path).lower())
    if meant is None or _TEXTS & set(path):
        return False
    parent: Any = sheet.at(*path[:-1])
    parent[path[-1]] = meant
    return True


def _missing(draft: Mapping[str, Any]) -> tuple[Missing, ...]:
    """Return what stands against the operation; nothing exactly if it is valid."""
    read = read_document(json.dumps(draft).encode(), ("Operation",))
    if not isinstance(read, Refusal):
        return ()
    told = sorted(read.problems, key=lambda problem: problem.path)
    return tuple(Missing(each.path, each.code, each.message, each.suggestion) for each in told)


__all__ = ["import_declarations"]
