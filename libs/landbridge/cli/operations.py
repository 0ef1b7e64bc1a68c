"""`explain`, `events`, `logs`, `outputs`, `cancel`, `retry`: one operation."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from landbridge.cli import output
from landbridge.cli.exits import Exit
from landbridge.cli.files import seconds
from landbridge.cli.options import Context, Data, Follow, Format, OperationId, Output, Reason, Timeout
from landbridge.cli.output import Column
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient
    from landbridge.client.models import Event

_Wait = Annotated[bool, typer.Option("--wait", "-w", help="Return when it has ended, with its exit code.")]


def add_to(app: typer.Typer) -> None:
    for command in (explain, events, logs, outputs, cancel, retry):
        app.command()(command)


def explain(operation: OperationId, data: Data = None, context: Context = "", form: Output = Format.TABLE) -> None:
    """Show why an operation goes where it goes.

    Or why nowhere: every environment, each rule, each score; while it waits as it stands now, with place, forecast and
    the change that would help. ID may be that of a refused submission.
    """

    async def ask(client: "HttpClient") -> tuple[dict[str, Any], str]:
        from landbridge.client.errors import NotFoundError

        try:
            found = await client.explain(operation)
        except NotFoundError:
            refused = await _refused(client, operation)
            if refused is None:
                raise
            return refused, ""
        return found, (await client.get(str(found["operation"]))).name

    found, name = call(data, context, ask)
    if output.emit(found, form):
        return
    from landbridge.cli.explain import show, show_refused

    if "operation" in found:
        show(found, name)
    else:
        show_refused(found)


async def _refused(client: "HttpClient", name: str) -> dict[str, Any] | None:
    """Return the newest refused submission of an id (of the refusal, or of the submission itself), or beginning so."""
    found = (await client.read("/v1/refusals", {"limit": "500"}))["items"]
    fitting = (
        item for item in found if name and (str(item.get("id")).startswith(name) or name == str(item.get("submission")))
    )
    return next(fitting, None)


def events(
    operation: OperationId,
    follow: Follow = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Show what happened to an operation, in order."""

    async def run(client: "HttpClient") -> None:
        if not follow:
            found = await client.events(operation)
            if not output.emit([event.raw for event in found], form):
                _print_events(found)
            return
        async for event in client.follow(operation):
            _print_one(event, form)

    call(data, context, run)


def _print_events(found: "list[Event]") -> None:
    from landbridge.cli.progress import why

    columns = [
        Column("AT"),
        Column("SEQ", right=True),
        Column("EVENT", styled=True),
        Column("ENVIRONMENT"),
        Column("ATTEMPT", right=True, wide=100),
        Column("WHY", fold=True),
    ]
    rows = (
        [
            output.clock(event.at) if output.terminal() else event.at,
            event.sequence or "",
            event.event,
            event.environment,
            event.attempt or "",
            why(event),
        ]
        for event in found
    )
    output.table(columns, rows, empty="nothing happened yet")


def _print_one(event: "Event", form: Format) -> None:
    from landbridge.cli.progress import step_line

    if form is Format.JSON:
        import json

        print(json.dumps(event.raw, ensure_ascii=False, default=str), flush=True)  # one line each, for `jq`
    elif not output.emit(event.raw, form):
        print(step_line(event), flush=True)


def logs(
    operation: OperationId,
    follow: Follow = False,
    tail: Annotated[int, typer.Option("--tail", min=0, help="Only so many bytes of its end.", show_default=False)] = 0,
    data: Data = None,
    context: Context = "",
) -> None:
    """Print what an operation wrote.

    Read from the environment of its latest attempt; it is stored nowhere else.
    """

    async def run(client: "HttpClient") -> None:
        if follow:
            async for text in client.follow_logs(operation):
                _write(text)
            return
        offset = 0
        while True:
            chunk = await client.logs(operation, offset=offset, tail=tail if offset == 0 else 0)
            _write(chunk.text)
            if chunk.message:
                output.note(chunk.message)
            if chunk.end or not chunk.text or chunk.next_offset <= offset:
                return
            offset = chunk.next_offset

    call(data, context, run)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def outputs(
    operation: OperationId,
    fetch: Annotated[
        Path | None,
        typer.Option("--fetch", metavar="DIR", help="Copy the files to this directory.", show_default=False),
    ] = None,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Show or fetch what an operation left behind.

    With --fetch it is copied here and compared with its digest.
    """

    async def run(client: "HttpClient") -> None:
        found = await client.outputs(operation)
        if not output.emit([{"name": item.name, **item.raw} for item in found], form):
            columns = [
                Column("OUTPUT"),
                Column("EXISTS", styled=True),
                Column("SIZE", right=True),
                Column("CONNECTION"),
                Column("PATH", fold=True),
                Column("SHA-256", wide=120),
            ]
            rows = (
                [
                    item.name,
                    "yes" if item.exists else "no",
                    output.size(item.bytes) if item.exists else "",
                    item.connection,
                    item.path,
                    item.sha256[:16] if output.terminal() else item.sha256,
                ]
                for item in found
            )
            output.table(columns, rows, empty="no outputs: none are declared, or no attempt has ended yet")
        if fetch is not None:
            from landbridge.cli.fetch import fetch_all

            await fetch_all(client, operation, found, fetch)

    call(data, context, run)


def cancel(
    operation: OperationId,
    reason: Reason = "",
    wait: _Wait = False,
    timeout: Timeout = "",
    data: Data = None,
    context: Context = "",
) -> None:
    """Ask to stop an operation.

    It is cancelled once its environment has proven the stop.
    """
    limit_s = seconds(timeout)

    async def run(client: "HttpClient") -> Exit:
        full = await client.resolve(operation)
        await client.cancel(full, reason)
        print(f"{full}  asked to stop", flush=True)
        return await _wait_for(client, full, limit_s, to_the_end=True) if wait else Exit.DONE

    code = call(data, context, run)
    # Who asks for a cancellation and gets one has succeeded.
    if code not in (Exit.DONE, Exit.CANCELLED):
        raise typer.Exit(int(code))


def retry(
    operation: OperationId,
    wait: _Wait = False,
    timeout: Timeout = "",
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Submit an ended operation again, as a new one."""
    limit_s = seconds(timeout)

    async def run(client: "HttpClient") -> Exit:
        submitted = await client.retry(operation)
        row = {"operation": submitted.id, "phase": submitted.phase, "retryOf": await client.resolve(operation)}
        if not output.emit(row, form):
            print(f"{submitted.id}  {submitted.phase}, retry of {row['retryOf']}", flush=True)
        return await _wait_for(client, submitted.id, limit_s) if wait else Exit.DONE

    code = call(data, context, run)
    if code is not Exit.DONE:
        raise typer.Exit(int(code))


async def _wait_for(client: "HttpClient", operation: str, limit_s: float | None, *, to_the_end: bool = False) -> Exit:
    from landbridge.cli import progress

    found = await progress.wait_told(client, operation, limit_s, tell=True, to_the_end=to_the_end)
    progress.say_outcome(found)
    return progress.outcome(found)
