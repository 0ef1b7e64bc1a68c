"""`site`: an environment on its own machine, without the centre. Whoever is on site can see and stop what runs."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from landbridge.cli import output
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.files import seconds
from landbridge.cli.instance import data_directory
from landbridge.cli.options import Data, Follow, Format, OperationId, Output, Reason
from landbridge.cli.output import Column

app = typer.Typer(
    help="An environment on its own machine, without the centre.", no_args_is_help=True, rich_markup_mode=None
)

_Environment = Annotated[
    str,
    typer.Option("--environment", "-e", metavar="NAME", help="Which one, if several are here.", show_default=False),
]
_Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="The dispatcher's own data directory, where it runs by itself.",
        show_default=False,
    ),
]
_POLL_S = 0.3


def _home(data: Path | None, environment: str, home: Path | None) -> Path:
    """Return the directory of the one environment that is meant."""
    if home is not None:
        return home.resolve()
    places = data_directory(data) / "environments"
    here = sorted(item.parent for item in places.glob("*/environment.json"))
    chosen = [item for item in here if item.name == environment] if environment else here
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(item.name for item in here)
    if not here:
        raise CliError(
            f"no environment has joined on this machine (looked in {places}); name its directory with --home DIR",
            Exit.INVALID,
        )
    if environment:
        raise CliError(f"environment {environment}: not here; there are {names}", Exit.INVALID)
    raise CliError(f"several environments are here ({names}); say which with --environment NAME", Exit.INVALID)


def _ask(home: Path, do: str, **arguments: Any) -> dict[str, Any]:
    from landbridge.client.site import ask_site

    return ask_site(home, {"do": do, **{key: value for key, value in arguments.items() if value not in (None, "")}})


@app.command()
def status(data: Data = None, environment: _Environment = "", home: _Home = None, form: Output = Format.TABLE) -> None:
    """Show the link to the centre, the lease, and what runs here."""
    place = _home(data, environment, home)
    found = _ask(place, "status")
    if not output.emit(found, form):
        output.fields([("Environment", place.name), *_flat(found)])


def _flat(found: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return names and values of an answer, nested ones with their path, in words."""
    rows: list[tuple[str, Any]] = []
    for key, value in found.items():
        if key in {"ok", "environment"}:
            continue
        name = f"{prefix}{_words(key)}"
        if isinstance(value, Mapping):
            rows += _flat(value, f"{name} ")
        elif isinstance(value, list):
            rows.append((name, ", ".join(map(str, value))))
        elif isinstance(value, bool):
            rows.append((name, "yes" if value else "no"))
        else:
            rows.append((name, value))
    return [(name[:1].upper() + name[1:], value) for name, value in rows]


def _words(key: str) -> str:
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in key)


@app.command()
def operations(
    everything: Annotated[bool, typer.Option("--all", "-a", help="Also those that have ended.")] = False,
    data: Data = None,
    environment: _Environment = "",
    home: _Home = None,
    form: Output = Format.TABLE,
) -> None:
    """List what is here."""
    found = _ask(_home(data, environment, home), "operations", all=everything)
    rows = list(found.get("operations") or ())
    if output.emit(rows, form):
        return
    columns = [
        Column("ID"),
        Column("PROJECT"),
        Column("STATE", styled=True),
        Column("POLICY"),
        Column("EPOCH"),
        Column("AGE", right=True),
        Column("WHY", fold=True),
    ]
    output.table(columns, map(_operation_row, rows), empty="nothing runs here")


def _operation_row(item: Mapping[str, Any]) -> list[Any]:
    shown, report = str(item.get("operation", "")), item.get("report") or {}
    told = (item.get("reason"), report.get("outcome"), report.get("reason"), report.get("message"))
    why = ": ".join(dict.fromkeys(str(part) for part in told if part))
    return [
        shown[:8] if output.terminal() else shown,
        item.get("project"),
        "stopping" if item.get("stopping") else item.get("state"),
        item.get("policy"),
        item.get("epoch"),
        output.age(str(report.get("startedAt") or report.get("at") or "")),
        why,
    ]


@app.command()
def logs(
    operation: OperationId,
    follow: Follow = False,
    tail: Annotated[int, typer.Option("--tail", min=0, help="Only so many bytes of its end.", show_default=False)] = 0,
    data: Data = None,
    environment: _Environment = "",
    home: _Home = None,
) -> None:
    """Print what an operation wrote."""
    place, offset = _home(data, environment, home), 0
    while True:
        found = _ask(place, "logs", operation=operation, offset=offset, tail=tail if offset == 0 else 0)
        sys.stdout.write(str(found.get("text") or ""))
        sys.stdout.flush()
        progressed = int(found.get("nextOffset") or 0) > offset
        offset = max(offset, int(found.get("nextOffset") or 0))
        if found.get("end") or (not follow and not progressed):
            return
        if not progressed:
            time.sleep(_POLL_S)


@app.command()
def stop(
    operation: OperationId,
    reason: Reason = "",
    grace: Annotated[str, typer.Option("--grace", metavar="TIME", help="Between SIGTERM and SIGKILL.")] = "10s",
    force: Annotated[bool, typer.Option("--force", help="SIGKILL at once.")] = False,
    data: Data = None,
    environment: _Environment = "",
    home: _Home = None,
) -> None:
    """Stop an operation here. The centre is told as soon as it can be."""
    place = _home(data, environment, home)
    grace_s = seconds(grace, "--grace") or 0.0
    found = _ask(place, "stop", operation=operation, reason=reason, graceSeconds=int(grace_s), force=force)
    print(f"{found.get('operation') or operation}  {'killed' if force else 'asked to stop'}")


@app.command()
def doctor(data: Data = None, environment: _Environment = "", home: _Home = None, form: Output = Format.TABLE) -> None:
    """Check the dispatcher, its bindings and what it can run."""
    found = _ask(_home(data, environment, home), "doctor")
    rows = list(found.get("checks") or ())
    if not output.emit(rows, form):
        columns = [Column("CHECK"), Column("RESULT", styled=True), Column("FOUND", fold=True)]
        output.table(columns, map(_check_row, rows), empty="nothing to check")
    if any(row.get("state") == "failed" for row in rows):
        raise typer.Exit(int(Exit.FAILED))


def _check_row(row: Mapping[str, Any]) -> list[Any]:
    return [row.get("name"), row.get("state"), row.get("message")]
