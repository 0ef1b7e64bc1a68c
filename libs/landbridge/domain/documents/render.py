"""The effective operation: what was written, completed by presets, component, project and queue.

The operation wins; then its presets (later ones win), the component, the project's presets (later ones win), the
project's defaults, the queue. Maps merge by key, lists are taken whole. Every value knows where it comes from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from landbridge.domain.documents.canonical import canonical_json
from landbridge.domain.documents.catalogue import Catalogue, Missing, Value
from landbridge.domain.documents.limits import MAX_DOCUMENT_BYTES
from landbridge.domain.documents.nearest import did_you_mean
from landbridge.domain.documents.parameters import fill_parameters
from landbridge.domain.documents.places import Path, path_text
from landbridge.domain.documents.portability import portability_problems
from landbridge.domain.documents.read import Document
from landbridge.domain.documents.rules_complete import complete_problems
from landbridge.domain.documents.rules_operation import local_problems
from landbridge.domain.documents.scope import Scope
from landbridge.domain.documents.shape import check_shape
from landbridge.domain.documents.source import Source
from landbridge.domain.documents.walk import at, list_at, map_at, text_at
from landbridge.domain.environment_settings import FIELD
from landbridge.domain.errors import Problem, in_reading_order
from landbridge.schema.documents_v1 import Operation

OPERATION: Final = "operation"
# A choice and its parameters belong together: another choice brings its own.
_CHOICES: Final[dict[Path, str]] = {
    ("spec", "lifecycle", "disconnection"): "policy",
    ("spec", "lifecycle", "recovery"): "mode",
}

_PROJECT: Final[Path] = ("metadata", "project")
# What may be added without any rule reading it together with something else.
_FREE: Final = frozenset(
    (("spec", "type"), ("spec", "queue"), ("spec", "preferences"), ("spec", "identity"), ("spec", "dataClass"))
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """An operation as everything after intake reads it."""

    value: Mapping[str, Any]
    canonical: bytes
    project: str
    name: str
    queue: str
    origins: Mapping[Path, str]

    @property
    def provenance(self) -> Mapping[str, str]:
        """The origin of every leaf by its path: `operation`, `preset overnight@2`, `project retail-eu`, ..."""
        return {path_text(path): origin for path, origin in self.origins.items()}


def render(document: Document, catalogue: Catalogue) -> Rendered | tuple[Problem, ...]:
    """Return the effective operation, or everything that stands against it in this catalogue."""
    renderer = _Renderer(document, catalogue)
    project = renderer.project()
    if project is None:
        return in_reading_order(renderer.problems)
    renderer.layers(project)
    renderer.queue(project)
    renderer.identity(project)
    if not renderer.problems:
        renderer.judge()
    if renderer.problems:
        return in_reading_order(renderer.problems)
    renderer.settings()
    body = canonical_json(renderer.value)
    if len(body) > 2 * MAX_DOCUMENT_BYTES:
        limit = f"expected at most {2 * MAX_DOCUMENT_BYTES // 1024} KiB with presets and component"
        return (Problem("", "too-large", limit, "keep data in a connection and name it under inputs"),)
    queue = text_at(renderer.value, "spec", "queue")
    return Rendered(renderer.value, body, document.project, document.name, queue, renderer.provenance)


class _Renderer:
    """State of one rendering; `value` grows from the operation downwards through the layers."""

    def __init__(self, document: Document, catalogue: Catalogue) -> None:
        self.document = document
        self.catalogue = catalogue
        self.source = document.source
        self.value: dict[str, Any] = {}
        self.provenance: dict[Path, str] = {}
        self.problems: list[Problem] = []
        # Settings for single environments with the presets that make them, the strongest first.
        self.local: list[tuple[str, Mapping[str, object]]] = []
        self.fill(self.value, document.value, OPERATION, ())

    def fill(self, target: dict[str, Any], layer: Mapping[str, Any], origin: str, path: Path) -> None:
        """Add what `layer` says and `target` does not."""
        choice = _CHOICES.get(path)
        if choice is not None and target and choice in target and layer.get(choice, target[choice]) != target[choice]:
            return
        for key, value in layer.items():
            here = (*path, key)
            known = target.get(key)
            if isinstance(value, Mapping):
                if known is None:
                    known = target[key] = {}
                    if not value:
                        self.provenance[here] = origin
                if isinstance(known, dict):
                    self.fill(known, value, origin, here)
            elif key not in target:
                target[key] = list(value) if isinstance(value, (list, tuple)) else value
                self.provenance[here] = origin

    def spec(self, layer: object, origin: str) -> None:
        if isinstance(layer, Mapping):
            self.fill(self.value.setdefault("spec", {}), layer, origin, ("spec",))

    def problem(self, path: Path, code: str, missing: Missing) -> None:
        self.problems.append(self.source.problem(path, code, missing.message, missing.suggestion))

    def project(self) -> Value | None:
        found = self.catalogue.project(self.document.project)
        if isinstance(found, Missing):
            self.problem(("metadata", "project"), "unknown-project", found)
            return None
        return found

    def layers(self, project: Value) -> None:
        """Apply presets, component and project, the strongest first."""
        name = self.document.project
        own = [(("spec", "presets", i), ref) for i, ref in enumerate(list_at(self.document.value, "spec", "presets"))]
        base = [(("metadata", "project"), ref) for ref in list_at(project, "spec", "defaults", "presets")]
        chosen = self.presets(own)
        self.component()
        defaults = self.presets(base)
        if chosen or defaults:
            self.value["spec"]["presets"] = list(dict.fromkeys(defaults + chosen))
            sources = [f"project {name}"] * bool(defaults) + [OPERATION] * bool(chosen)
            self.provenance["spec", "presets"] = " and ".join(sources)
        stated = {key: value for key, value in map_at(project, "spec", "defaults").items() if key != "presets"}
        self.spec(stated, f"project {name}")
        self.spec(
            {"preferences": weights} if (weights := at(project, "spec", "preferences")) else {}, f"project {name}"
        )
        self.spec({"type": "job"}, "default")

    def presets(self, references: list[tuple[Any, object]]) -> list[str]:
        """Apply presets, the last one first; return the pinned references in the order given."""
        pinned: list[str] = []
        for path, reference in reversed(references):
            found = self.catalogue.versioned("preset", str(reference), self.document.project)
            if isinstance(found, Missing):
                if path == _PROJECT:  # not written by the author
                    found = Missing(f"{found.message}, which the project names in its defaults", found.suggestion)
                self.problem(path, "unknown-preset", found)
                continue
            self.spec(at(found[1], "spec", "patch"), f"preset {found[0]}")
            self.local.append((found[0], map_at(found[1], "spec", "environments")))
            pinned.insert(0, found[0])
        return pinned

    def settings(self) -> None:
        """Add what presets set for single environments, beside the spec; the operation's own variables win.

        `environmentSettings: {<environment>: {env: {...}}}` is read where the operation is placed.
        """
        own = {
            path[-1] for path, origin in self.provenance.items() if path[:2] == ("spec", "env") and origin == OPERATION
        }
        found: dict[str, dict[str, dict[str, object]]] = {}
        for preset, environments in self.local:
            for name in environments:
                for variable, value in map_at(environments, name, "env").items():
                    place = found.setdefault(name, {}).setdefault("env", {}) if variable not in own else None
                    if place is not None and variable not in place:
                        place[variable] = value
                        self.provenance[FIELD, name, "env", variable] = f"preset {preset}"
        if found:
            self.value[FIELD] = found

    def component(self) -> None:
        reference = text_at(self.document.value, "spec", "component")
        given = map_at(self.document.value, "spec", "parameters")
        if not reference:
            if given:
                message = "parameters belong to a component, and none is named"
                self.problems.append(
                    self.source.problem(("spec", "parameters"), "not-used", message, "add spec.component")
                )
            return
        found = self.catalogue.versioned("component", reference, self.document.project)
        if isinstance(found, Missing):
            self.problem(("spec", "component"), "unknown-component", found)
            return
        operation, told = fill_parameters(found[1], given)
        self.problems += [self.source.problem(("spec", "parameters", *path), *rest) for path, *rest in told]
        self.spec(operation, f"component {found[0]}")
        self.value["spec"]["component"] = found[0]

    def queue(self, project: Value) -> None:
        named = text_at(self.value, "spec", "queue")
        name = named or text_at(project, "spec", "defaultQueue") or "default"
        path: Path = ("spec", "queue") if named else ("metadata", "project")
        found = self.catalogue.queue(name, self.document.project)
        if isinstance(found, Missing):
            self.problem(path, "unknown-queue", found)
            return
        self.spec({"queue": name}, f"project {self.document.project}")
        timeout = text_at(found, "spec", "queueTimeout")
        if timeout:
            self.spec({"lifecycle": {"queueTimeout": timeout}}, f"queue {name}")
        classes = map_at(found, "spec", "priorityClasses")
        priority = text_at(self.value, "spec", "priority")
        if priority and priority not in classes:
            known = f"classes are {', '.join(classes)}" if classes else "it has no priority classes: remove priority"
            missing = Missing(
                f"the queue {name} has no priority class {priority}", did_you_mean(priority, classes) or known
            )
            self.problem(("spec", "priority"), "unknown-priority", missing)

    def identity(self, project: Value) -> None:
        allowed = list_at(project, "spec", "identities")
        identity = text_at(self.value, "spec", "identity")
        if allowed and identity and identity not in allowed:
            roles = [str(role) for role in allowed]
            near = did_you_mean(identity, roles) or f"roles are {', '.join(roles)}"
            missing = Missing(f"the project {self.document.project} has no role {identity}", near)
            self.problem(("spec", "identity"), "unknown-identity", missing)

    def is_as_read(self) -> bool:
        """Tell whether nothing was added that a rule reads: reading the document has judged it then."""
        spec = self.document.value["spec"]
        if spec.get("presets") or spec.get("component"):
            return False
        added = (path for path, origin in self.provenance.items() if origin != OPERATION)
        return all(path[:2] in _FREE or path == ("spec", "lifecycle", "queueTimeout") for path in added)

    def origin(self, path: str) -> str:
        """Return where the value at a path, or the list around it, comes from."""
        known = {path_text(place): origin for place, origin in self.provenance.items()}
        around = [place for place in known if path == place or path.startswith((f"{place}.", f"{place}["))]
        return known[max(around, key=len)] if around else OPERATION

    def judge(self) -> None:
        """Hold the whole operation against every rule; say where a value came from that the author did not write."""
        if self.is_as_read():
            return
        whole = Source(self.value, find_places=self.source.find_places)
        _, told = check_shape(whole, Operation)
        if not told:
            scope = Scope(whole)
            told = [*local_problems(scope), *complete_problems(scope), *portability_problems(whole, "Operation")]
        for problem in told:
            origin = self.origin(problem.path)
            message = problem.message if origin == OPERATION else f"{problem.message} (set by {origin})"
            self.problems.append(
                Problem(problem.path, problem.code, message, problem.suggestion, problem.line, problem.column)
            )
