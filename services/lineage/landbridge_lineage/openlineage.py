"""One operation as OpenLineage 2-0-2 run events: the operation is the parent run, each attempt a child run. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

import msgspec

from landbridge.schema.wire.event_v1 import OperationChanged, Phase, ReportVerdict
from landbridge_lineage.attempts import Placement
from landbridge_lineage.facts import moment_of
from landbridge_lineage.fold import LIFECYCLE, Fact, epoch_text
from landbridge_lineage.state import TERMINAL_PHASES, State
from landbridge_lineage.views import effective

SPEC: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
PRODUCER: Final = "https://landbridge.dev/lineage/v1"
_FACETS: Final = "https://openlineage.io/spec/facets"
_OWN: Final = "https://landbridge.dev/schemas/openlineage/1-0-0"

_OPERATION_TYPES: Final = {
    Phase.QUEUED: "OTHER",
    Phase.PENDING: "OTHER",
    Phase.RETRYING: "OTHER",
    Phase.RUNNING: "RUNNING",
    Phase.COMPLETED: "COMPLETE",
    Phase.FAILED: "FAIL",
    Phase.CANCELLED: "ABORT",
}
_ATTEMPT_TYPES: Final = {"completed": "COMPLETE", "failed": "FAIL", "cancelled": "ABORT"}
_changed: Final = msgspec.json.Decoder(OperationChanged)

Facet = dict[str, Any]


def export(state: State, facts: Sequence[Fact], placements: Sequence[Placement]) -> list[dict[str, Any]]:
    """Return the run events in the order in which things happened."""
    writer = _Writer(state, effective(facts))
    placed = {each.epoch: each for each in placements}
    events: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for fact in sorted((each for each in facts if each.lane == LIFECYCLE), key=lambda each: each.number):
        if fact.number == 1:
            events.append(writer.operation(state.accepted_at or moment_of(fact.id), "START", {}))
            continue
        event = _changed.decode(fact.body)
        if event.verdict in (ReportVerdict.SUPERSEDED, ReportVerdict.REFUSED) or event.condition is not None:
            continue
        events += _attempt_events(writer, event, placed, seen)
        events += _operation_events(writer, event, placed, seen)
    return events


def attempt_run(operation: str, epoch: str) -> str:
    """Return the run id of an attempt: derived, so that whoever needs it can compute it."""
    return str(uuid5(NAMESPACE_URL, f"landbridge:{operation}:{epoch}"))


def _operation_events(
    writer: "_Writer", event: OperationChanged, placed: Mapping[str, Placement], seen: set[tuple[str, str]]
) -> list[dict[str, Any]]:
    kind = _OPERATION_TYPES.get(event.phase)
    mark = ("operation", f"{event.phase}/{event.attempt}/{event.round}")
    if kind is None or mark in seen:
        return []
    seen.add(mark)
    facets = {"landbridge_lifecycle": writer.lifecycle(event)}
    if kind == "FAIL":
        facets["errorMessage"] = _error(event.message or event.reason)
    last = placed.get(epoch_text(event.epoch)) if event.phase in TERMINAL_PHASES else None
    return [writer.operation(event.at, kind, facets, last)]


def _attempt_events(
    writer: "_Writer", event: OperationChanged, placed: Mapping[str, Placement], seen: set[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return START and RUNNING when an attempt runs, and one end when its end is reported or it is lost."""
    report = event.report
    reported = epoch_text(report.epoch) if report is not None and report.outcome else ""
    current = placed.get(epoch_text(event.epoch))
    events = []
    if event.phase is Phase.RUNNING and current is not None and ("start", current.epoch) not in seen:
        seen.add(("start", current.epoch))
        events.append(writer.attempt(current.started_at or event.at, "START", current))
        events.append(writer.attempt(event.at, "RUNNING", current))
    over = event.phase not in (Phase.PENDING, Phase.RUNNING)
    for epoch, placement in placed.items():
        is_open = ("start", epoch) in seen and ("end", epoch) not in seen
        if is_open and (over or epoch == reported):
            seen.add(("end", epoch))
            kind = _ATTEMPT_TYPES.get(str(placement.outcome), "ABORT")
            events.append(writer.attempt(placement.finished_at or event.at, kind, placement))
    return events


