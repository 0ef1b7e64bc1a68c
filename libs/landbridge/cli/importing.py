"""`import`: declarations of other systems as operations, and what became of each of their fields."""

import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from landbridge.cli import output
from landbridge.cli.changes import Changes, Presets, Sets
from landbridge.cli.documents import read_files, refuse
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.options import Format, Output, Project, Queue

if TYPE_CHECKING:
    from landbridge.domain.importing import Imported


class Source(StrEnum):
    """What a file was written for."""

    POLYAXON = "polyaxon"
    SKYPILOT = "skypilot"
    DSTACK = "dstack"
    KUBERNETES_JOB = "kubernetes-job"


def add_to(app: typer.Typer) -> None:
    app.command("import")(import_)


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to read; - is standard input.")],
    source: Annotated[
        Source | None,
        typer.Option("--from", help="What it was written for. [default: told from the file]", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the operation there.", show_default=False),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="FOUND=NAME",
            help="What the file names, and its connection, class or role here: H100=gpu-80gb, ghcr.io=images.",
            show_default=False,
        ),
    ] = None,
    project: Project = "",
    queue: Queue = "",
    preset: Presets = None,
    set_values: Sets = None,
    form: Output = Format.TABLE,
) -> None:
    """Bring in a declaration of another system.

    Reads a Polyaxonfile, a SkyPilot task, a dstack configuration or a Kubernetes Job, and writes an operation. Every
    field is accounted for: mapped, or not and why, with what to do. Nothing is invented: what a person must add is
    told, and the exit code is 2 until the operation is valid. Without --out the operation goes to standard output and
    the report to standard error.
    """
    from landbridge.domain.importing import Imported, import_declarations

    changes = Changes(project, queue, preset or [], set_values or [], [])
    known = dict(_name(text) for text in names or [])
    ((shown, body),) = list(read_files([file]))
    found = import_declarations(body, source.value if source else "", known, changes.apply)
    refuse([each.text(shown) for each in found if not isinstance(each, Imported)])
    imported = [each for each in found if isinstance(each, Imported)]
    _unused(known, imported)
    text = _text(imported)
    if out is not None:
        _write(out, text)
    members = [each.members() for each in imported]
    if not output.emit(members[0] if len(members) == 1 else members, form):
        _tell(imported, shown, text, out)
    if any(each.missing for each in imported):
        raise typer.Exit(int(Exit.INVALID))


def _name(text: str) -> tuple[str, str]:
    found, equals, name = text.rpartition("=")
    if not equals or not found or not name:
        raise CliError(f"--map {text!r}: expected FOUND=NAME, such as H100=gpu-80gb", Exit.INVALID)
    return found, name


def _unused(known: dict[str, str], imported: Sequence["Imported"]) -> None:
    used = {name for each in imported for name in each.names_used}
    for found in known:
        if found not in used:
            output.note(f"--map {found}: nothing in the file is called so, or nothing asks for its name")


def _text(imported: Iterable["Imported"]) -> str:
    from landbridge.cli.annotated import document_text

    return "---\n".join(document_text(each.operation) for each in imported)


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text)
    except OSError as error:
        raise CliError(f"--out {out}: {error.strerror}", Exit.INVALID) from error


def _tell(imported: Sequence["Imported"], shown: str, text: str, out: Path | None) -> None:
    from landbridge.cli.import_report import print_report

    to: Any = sys.stdout if out is not None else sys.stderr
    for number, each in enumerate(imported):
        print_report(each, shown, str(out or ""), to, again=bool(number))
    if out is None:
        sys.stderr.flush()
        sys.stdout.write(text)
