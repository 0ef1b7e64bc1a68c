"""`move`, `release`, `env declare-dead`, `env reconciliation`, and how what only people can decide is shown and asked.

Each change is shown before it is made: the instance runs it and takes it back (`--dry-run` ends there), then it asks.
"""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from landbridge.cli import output
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.options import Context, Data, DryRun, EnvironmentName, Format, OperationId, Output, Why, Yes
from landbridge.cli.output import Column
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient


def add_to(app: typer.Typer, env: typer.Typer) -> None:
    """Add the commands; those about one environment go below `env`."""
    for command in (move, release):
        app.command()(command)
    env.command("declare-dead")(declare_dead)
    env.command()(reconciliation)


# -- deciding ---------------------------------------------------------------------------------------------------------


async def decide(
    client: "HttpClient", path: str, body: Mapping[str, Any], *, dry_run: bool, yes: bool, form: Format = Format.TABLE
) -> None:
    """Show what a decision would do, ask, and make it. Raises CliError without a reason or a consent."""
    preview = await client.decide(path, body, dry_run=True)
    if dry_run:
        if not output.emit(preview, form):
            show(preview)
        return
    if not body.get("reason"):
        show(preview)
        raise CliError("--reason TEXT is needed: it is kept with what it concerns", Exit.INVALID)
    if not yes:
        show(preview)
        _ask()
    done = await client.decide(path, body)
    if not output.emit(done, form):
        if yes:
            show(done)
        print("done")


def _ask() -> None:
    if not sys.stdin.isatty():
        raise CliError("nobody to ask: look at the above and repeat it with --yes", Exit.INVALID)
    if not typer.confirm("Go on?"):
        raise CliError("nothing was changed")


def show(outcome: Mapping[str, Any]) -> None:
    """Print what a decision does or did: its words, then each operation that changes."""
    for line in outcome.get("text") or ():
        print(line)
    changes = outcome.get("changes") or ()
    if changes:
        print()
        columns = [
            Column("OPERATION"),
            Column("NAME"),
            Column("PHASE", styled=True),
            Column("ENVIRONMENT"),
            Column("EPOCH", wide=100),
            Column("DECLARED", wide=120),
            Column("BECOMES", fold=True),
        ]
        output.table(columns, map(_change_row, changes))


def _change_row(item: Mapping[str, Any]) -> list[Any]:
    shown = str(item.get("operation", ""))
    names = ("name", "phase", "environment", "epoch", "policy", "becomes")
    return [shown[:8] if output.terminal() else shown, *(item.get(name) for name in names)]


# -- one operation ----------------------------------------------------------------------------------------------------


def move(
    operation: OperationId,
    to: Annotated[
        str, typer.Option("--to", metavar="ENV", help="The environment it must go to.", show_default=False)
    ] = "",
    anywhere: Annotated[bool, typer.Option("--anywhere", help="Take an earlier --to back.")] = False,
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Move an operation to another environment.

    Its environment seals a checkpoint if it declares them, stops it and gives it back; then every rule is judged again.
    """
    if bool(to) == anywhere:
        raise CliError("expected --to ENV, or --anywhere", Exit.INVALID)

    async def run(client: "HttpClient") -> None:
        full = await client.resolve(operation)
        body = {"environment": to, "reason": reason}
        if form is Format.TABLE and to:
            await _warn_if_not_eligible(client, full, to)
        await decide(client, f"/v1/operations/{full}/move", body, dry_run=dry_run, yes=yes, form=form)

    call(data, context, run)


async def _warn_if_not_eligible(client: "HttpClient", operation: str, to: str) -> None:
    """Say what stood against the target when it was last judged: it would be stopped and then wait."""
    from landbridge.client.errors import LandbridgeError

    try:
        judged = (await client.explain(operation)).get("environments") or ()
    except LandbridgeError:
        return
    for item in judged:
        if item.get("environment") == to and not item.get("eligible"):
            print(f"Careful: {to} was not eligible when it was last judged; once stopped, it would wait:")
            for broken in item.get("violations") or ():
                print(f"- {broken.get('constraint')}: wanted {broken.get('wanted')}, found {broken.get('found')}")


def release(
    operation: OperationId,
    override: Annotated[bool, typer.Option("--override", help="Although its old attempt may still run.")] = False,
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Free an operation from a silent environment.

    It may then run twice until the environment returns and stops the old attempt, whose result is only recorded.
    """

    async def run(client: "HttpClient") -> None:
        full = await client.resolve(operation)
        if not override:
            found = await client.read(f"/v1/operations/{full}/ownership")
            for line in found["text"] or [f"It is {found['phase']}; nothing about it is uncertain."]:
                print(line)
            raise CliError("to free it all the same, although it may run twice: --override --reason TEXT", Exit.INVALID)
        await decide(client, f"/v1/operations/{full}/override", {"reason": reason}, dry_run=dry_run, yes=yes, form=form)

    call(data, context, run)


# -- one environment --------------------------------------------------------------------------------------------------


def declare_dead(
    name: EnvironmentName,
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Attest that an environment is off: all it holds is freed.

    If it returns, what it still runs of that is stopped.
    """
    path = f"/v1/environments/{quote(name, safe='')}/declare-dead"

    async def run(client: "HttpClient") -> None:
        await decide(client, path, {"reason": reason}, dry_run=dry_run, yes=yes, form=form)

    call(data, context, run)


def reconciliation(
    name: EnvironmentName, data: Data = None, context: Context = "", form: Output = Format.TABLE
) -> None:
    """Show what was found when an environment was last heard again."""
    path = f"/v1/environments/{quote(name, safe='')}/reconciliation"
    found = call(data, context, lambda client: client.read(path))
    if output.emit(found, form):
        return
    at = str(found.get("at") or "")
    output.fields(
        [
            ("Environment", found.get("environment")),
            ("Compared", f"{output.clock(at)} ({output.age(at)} ago), term {found.get('term')}"),
            ("Restored", "yes: it has lost or repeated records" if found.get("restored") else "no"),
            ("Slots shown", found.get("slots")),
            ("Adopted", found.get("adopted")),
            ("Settled or stopped", found.get("settledOrStopped")),
            ("Missing there", ", ".join(found.get("missing") or ()) or "none"),
            ("Unknown here", ", ".join(item["operation"] for item in found.get("quarantined") or ()) or "none"),
        ]
    )
    if found.get("earlier"):
        print()
        columns = [
            Column("EARLIER"),
            *(Column(name, right=True) for name in ("TERM", "SLOTS", "ADOPTED", "ENDED", "MISSING", "UNKNOWN")),
        ]
        output.table(columns, map(_comparison_row, found["earlier"]))
    if found.get("quarantined"):
        print("\nUnknown work is left alone until a person decides: landbridge quarantine list")


def _comparison_row(item: Mapping[str, Any]) -> list[Any]:
    at = str(item.get("at") or "")
    counts = (item.get("slots"), item.get("adopted"), item.get("settledOrStopped"))
    return [
        f"{output.clock(at)} ({output.age(at)} ago)",
        item.get("term"),
        *counts,
        len(item.get("missing") or ()),
        len(item.get("quarantined") or ()),
    ]
