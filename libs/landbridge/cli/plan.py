"""`plan`: where an operation would run and why not elsewhere, before it is submitted. Changes nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from landbridge.cli import output
from landbridge.cli.changes import Changes, Environments, Presets, Sets, operations
from landbridge.cli.documents import FileDocument
from landbridge.cli.exits import Exit
from landbridge.cli.options import Context, Data, Files, Format, Output, Project, Queue
from landbridge.cli.running import call


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

    And why not elsewhere. Decided as for submitted ones, by what is known now; nothing is stored. Several are planned
    together, as if all were submitted now, in this order, and nothing else: what one would hold is held for those
    behind it, and the members of a gang find each other. Exit code: 0 some environment can run it now (it may still
    have to wait its turn), 3 none can, 2 invalid; of several files the highest.
    """
    changes = Changes(project, queue, preset or [], set_values or [], environment or [])
    items = operations(files, changes)
    found = call(data, context, lambda client: client.plan_together([item.document.body for item in items]))
    if not output.emit(found[0] if len(found) == 1 else found, form):
        _show(items, found)
    if code := max(map(_code, found), default=Exit.DONE, key=lambda code: (code is Exit.INVALID, code)):
        raise typer.Exit(int(code))


def _show(items: Sequence[FileDocument], found: Sequence[Mapping[str, Any]]) -> None:
    from landbridge.cli.explain import show_plan, show_plans

    if len(found) > 1:
        show_plans(found)
    for number, (item, answer) in enumerate(zip(items, found, strict=True)):
        if number or len(found) > 1:
            print()
        if answer.get("problems"):
            told = "\n  ".join(map(_problem, answer["problems"]))
            output.note(f"{item.file}: {answer.get('name') or 'operation'} would be refused:\n  {told}")
        else:
            show_plan(answer)


def _problem(problem: Mapping[str, Any]) -> str:
    hint = f"; {problem['suggestion']}" if problem.get("suggestion") else ""
    return f"{problem.get('path')}: {problem.get('message')}{hint}"


def _code(answer: Mapping[str, Any]) -> Exit:
    if answer.get("problems"):
        return Exit.INVALID
    return Exit.DONE if answer.get("eligible") else Exit.UNPLACEABLE
