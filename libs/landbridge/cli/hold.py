"""`hold show|lift`: the hold after a mass loss, when the centre doubts its own hearing."""

from typing import TYPE_CHECKING

import typer

from landbridge.cli import output
from landbridge.cli.decisions import decide
from landbridge.cli.options import Context, Data, DryRun, Format, Output, Why, Yes
from landbridge.cli.output import Column
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

app = typer.Typer(help="The hold after a mass loss.", no_args_is_help=True, rich_markup_mode=None)


@app.command("show")
def show_hold(data: Data = None, context: Context = "", form: Output = Format.TABLE) -> None:
    """Show whether the centre doubts its own hearing, and what waits for that."""
    found = call(data, context, lambda client: client.read("/v1/expiry"))
    if output.emit(found, form):
        return
    for line in found["text"]:
        print(line)
    output.fields([("Silent", ", ".join(found["silent"]) or "none"), ("Heard", ", ".join(found["heard"]) or "none")])
    if found["waiting"]:
        print()
        columns = [
            Column("OPERATION"),
            Column("NAME"),
            Column("ENVIRONMENT"),
            Column("DECLARED"),
            Column("WHAT", fold=True),
        ]
        rows = (
            [item["operation"], item["name"], item["environment"], item["policy"], item["text"]]
            for item in found["waiting"]
        )
        output.table(columns, rows)


@app.command("lift")
def lift_hold(
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Confirm that the silence is real: time may free what stops by itself."""

    async def run(client: "HttpClient") -> None:
        await decide(client, "/v1/expiry/lift", {"reason": reason}, dry_run=dry_run, yes=yes, form=form)

    call(data, context, run)
