"""`apply`, `delete`, `get`, `validate`: documents that people write, and lists of everything else."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from landbridge.cli import listing, output
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.instance import find
from landbridge.cli.options import Context, Data, Files, Format, Output, Project, Queue
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient
    from landbridge.domain.documents import Document

# What others refer to comes first.
_ORDER = (
    "Connection",
    "CapabilityClass",
    "Policy",
    "Rule",
    "Queue",
    "Component",
    "Preset",
    "Project",
    "EnvironmentContract",
)
_KIND = Annotated[str, typer.Argument(metavar="KIND", help="Such as operations, environments, projects, queues.")]


def add_to(app: typer.Typer) -> None:
    app.command()(apply)
    app.command()(delete)
    app.command()(get)
    app.command()(validate)


@dataclass(frozen=True, slots=True)
class FileDocument:
    """One document of a file."""

    file: str
    document: "Document"


def read_files(files: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of each file; `-` is standard input, a directory stands for its YAML and JSON files."""
    for name in files:
        if name == "-":
            yield "standard input", sys.stdin.buffer.read()
            continue
        path = Path(name)
        if path.is_dir():
            inside = sorted(item for item in path.iterdir() if item.suffix in {".yaml", ".yml", ".json"})
            if not inside:
                raise CliError(f"{name}: expected YAML or JSON files in it, found none", Exit.INVALID)
            yield from ((str(item), item.read_bytes()) for item in inside)
            continue
        try:
            yield name, path.read_bytes()
        except OSError as error:
            raise CliError(f"{name}: {error.strerror}", Exit.INVALID) from error


def parse_files(files: Sequence[str], *, skip: Sequence[str] = ()) -> tuple[list[FileDocument], list[str]]:
    """Read and check all documents: the good ones, and a text for each file with problems."""
    from landbridge.domain.documents import Document, read_documents

    good: list[FileDocument] = []
    problems: list[str] = []
    for name, body in read_files(files):
        if any(name.endswith(ending) for ending in skip):
            continue
        for found in read_documents(body):
            if isinstance(found, Document):
                good.append(FileDocument(name, found))
            else:
                problems.append(found.text(name))
    return good, problems


def refuse(problems: Sequence[str]) -> None:
    """Raise CliError with all problems, if there are any."""
    if problems:
        count = sum(len(text.splitlines()) for text in problems)
        raise CliError("\n".join([f"{count} problem{'s' if count > 1 else ''} found", *problems]), Exit.INVALID)


def validate(files: Files) -> None:
    """Check documents here, without an instance.

    Everything wrong in them is told, with line and suggestion.
    What only an instance knows (does the queue exist, what do presets add) is checked when they are sent.
    """
    good, problems = parse_files(files, skip=(".bindings.yaml",))
    for item in good:
        name = f"{item.document.project}/{item.document.name}" if item.document.project else item.document.name
        print(f"{item.file}: {item.document.kind.name} {name} is valid")
    refuse(problems)


def apply(files: Files, data: Data = None, context: Context = "", form: Output = Format.TABLE) -> None:
    """Create or change documents, any kind but Operation.

    All are checked before the first is sent. Applying the same document again changes nothing.
    """
    good, problems = parse_files(files, skip=(".bindings.yaml",))
    problems += [
        f"{item.file}: Operation {item.document.name}: operations are submitted, not applied; use `landbridge submit`"
        for item in good
        if item.document.kind.name == "Operation"
    ]
    refuse(problems)
    ordered = sorted(good, key=lambda item: _ORDER.index(item.document.kind.name))

    async def send(client: "HttpClient") -> list[dict[str, Any]]:
        results = []
        for item in ordered:
            answer = await client.apply(item.document.body)
            row = {"kind": item.document.kind.slug, "name": item.document.name, **answer}
            results.append(row)
            if form is Format.TABLE:
                print(f"{row['kind']} {row['name']} {_change(answer)}", flush=True)
        return results

    output.emit(call(data, context, send), form)


def _change(answer: dict[str, Any]) -> str:
    if answer.get("changed") is False or answer.get("unchanged"):
        return "unchanged"
    version = answer.get("version")
    return f"applied, version {version}" if version else "applied"


def delete(
    kind: _KIND,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    data: Data = None,
    context: Context = "",
) -> None:
    """Remove a document.

    Refused while others need it. Operations are cancelled, not deleted.
    """
    slug = listing.slug_of(kind)
    if slug == "operation":
        raise CliError(f"operations are records and stay; to stop one, use `landbridge cancel {name}`", Exit.INVALID)
    instance = find(data, context)
    call(data, context, lambda client: client.delete(slug, name))
    print(f"{slug} {name} removed")
    if slug in ("environment", "environment-contract") and instance.data is not None:
        _leave_site(instance.data, name)


def _leave_site(root: Path, name: str) -> None:
    """Stop the dispatcher of an environment that was removed, if it runs on this machine."""
    from landbridge_embedded.control import ask
    from landbridge_embedded.layout import DataDirectory

    directory = DataDirectory(root)
    if (directory.environments / name).is_dir():
        kept = ask(directory, "remove-environment", name=name, timeout_s=60)["kept"]
        print(f"its dispatcher here was stopped; what it holds is kept in {kept}")


def get(  # noqa: PLR0917 - options of a command
    kind: _KIND,
    name: Annotated[str, typer.Argument(metavar="[NAME]", show_default=False)] = "",
    project: Project = "",
    queue: Queue = "",
    environment: Annotated[
        str, typer.Option("--environment", "-e", metavar="NAME", help="Only there.", show_default=False)
    ] = "",
    phase: Annotated[
        str, typer.Option("--phase", metavar="PHASES", help="Only in these: running,queued.", show_default=False)
    ] = "",
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Only newer: 30m, 2d or a date.", show_default=False)
    ] = "",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=5000, help="At most so many.")] = 50,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """List things of a kind, or show one.

    Kinds: operations, environments, projects, queues, policies, presets, components, capability-classes, connections,
    refusals, alerts.
    """
    slug = listing.slug_of(kind)
    filters = {"project": project, "queue": queue, "environment": environment, "phase": phase}
    filters["since"] = listing.since(since)
    call(data, context, lambda client: listing.show(client, slug, name, filters, limit, form))
