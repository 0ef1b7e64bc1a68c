"""`plan`: where an operation would run and why not elsewhere, before it is submitted. Changes nothing."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from landbridge.cli import output
from landbridge.cli.changes import Changes, Environments, Presets, Sets, operations
from landbridge.cli.documents import FileDocument
from landbridge.cli.exits import Exit
from landbridge.cli.options import Context, Data, Files, Format, Output, Project, Queue
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient


def add_to(app: typer.Typer) -> None:
    app.command()(plan)


def plan(
    files: Files,
    project: Project = "",
    queue: Queue = "",
    preset: Presets = None,
    set_values: Sets = None,
    environment: Environments = None,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Show where operations would run, and when.

    And why not elsewhere. Decided as for submitted ones, by what is known now; nothing is stored. Exit code: 0 some
    environment can run it now (it may still have to wait its turn), 3 none can, 2 invalid; of several files the
    highest.
    """
    changes = Changes(project, queue, preset or [], set_values or [], environment or [])
    items = operations(files, changes)

    async def ask(client: "HttpClient") -> list[dict[str, Any]]:
        return [await _ask(client, item, told=len(items) > 1) for item in items]

    found = call(data, context, ask)
    if not output.emit(found[0] if len(found) == 1 else found, form):
        from landbridge.cli.explain import show_plan

        for number, (item, answer) in enumerate(zip(items, found, strict=True)):
            if number:
                print()
            if answer.get("invalid"):
                output.note(f"{item.file}: {answer['invalid']}")
            else:
                show_plan(answer)
    if code := max(map(_code, found), default=Exit.DONE, key=lambda code: (code is Exit.INVALID, code)):
        raise typer.Exit(int(code))


async def _ask(client: "HttpClient", item: FileDocument, *, told: bool) -> dict[str, Any]:
    """Return one plan. Of several documents, one that is invalid must not hide the others' plans."""
    from landbridge.client.errors import InvalidError

    try:
        return await client.plan(item.document.body)
    except InvalidError as error:
        if not told:
            raise
        problems = [str(problem) for problem in error.problems]
        return {"name": item.document.name, "invalid": "\n  ".join(problems or [str(error)])}


def _code(answer: Mapping[str, Any]) -> Exit:
    if answer.get("invalid"):
        return Exit.INVALID
    return Exit.DONE if answer.get("eligible") else Exit.UNPLACEABLE
