"""`quarantine list|adopt|stop`: unknown work found in environments, about which a person decides."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from landbridge.cli import output
from landbridge.cli.decisions import decide
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.options import Context, Data, DryRun, Format, OperationId, Output, Why, Yes
from landbridge.cli.output import Column
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

app = typer.Typer(
    help="Unknown work found in environments.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_quarantine(
    everything: Annotated[bool, typer.Option("--all", help="Also what was decided.")] = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """List work found in environments that nobody here knows of."""
    params = {"all": "true"} if everything else None
    found = call(data, context, lambda client: client.read("/v1/quarantine", params))["items"]
    if output.emit(found, form):
        return
    columns = [
        Column("ENVIRONMENT"),
        Column("OPERATION"),
        Column("EPOCH"),
        Column("SLOT"),
        Column("STATE", styled=True),
        Column("AGE", right=True),
        Column("WHY", fold=True),
    ]
    output.table(columns, map(_quarantine_row, found), empty="no unknown work: every slot belongs to an operation here")


def _quarantine_row(item: Mapping[str, Any]) -> list[Any]:
    why = str(item.get("why", "")) + ("; its operation is known by now" if item.get("known") else "")
    names = ("environment", "operation", "epoch", "slot", "state")
    return [*(item.get(name) for name in names), output.age(str(item.get("foundAt") or "")), why]


def _decide_about(action: str, purpose: str, more: str) -> None:
    def command(
        operation: OperationId,
        environment: Annotated[
            str, typer.Option("--env", metavar="NAME", help="Where, if it is in several.", show_default=False)
        ] = "",
        epoch: Annotated[
            str, typer.Option("--epoch", metavar="G.C", help="Which, if there are several.", show_default=False)
        ] = "",
        reason: Why = "",
        dry_run: DryRun = False,
        yes: Yes = False,
        data: Data = None,
        context: Context = "",
        form: Output = Format.TABLE,
    ) -> None:
        async def run(client: "HttpClient") -> None:
            entry = await _entry(client, operation, environment, epoch)
            where = "/".join(quote(str(entry[name]), safe="") for name in ("environment", "operation", "epoch"))
            path = f"/v1/quarantine/{where}/{action}"
            await decide(client, path, {"reason": reason}, dry_run=dry_run, yes=yes, form=form)

        call(data, context, run)

    command.__doc__ = f"{purpose}\n\n{more}"
    app.command(action)(command)


async def _entry(client: "HttpClient", operation: str, environment: str, epoch: str) -> Mapping[str, Any]:
    found: list[dict[str, Any]] = [
        item
        for item in (await client.read("/v1/quarantine"))["items"]
        if str(item["operation"]).startswith(operation)
        and environment in ("", item["environment"])
        and epoch in ("", item["epoch"])
    ]
    if not found:
        raise CliError(f"nothing of {operation!r} is in quarantine; list it: landbridge quarantine list")
    if len(found) > 1:
        several = ", ".join(f"{item['operation'][:8]} {item['epoch']} in {item['environment']}" for item in found[:5])
        raise CliError(f"{operation!r} fits several: {several}; add --env and --epoch", Exit.INVALID)
    return found[0]


_decide_about(
    "adopt",
    "Take unknown work over as its operation's placement.",
    "The operation must be known: submit it again with its idempotency key first; it then waits for this.",
)
_decide_about("stop", "Have unknown work stopped.", "Its record stays; the environment says when it is over.")
