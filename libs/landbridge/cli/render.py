"""`render`: the operation as everything after intake reads it, and where each value comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from landbridge.cli import output
from landbridge.cli.changes import Changes, Environments, Presets, Sets, operations
from landbridge.cli.documents import FileDocument, parse_files, refuse
from landbridge.cli.options import Context, Data, Files, Format, Output, Project, Queue
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient
    from landbridge.domain.documents import Catalogue


@dataclass(frozen=True, slots=True)
class Shown:
    """One effective operation; `provenance` has the origin of each value by its path."""

    file: str
    effective: Mapping[str, Any]
    provenance: Mapping[str, str]


def add_to(app: typer.Typer) -> None:
    app.command()(render)


def render(  # noqa: PLR0917 - options of a command
    files: Files,
    project: Project = "",
    queue: Queue = "",
    preset: Presets = None,
    set_values: Sets = None,
    environment: Environments = None,
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="ENVIRONMENT",
            help="As it is where it is placed: with what presets set for that environment.",
            show_default=False,
        ),
    ] = "",
    catalogue: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="FILE",
            help="Projects, queues, presets and components from files or folders, instead of an instance's.",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Show operations as they would be submitted.

    Nothing is stored. Takes what submit takes and is worked out by the same code: presets, component, project and
    queue are applied. Each line says where its value comes from: the operation, a preset or component with its
    version, the project, the queue or a default. The instance is asked for its catalogue unless --with names files.
    """
    changes = Changes(project, queue, preset or [], set_values or [], environment or [])
    items = operations(files, changes)
    placed = not changes.any
    if catalogue:
        known = _catalogue(catalogue)
        shown = [_here(item, known, placed=placed) for item in items]
    else:

        async def ask(client: "HttpClient") -> list[Shown | str]:
            return [await _there(client, item, placed=placed) for item in items]

        shown = call(data, context, ask)
    refuse([each for each in shown if isinstance(each, str)])
    good = [_at(each, at) for each in shown if isinstance(each, Shown)]
    rows = [{"effective": each.effective, "provenance": dict(each.provenance)} for each in good]
    if not output.emit(rows[0] if len(rows) == 1 else rows, form):
        _print(good)


# -- working it out ----------------------------------------------------------------------------------------------------


def _catalogue(files: Sequence[str]) -> "Catalogue":
    """Read the documents that operations may refer to. CliError with every problem."""
    from landbridge.domain.documents import Catalogue

    good, problems = parse_files(files, skip=(".bindings.yaml",))
    refuse(problems)
    plain: dict[str, dict[str, Any]] = {"Project": {}, "Queue": {}}
    versioned: dict[str, dict[str, dict[int, Any]]] = {"Preset": {}, "Component": {}}
    for item in good:
        kind, name, value = item.document.kind.name, item.document.name, item.document.value
        if kind in plain:
            plain[kind][name] = value
        elif kind in versioned:
            versioned[kind].setdefault(name, {})[int(value["metadata"]["version"])] = value
    return Catalogue(plain["Project"], plain["Queue"], versioned["Preset"], versioned["Component"])


def _here(item: FileDocument, catalogue: "Catalogue", *, placed: bool) -> Shown | str:
    """Render with documents from files; a text with everything that stands against it.

    `placed`: the document was not changed, so its lines are the file's.
    """
    from landbridge.domain.documents import Rendered
    from landbridge.domain.documents import render as rendered
    from landbridge.domain.errors import render_problem

    found = rendered(item.document, catalogue)
    if isinstance(found, Rendered):
        return Shown(item.file, found.value, found.provenance)
    lines = [render_problem(each, item.file) if placed else f"{item.file}: {each.text}" for each in found]
    return "\n".join(lines)


async def _there(client: "HttpClient", item: FileDocument, *, placed: bool) -> Shown | str:
    """Ask the instance, whose catalogue decides; a text with everything that stands against it."""
    answer = await client.check(item.document.body)
    if "effective" in answer:
        return Shown(item.file, answer["effective"], answer["provenance"])
    offset = _lines_before(item)
    lines = []
    for each in answer["problems"]:
        told = f"{each['path']}: " if each.get("path") else ""
        told += "; ".join(part for part in (each.get("message"), each.get("suggestion")) if part)
        place = f":{each['line'] + offset}:{each['column']}" if placed and each.get("line") else ":"
        lines.append(f"{item.file}{place} {told}")
    return "\n".join(lines)


def _lines_before(item: FileDocument) -> int:
    """Return how many lines of the file stand before the document: the instance counts from the document's own."""
    from landbridge.domain.documents.source import read_source

    in_file = item.document.source.find_places().of_key(("kind",))[0]
    return max(0, in_file - read_source(item.document.body).find_places().of_key(("kind",))[0])


def _at(shown: Shown, environment: str) -> Shown:
    """Apply what presets set for an environment, as its dispatcher does."""
    from landbridge.domain.documents.nearest import did_you_mean
    from landbridge.domain.documents.places import path_text
    from landbridge.domain.environment_settings import FIELD, variables_in

    if not environment:
        return shown
    settings = shown.effective.get(FIELD) or {}
    here = (settings.get(environment) or {}).get("env") or {}
    if not here:
        hint = did_you_mean(environment, settings) or (f"they do for {', '.join(settings)}" if settings else "")
        output.note(f"presets set nothing for {environment}{f'; {hint}' if hint else ''}")
    spec = {**shown.effective["spec"]}
    if here:
        spec["env"] = dict(variables_in(spec.get("env") or {}, here))
    origins = {path: origin for path, origin in shown.provenance.items() if not path.startswith(f"{FIELD}.")}
    for name in here:
        origin = shown.provenance.get(path_text((FIELD, environment, "env", name)), "preset")
        origins[path_text(("spec", "env", name))] = f"{origin} at {environment}"
    effective = {key: value for key, value in shown.effective.items() if key != FIELD}
    return Shown(shown.file, {**effective, "spec": spec}, origins)


# -- showing it --------------------------------------------------------------------------------------------------------


def _print(items: Sequence[Shown]) -> None:
    from landbridge.cli.annotated import print_annotated

    for number, shown in enumerate(items):
        if number:
            print("---")
        print(output.styled(f"# {_summary(shown)}", "bold"))
        print_annotated(shown.effective, shown.provenance)


def _summary(shown: Shown) -> str:
    """Return how many values come from where, in the order of strength in which they are met."""
    counts: dict[str, int] = {}
    for origin in shown.provenance.values():
        counts[origin] = counts.get(origin, 0) + 1
    return f"{Path(shown.file).name}: " + ", ".join(f"{count} from {origin}" for origin, count in counts.items())