class _Writer:
    """Builds the events of one operation."""

    def __init__(self, state: State, specification: Mapping[str, Any]) -> None:
        self._state = state
        self._spec: Mapping[str, Any] = specification.get("spec") or {}
        component = str(self._spec.get("component") or "").partition("@")[0]
        self._job = {
            "namespace": f"landbridge://{state.project}",
            "name": f"{component}.{state.name}" if component else state.name or state.operation,
        }

    def operation(
        self, at: datetime, kind: str, facets: Mapping[str, Facet], last: Placement | None = None
    ) -> dict[str, Any]:
        """Return an event of the parent run; datasets stand on its ends."""
        resolved = last.resolved.connections if last is not None and last.resolved is not None else {}
        return self._event(at, kind, self._state.operation, self._job, {**facets}, resolved, last, "OPERATION")

    def attempt(self, at: datetime, kind: str, placement: Placement) -> dict[str, Any]:
        """Return an event of a child run with where and on what it ran."""
        job = {"namespace": self._job["namespace"], "name": f"{self._job['name']}.attempt"}
        parent = {"run": {"runId": self._state.operation}, "job": self._job}
        facets: dict[str, Facet] = {
            "parent": _facet("1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet", {**parent, "root": parent}),
            "landbridge_placement": self._placement(placement),
        }
        if kind == "FAIL":
            facets["errorMessage"] = _error(placement.message or placement.reason)
        resolved = placement.resolved.connections if placement.resolved is not None else {}
        run = attempt_run(self._state.operation, placement.epoch)
        return self._event(at, kind, run, job, facets, resolved, placement, "ATTEMPT")

    def lifecycle(self, event: OperationChanged) -> Facet:
        """Return the phase that OpenLineage has no word for."""
        content = {
            "phase": event.phase,
            "round": event.round,
            "attempt": event.attempt,
            "environment": event.environment,
            "reason": event.reason,
        }
        return _own_facet("LandbridgeLifecycleRunFacet", content)

    def _placement(self, placement: Placement) -> Facet:
        content: dict[str, Any] = {
            "environment": placement.environment,
            "epoch": placement.epoch,
            "attempt": placement.attempt,
            "decisionId": placement.decision_id,
        }
        if placement.resolved is not None:
            content |= msgspec.to_builtins(placement.resolved)
        return _own_facet("LandbridgePlacementRunFacet", content)

    def _event(
        self,
        at: datetime,
        kind: str,
        run: str,
        job: Mapping[str, str],
        facets: dict[str, Facet],
        resolved: Mapping[str, str],
        placement: Placement | None,
        level: str,
    ) -> dict[str, Any]:
        return {
            "eventTime": at.isoformat().replace("+00:00", "Z"),
            "eventType": kind,
            "producer": PRODUCER,
            "schemaURL": SPEC,
            "run": {"runId": run, "facets": facets},
            "job": {**job, "facets": self._job_facets(level)},
            "inputs": [_dataset(each, resolved, {}) for each in self._datasets("inputs")],
            "outputs": self._outputs(resolved, placement),
        }

    def _job_facets(self, level: str) -> dict[str, Facet]:
        service = self._state.type == "service"
        content = {
            "processingType": "SERVICE" if service else "BATCH",
            "integration": "LANDBRIDGE",
            "jobType": level,
        }
        facets = {"jobType": _facet("2-0-4/JobTypeJobFacet.json#/$defs/JobTypeJobFacet", content)}
        source = self._spec.get("source") or {}
        if source.get("commit"):
            where = {"type": "git", "url": f"landbridge-connection:{source.get('connection', '')}"}
            facets["sourceCodeLocation"] = _facet(
                "1-0-1/SourceCodeLocationJobFacet.json#/$defs/SourceCodeLocationJobFacet",
                {**where, "version": source["commit"], "path": source.get("path", "")},
            )
        return facets

    def _datasets(self, side: str) -> list[dict[str, str]]:
        named = self._spec.get(side) or {}
        return [
            {"connection": str(each.get("connection", "")), "path": str(each.get("path", ""))}
            for _, each in sorted(named.items())
        ]

    def _outputs(self, resolved: Mapping[str, str], placement: Placement | None) -> list[dict[str, Any]]:
        if placement is None or not placement.outputs:
            return [_dataset(each, resolved, {}) for each in self._datasets("outputs")]
        found = []
        for _, output in sorted(placement.outputs.items()):
            statistics = _facet(
                "1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet",
                {"size": output.bytes},
            )
            dataset = _dataset({"connection": output.connection, "path": output.path}, resolved, {})
            if output.sha256:
                dataset["facets"]["version"] = _facet(
                    "1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet",
                    {"datasetVersion": f"sha256:{output.sha256}"},
                )
            found.append({**dataset, "outputFacets": {"outputStatistics": statistics}})
        return found


def _dataset(reference: Mapping[str, str], resolved: Mapping[str, str], facets: dict[str, Facet]) -> dict[str, Any]:
    """Return a dataset by its physical name where it is known, with the logical one as a symlink."""
    connection, path = reference["connection"], reference["path"]
    logical = {"namespace": "landbridge-connection", "name": f"{connection}/{path}".rstrip("/"), "type": "LOGICAL"}
    location = urlsplit(resolved.get(connection, ""))
    if not location.scheme:
        return {"namespace": logical["namespace"], "name": logical["name"], "facets": facets}
    symlinks = _facet("1-0-1/SymlinksDatasetFacet.json#/$defs/SymlinksDatasetFacet", {"identifiers": [logical]})
    name = "/".join(part.strip("/") for part in (location.path, path) if part.strip("/"))
    namespace = f"{location.scheme}://{location.netloc}" if location.netloc else location.scheme
    return {"namespace": namespace, "name": name or "/", "facets": {**facets, "symlinks": symlinks}}


def _facet(schema: str, content: Mapping[str, Any]) -> Facet:
    return {"_producer": PRODUCER, "_schemaURL": f"{_FACETS}/{schema}", **content}


def _own_facet(name: str, content: Mapping[str, Any]) -> Facet:
    return {"_producer": PRODUCER, "_schemaURL": f"{_OWN}/{name}.json#/$defs/{name}", **content}


def _error(message: str) -> Facet:
    content = {"message": message or "no reason was given", "programmingLanguage": "unknown"}
    return _facet("1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet", content)
