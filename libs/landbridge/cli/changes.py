"""What the command line changes in documents before they are shown or sent: the same for `submit` and `render`."""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from landbridge.cli.documents import FileDocument, parse_files, read_files, refuse
from landbridge.cli.exits import CliError, Exit

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Presets = Annotated[
    list[str] | None,
    typer.Option("--preset", metavar="NAME", help="Apply a preset: NAME or NAME@VERSION.", show_default=False),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a variable of env (a parameter, for a component's operation), or a field by its path below spec: "
        "LR=0.01, resources.requests.cpu=4.",
        show_default=False,
    ),
]
Environments = Annotated[
    list[str] | None,
    typer.Option("--environment", "-e", metavar="NAME", help="Only in this environment.", show_default=False),
]


class Changes:
    """What the command line changes in every document."""

    def __init__(
        self, project: str, queue: str, presets: Sequence[str], sets: Sequence[str], environments: Sequence[str]
    ) -> None:
        self._project, self._queue = project, queue
        self._presets, self._environments = list(presets), list(environments)
        self._sets = [_key_value(text) for text in sets]

    @property
    def any(self) -> bool:
        return bool(self._project or self._queue or self._presets or self._sets or self._environments)

    def apply(self, document: dict[str, Any]) -> None:
        metadata, spec = document.setdefault("metadata", {}), document.setdefault("spec", {})
        if self._project:
            metadata["project"] = self._project
        if self._queue:
            spec["queue"] = self._queue
        if self._presets:
            spec["presets"] = [*spec.get("presets", ()), *self._presets]
        if self._environments:
            _set(spec, ["constraints", "environments", "allow"], self._environments)
        for key, value in self._sets:
            _set(spec, _path(key, spec), value)


def operations(files: Sequence[str], changes: Changes) -> list[FileDocument]:
    """Return the operations of files: the bytes as they are, or changed. CliError with every problem."""
    good, problems = _changed(files, changes) if changes.any else parse_files(files)
    problems += [
        f"{item.file}: {item.document.kind.name} {item.document.name}: expected an Operation; use `landbridge apply`"
        for item in good
        if item.document.kind.name != "Operation"
    ]
    refuse(problems)
    return good


def _key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise CliError(f"--set {text!r}: expected KEY=VALUE", Exit.INVALID)
    return key, value


def _path(key: str, spec: dict[str, Any]) -> list[str]:
    """Return where a key goes: a path as it is, a field of spec, else a parameter or variable."""
    from landbridge.schema.documents_v1 import OperationSpec

    parts = key.split(".")
    fields = {field.alias or name for name, field in OperationSpec.model_fields.items()}
    if len(parts) > 1 or key in fields:
        if parts[0] not in fields:
            raise CliError(
                f"--set {key}: spec has no field {parts[0]!r}; it has {', '.join(sorted(fields))}", Exit.INVALID
            )
        return parts
    if spec.get("component"):
        return ["parameters", key]
    if not _VARIABLE.fullmatch(key):
        raise CliError(f"--set {key}: expected a variable's name, or a path below spec with dots", Exit.INVALID)
    return ["env", key]


def _set(spec: dict[str, Any], path: Sequence[str], value: Any) -> None:
    place: Any = spec
    for part in path[:-1]:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise CliError(f"--set {'.'.join(path)}: {part} is not a map in the document", Exit.INVALID)
    place[path[-1]] = _typed(value) if isinstance(value, str) and path[0] not in ("env", "parameters") else value


def _typed(text: str) -> Any:
    """Read a value as YAML does, so that lists and numbers can be given; quantities and names stay text."""
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return found if isinstance(found, bool | int | float | list | dict) else text


def _changed(files: Sequence[str], changes: Changes) -> tuple[list[FileDocument], list[str]]:
    """Change the documents first and check them then: a missing queue may be what the command line gives."""
    import yaml

    from landbridge.domain.documents import Document, read_document

    good: list[FileDocument] = []
    problems: list[str] = []
    for name, body in read_files(files):
        try:
            values = [value for value in yaml.safe_load_all(body) if value is not None]
        except yaml.YAMLError:
            values = []
        if not values or not all(isinstance(value, dict) for value in values):
            problems += parse_files([name])[1] if name != "standard input" else [f"{name}: expected YAML documents"]
            continue
        for value in values:
            changes.apply(value)
            found = read_document(json.dumps(value, default=str).encode())
            if isinstance(found, Document):
                good.append(FileDocument(name, found))
            else:
                # Places would be those of the changed text, which nobody has seen.
                problems.append("\n".join(f"{name}: {problem.text}" for problem in found.problems))
    return good, problems
