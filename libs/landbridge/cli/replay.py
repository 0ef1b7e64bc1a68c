"""`replay-decision`: a recorded decision made again from its recorded inputs, part by part."""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from landbridge.cli import output
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.options import Context, Data, Format, Output
from landbridge.cli.output import Column
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

_DECISION = re.compile(r"[0-9a-f]{32}")
_SHOWN = 60  # characters of a value in the table; -o json has all


def add_to(app: typer.Typer) -> None:
    app.command("replay-decision")(replay_decision)


def replay_decision(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="An operation's id or the beginning of it, or a decision's id.")
    ],
    round_: Annotated[
        int, typer.Option("--round", metavar="N", min=0, help="Which round. [default: the latest]", show_default=False)
    ] = 0,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Make a recorded decision again and compare.

    From what was measured then: scores, order, choice and route are computed again; of the verdicts, which are kept
    whole, the ids are. Exit code: 0 all is the same, 1 something differs.
    """

    async def ask(client: "HttpClient") -> dict[str, Any]:
        operation = await _operation_of(client, name) if _DECISION.fullmatch(name) else name
        return await client.replay(operation, round_=round_)

    found = call(data, context, ask)
    if not output.emit(found, form):
        _show(found)
    if not found.get("same"):
        raise typer.Exit(int(Exit.FAILED))


async def _operation_of(client: "HttpClient", decision: str) -> str:
    """Return an operation that a decision placed."""
    placed = (await client.read(f"/v1/ranking/decisions/{decision}")).get("operations") or ()
    if not placed:
        raise CliError(
            f"decision {decision}: no operation is placed by it any more; name the operation and its --round"
        )
    return str(placed[0]["operation"])


def _show(found: Mapping[str, Any]) -> None:
    at = str(found.get("at") or "")
    inputs = found.get("inputs") or {}
    output.fields(
        [
            ("Operation", f"{found.get('operation')}  round {found.get('round')}"),
            ("Decision", found.get("decision")),
            ("Decided", f"{output.clock(at)}, policy {found.get('policyVersion')}"),
            ("Environment", f"{found.get('environment')}, route {found.get('route')}"),
            *((f"Read by {who}", _versions(read)) for who, read in inputs.items()),
        ]
    )
    print()
    columns = [
        Column("WHAT"),
        Column("AGAIN", styled=True),
        Column("RECORDED", fold=True, wide=100),
        Column("HOW", fold=True),
    ]
    output.table(columns, map(_row, found.get("checks") or ()))
    for check in found.get("checks") or ():
        if check.get("same") is False:
            print(f"\n{check['what']}: recorded {_text(check['recorded'])}, again {_text(check['again'])}")
    print(f"\n{_verdict(found)}")
    for line in found.get("notRecorded") or ():
        print(f"Not recorded: {line}.")


def _versions(read: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(read.items()))


def _row(check: Mapping[str, Any]) -> list[Any]:
    words = {True: "same", False: "differs", None: "not kept"}
    return [check.get("what"), words[check.get("same")], _text(check.get("recorded")), check.get("how")]


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _verdict(found: Mapping[str, Any]) -> str:
    if not found.get("same"):
        return "The recorded inputs do not give the recorded decision: report it, with -o json."
    if not found.get("complete"):
        return "What can be made again gives the same; the rest is not kept any more."
    return "The recorded inputs give the recorded decision."
