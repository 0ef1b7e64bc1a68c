"""What an operation may refer to: projects, queues, presets and components, by name and version."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from landbridge.domain.documents.nearest import did_you_mean

Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Missing:
    """A reference that leads nowhere: `message` says so, `suggestion` names what is near."""

    message: str
    suggestion: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Documents by name; presets and components by name and version. Values are normalised documents."""

    projects: Mapping[str, Value] = field(default_factory=dict)
    queues: Mapping[str, Value] = field(default_factory=dict)
    presets: Mapping[str, Mapping[int, Value]] = field(default_factory=dict)
    components: Mapping[str, Mapping[int, Value]] = field(default_factory=dict)

    def project(self, name: str) -> Value | Missing:
        """Return a project."""
        found = self.projects.get(name)
        if found is not None:
            return found
        near = did_you_mean(name, self.projects)
        return Missing(f"there is no project {name}", near or "apply a Project first")

    def queue(self, name: str, project: str) -> Value | Missing:
        """Return a queue that `project` may use."""
        found = self.queues.get(name)
        open_to = [other for other in self.queues if _serves(self.queues[other], project)]
        if found is None:
            near = did_you_mean(name, open_to)
            return Missing(f"there is no queue {name}", near or _choices("queues", open_to) or "apply a Queue first")
        if not _serves(found, project):
            return Missing(f"the queue {name} is not open to the project {project}", _choices("queues", open_to))
        return found

    def versioned(self, kind: str, reference: str, project: str) -> tuple[str, Value] | Missing:
        """Return the pinned reference `name@version` and the document that a preset or component reference names.

        Without a version the newest one is meant.
        """
        table = self.presets if kind == "preset" else self.components
        name, _, version = reference.partition("@")
        versions = table.get(name)
        if not versions:
            near = did_you_mean(name, (other for other in table if _newest_serves(table[other], project)))
            return Missing(f"there is no {kind} {name}", near or f"apply a {kind.capitalize()} first")
        number = int(version) if version else max(versions)
        found = versions.get(number)
        if found is None:
            known = ", ".join(map(str, sorted(versions)))
            return Missing(f"the {kind} {name} has no version {version}", f"versions are {known}")
        if not _serves(found, project):
            return Missing(f"the {kind} {name} is not open to the project {project}", "use another one")
        return f"{name}@{number}", found


def _serves(document: Value, project: str) -> bool:
    projects = (document.get("spec") or {}).get("projects")
    return not projects or project in projects


def _newest_serves(versions: Mapping[int, Value], project: str) -> bool:
    return _serves(versions[max(versions)], project)


def _choices(what: str, known: Iterable[str]) -> str:
    names = sorted(known)
    return f"{what} are {', '.join(names[:10])}" if names else ""
