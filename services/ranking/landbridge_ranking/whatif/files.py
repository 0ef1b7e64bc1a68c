"""Reading a scenario and everything that it names, all problems at once."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from landbridge.domain.documents import Document, Refusal, read_document, read_documents
from landbridge.domain.documents.kinds import SCENARIO
from landbridge.schema import documents_v1 as schema
from landbridge_ranking.whatif.problems import ScenarioError

_MOST_PROBLEMS: Final = 20
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True)
class Documents:
    """Documents by kind and name, as plain values; contracts keep their newest version only."""

    by_kind: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def of(self, kind: str) -> dict[str, dict[str, Any]]:
        return self.by_kind.get(kind, {})

    def with_others(self, others: "Documents") -> "Documents":
        """Return these with some replaced, or added."""
        kinds = {*self.by_kind, *others.by_kind}
        return Documents({kind: {**self.of(kind), **others.of(kind)} for kind in kinds})


@dataclass(frozen=True)
class Scenario:
    """A scenario that holds by itself, with the folder that its files are beside."""

    name: str
    spec: schema.ScenarioSpec
    folder: Path
    documents: Documents


def read_scenario(file: Path) -> Scenario:
    """Read a scenario and its documents. ScenarioError with everything that is wrong."""
    found = read_document(_bytes(file), (SCENARIO.name,))
    if isinstance(found, Refusal):
        raise ScenarioError(found.text(str(file)))
    model = found.model
    assert isinstance(model, schema.Scenario)
    names = [policy.name for policy in model.spec.policies]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ScenarioError(f"{file}: spec.policies: expected names of their own, found {twice} twice; rename one")
    return Scenario(found.name, model.spec, file.parent, read_all(file.parent, model.spec.documents))


def read_all(folder: Path, names: Sequence[str]) -> Documents:
    """Read documents from files and folders beside a scenario. ScenarioError with everything that is wrong."""
    problems: list[str] = []
    kinds: dict[str, dict[str, dict[str, Any]]] = {}
    for name in names:
        for file in _files(folder / name):
            for item in read_documents(_bytes(file)):
                if isinstance(item, Refusal):
                    problems.append(item.text(str(file)))
                else:
                    _keep(kinds.setdefault(item.kind.name, {}), item)
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        told = [*problems[:_MOST_PROBLEMS], *([f"and {more} more documents with problems"] if more > 0 else [])]
        raise ScenarioError("\n".join(told))
    return Documents(kinds)


def _keep(known: dict[str, dict[str, Any]], item: Document) -> None:
    before = known.get(item.name)
    if before is None or _version(item.value) >= _version(before):
        known[item.name] = item.value


def _version(value: dict[str, Any]) -> int:
    return int(value["metadata"].get("version", 1))


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(file for file in place.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    return [place]


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ScenarioError(f"{file}: expected a file, {error.strerror}; paths are beside the scenario") from error


def rows(file: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file with their line numbers. ScenarioError if a column is missing."""
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            reader = csv.DictReader(lines)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                found = ", ".join(reader.fieldnames or ()) or "nothing"
                raise ScenarioError(f"{file}:1: expected the columns {', '.join(missing)}; found {found}")
            for row in reader:
                yield reader.line_num, row
    except OSError as error:
        raise ScenarioError(f"{file}: expected a file, {error.strerror}; paths are beside the scenario") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ScenarioError(f"{file}: expected a CSV file in UTF-8: {error}") from error


def number(file: Path, line: int, row: dict[str, str], column: str, *, least: float = 0) -> float:
    """Read a number of a row. ScenarioError with its place."""
    text = row.get(column) or ""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value < float("inf"):
        raise ScenarioError(f"{file}:{line}: {column}: expected a number of at least {least:g}, found {text!r}")
    return value
