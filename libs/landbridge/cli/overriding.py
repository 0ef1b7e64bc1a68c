"""`override`: one operation that waits, placed by a named person past its queue and the rules that may be broken."""

from typing import TYPE_CHECKING, Annotated

import typer

from landbridge.cli.decisions import decide
from landbridge.cli.options import Context, Data, DryRun, Format, OperationId, Output, Why, Yes
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient


def add_to(app: typer.Typer) -> None:
    app.command()(override)


def override(
    operation: OperationId,
    to: Annotated[str, typer.Option("--to", metavar="ENV", help="The environment it goes to.", show_default=False)],
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Place waiting work against the rules.

    For emergencies; it holds for one placement and stays in its record. Residency, security tier, licences, the
    movement of data and what the site accepts are not overridden, nor can an environment be made to take it that is
    paused, not heard, or too old for it.
    """

    async def run(client: "HttpClient") -> None:
        full = await client.resolve(operation)
        body = {"environment": to, "reason": reason}
        await decide(client, f"/v1/ranking/operations/{full}/override", body, dry_run=dry_run, yes=yes, form=form)

    call(data, context, run)
