"""`queue`: what only people can decide about queues and about what waits in them.

Each change is shown before it is made, and kept with name and reason.
"""

from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from landbridge.cli.decisions import decide
from landbridge.cli.options import Context, Data, DryRun, Format, OperationId, Output, QueueName, Why, Yes
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

app = typer.Typer(help="Queues, and what waits in them.", no_args_is_help=True, rich_markup_mode=None)


def _control(action: str, purpose: str, more: str) -> None:
    def command(
        name: QueueName,
        reason: Why = "",
        dry_run: DryRun = False,
        yes: Yes = False,
        data: Data = None,
        context: Context = "",
        form: Output = Format.TABLE,
    ) -> None:
        path = f"/v1/ranking/queues/{quote(name, safe='')}/{action}"

        async def run(client: "HttpClient") -> None:
            await decide(client, path, {"reason": reason}, dry_run=dry_run, yes=yes, form=form)

        call(data, context, run)

    command.__doc__ = f"{purpose}\n\n{more}"
    app.command(action)(command)


_control("pause", "Let nothing leave a queue.", "What runs goes on. Queues that are part of it are paused with it.")
_control("resume", "Let a paused or drained queue go on.", "What its document says stays: see `paused` there.")
_control(
    "drain", "Let a queue take nothing new.", "What waits in it and what runs goes on to its end; what comes waits."
)


@app.command()
def move(
    operation: OperationId,
    to: Annotated[str, typer.Option("--to", metavar="QUEUE", help="The queue.", show_default=False)],
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Have an operation that waits do so in another queue.

    Every rule is judged again; what is placed or runs already has no queue to change.
    """
    _requeue(operation, {"queue": to, "reason": reason}, dry_run, yes, data, context, form)


@app.command()
def prioritise(
    operation: OperationId,
    class_: Annotated[
        str, typer.Option("--class", metavar="C", help="A priority class of its queue.", show_default=False)
    ],
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Have an operation wait by another priority class of its queue."""
    _requeue(operation, {"priority": class_, "reason": reason}, dry_run, yes, data, context, form)


def _requeue(
    operation: str, body: dict[str, str], dry_run: bool, yes: bool, data: Data, context: str, form: Format
) -> None:
    async def run(client: "HttpClient") -> None:
        full = await client.resolve(operation)
        await decide(client, f"/v1/operations/{full}/queue", body, dry_run=dry_run, yes=yes, form=form)

    call(data, context, run)
