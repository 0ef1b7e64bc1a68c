"""The work of a scenario: what arrives when, and how long it runs once it is placed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from landbridge.domain import units
from landbridge.domain.classify import classify
from landbridge.domain.documents import Catalogue, read_document, render
from landbridge.domain.documents.read import Document
from landbridge.domain.errors import Problem
from landbridge.domain.requirements import RequirementClass
from landbridge.schema import documents_v1 as schema
from landbridge_ranking.whatif.files import Documents, Scenario, number, rows
from landbridge_ranking.whatif.machines import Machines
from landbridge_ranking.whatif.pods import read_pods
from landbridge_ranking.whatif.problems import ScenarioError

_COLUMNS = ("at", "duration", "operation")


@dataclass(frozen=True, slots=True)
class Arrival:
    """One operation: when it is submitted and how long it runs, in seconds of the scenario."""

    operation: str
    at_s: float
    duration_s: float
    shape: RequirementClass


def read_work(scenario: Scenario, machines: Machines | None) -> list[Arrival]:
    """Read the trace, earliest arrival first. ScenarioError with the place of what is wrong."""
    trace = scenario.spec.trace
    file = scenario.folder / trace.file
    if trace.format is schema.TraceFormat.PODS:
        found = [
            Arrival(pod.name, pod.at_s, pod.duration_s, classify(pod.effective))
            for pod in read_pods(file, trace, machines)
        ]
    else:
        found = _operations(file, trace, scenario.documents)
    if not found:
        raise ScenarioError(f"{file}: expected at least one row of work, found none")
    found.sort(key=lambda arrival: (arrival.at_s, arrival.operation))
    return _brought_within(found, trace.arrivals_within)


def _brought_within(work: list[Arrival], within: str | None) -> list[Arrival]:
    if not within:
        return work
    first, last = work[0].at_s, work[-1].at_s
    factor = units.parse_duration(within) / 1000 / (last - first) if last > first else 0.0
    return [replace(each, at_s=(each.at_s - first) * factor) for each in work]


# -- operations that are named -----------------------------------------------------------------------------------------


def _operations(file: Path, trace: schema.Trace, documents: Documents) -> list[Arrival]:
    known = documents.of("Operation")
    catalogue = _catalogue(documents)
    shapes: dict[tuple[str, str, str], RequirementClass] = {}
    found: list[Arrival] = []
    for line, row in rows(file, _COLUMNS):
        name = row["operation"] or ""
        if name not in known:
            names = ", ".join(sorted(known)) or "no operation"
            raise ScenarioError(f"{file}:{line}: operation: expected one of the documents ({names}), found {name!r}")
        project, queue = row.get("project") or trace.project or "", row.get("queue") or trace.queue or ""
        key = (name, project, queue)
        if key not in shapes:
            shapes[key] = _shape(f"{file}:{line}", known[name], project, queue, catalogue)
        at_s, duration_s = _seconds(file, line, row, "at"), _seconds(file, line, row, "duration")
        count = int(number(file, line, row, "count", least=1)) if row.get("count") else 1
        found += [Arrival(f"{name}-{line}-{each}", at_s, duration_s, shapes[key]) for each in range(count)]
    return found


def _seconds(file: Path, line: int, row: dict[str, str], column: str) -> float:
    """Read seconds, or a duration such as `5m`."""
    text = (row.get(column) or "").strip()
    if text and text[-1].isalpha():
        try:
            return units.parse_duration(text) / 1000
        except units.UnitError as error:
            told = f"{file}:{line}: {column}: expected seconds, or a duration such as 15m; found {text!r}"
            raise ScenarioError(told) from error
    return number(file, line, row, column)


def _catalogue(documents: Documents) -> Catalogue:
    def versions(kind: str) -> dict[str, dict[int, dict[str, Any]]]:
        return {name: {int(value["metadata"]["version"]): value} for name, value in documents.of(kind).items()}

    return Catalogue(documents.of("Project"), documents.of("Queue"), versions("Preset"), versions("Component"))


def _shape(place: str, value: Mapping[str, Any], project: str, queue: str, catalogue: Catalogue) -> RequirementClass:
    """Make an operation effective by the same code as intake, with the row's project and queue."""
    metadata, spec = dict(value["metadata"]), dict(value["spec"])
    if project:
        metadata["project"] = project
    if queue:
        spec["queue"] = queue
    document = read_document(json.dumps({**value, "metadata": metadata, "spec": spec}).encode(), ("Operation",))
    problems: tuple[Problem, ...]
    if isinstance(document, Document):
        found = render(document, catalogue)
        if not isinstance(found, tuple | list):
            return classify(json.dumps(found.value).encode())
        problems = tuple(found)
    else:
        problems = document.problems
    told = "; ".join(f"{problem.path}: {problem.text}" for problem in problems)
    raise ScenarioError(f"{place}: operation {metadata.get('name')} cannot be submitted: {told}")
