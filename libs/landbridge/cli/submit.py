"""`submit`: send operations, with what the command line adds to them, and wait if asked to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from landbridge.cli import output
from landbridge.cli.changes import Changes, Environments, Presets, Sets, operations
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.files import seconds
from landbridge.cli.options import Context, Data, Files, Format, Output, Project, Queue, Timeout
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient
    from landbridge.client.models import Submitted


def add_to(app: typer.Typer) -> None:
    app.command()(submit)


def submit(  # noqa: PLR0917 - options of a command
    files: Files,
    project: Project = "",
    queue: Queue = "",
    preset: Presets = None,
    set_values: Sets = None,
    environment: Environments = None,
    idempotency_key: Annotated[
        str,
        typer.Option(
            "--idempotency-key", metavar="KEY", help="Repeating it is safe. [default: a new one]", show_default=False
        ),
    ] = "",
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Return when it has ended, with its exit code.")] = False,
    timeout: Timeout = "",
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Submit operations and, with --wait, follow them.

    Several documents go together.
    With --wait: exit code 0 completed, 1 failed, 2 invalid, 3 unplaceable, 4 cancelled, 5 timed out, 6 unreachable.
    """
    changes = Changes(project, queue, preset or [], set_values or [], environment or [])
    bodies = [item.document.body for item in operations(files, changes)]
    if idempotency_key and len(bodies) > 1:
        raise CliError(
            f"--idempotency-key: expected one operation, found {len(bodies)}; submit them one by one", Exit.INVALID
        )
    limit_s = seconds(timeout)
    codes = call(data, context, lambda client: _send(client, bodies, idempotency_key, wait, limit_s, form))
    if worst := next((code for code in codes if code is not Exit.DONE), None):
        raise typer.Exit(int(worst))


async def _send(
    client: "HttpClient", bodies: Sequence[bytes], key: str, wait: bool, limit_s: float | None, form: Format
) -> list[Exit]:
    if len(bodies) > 1:
        return await _send_many(client, bodies, wait, limit_s, form)
    submitted = await client.submit(bodies[0], idempotency_key=key)
    if form is Format.TABLE:
        _say_submitted(submitted)
    if not wait:
        output.emit(_row(submitted), form)
        return [Exit.DONE]
    row, code = await _wait_one(client, submitted, limit_s, form)
    output.emit(row, form)
    return [code]


async def _send_many(
    client: "HttpClient", bodies: Sequence[bytes], wait: bool, limit_s: float | None, form: Format
) -> list[Exit]:
    """Submit together, wait in turn: they run beside each other, and the slowest sets the time."""
    from landbridge.client.models import Refused

    rows: list[dict[str, Any]] = []
    codes: list[Exit] = []
    accepted: list[Submitted] = []
    for answer in await client.submit_many(list(bodies)):
        if isinstance(answer, Refused):
            codes.append(Exit.INVALID)
            rows.append({"refused": answer.message, "problems": [str(problem) for problem in answer.problems]})
            output.note("\n  ".join([f"refused: {answer.message}", *rows[-1]["problems"]]))
            continue
        accepted.append(answer)
        if form is Format.TABLE:
            _say_submitted(answer)
    for item in accepted:
        row, code = await _wait_one(client, item, limit_s, form, named=True) if wait else (_row(item), Exit.DONE)
        rows.append(row)
        codes.append(code)
    output.emit(rows, form)
    return codes


def _row(submitted: "Submitted") -> dict[str, Any]:
    return {
        "operation": submitted.id,
        "phase": submitted.phase,
        "existing": submitted.existing,
        "idempotencyKey": submitted.idempotency_key,
    }


def _say_submitted(submitted: "Submitted") -> None:
    if submitted.existing:
        print(f"{submitted.id}  {submitted.phase} (this key was used before for the same operation)", flush=True)
    else:
        print(f"{submitted.id}  {submitted.phase}, idempotency key {submitted.idempotency_key}", flush=True)


async def _wait_one(
    client: "HttpClient", submitted: "Submitted", limit_s: float | None, form: Format, *, named: bool = False
) -> tuple[dict[str, Any], Exit]:
    """Wait for one; what became of it, told to people at once."""
    from landbridge.cli import progress

    found = await progress.wait_told(client, submitted.id, limit_s, tell=form is Format.TABLE, named=named)
    if form is Format.TABLE:
        progress.say_outcome(found)
    return progress.summary(found), progress.outcome(found)
