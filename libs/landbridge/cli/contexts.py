"""`context`: remote instances by name."""

import sys
from typing import Annotated

import typer

from landbridge.cli import output
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.instance import Contexts
from landbridge.cli.options import Format, Output
from landbridge.cli.output import Column

app = typer.Typer(help="Remote instances by name.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    url: Annotated[str, typer.Argument(metavar="URL", help="The dashboard's address, https://…")],
    token_file: Annotated[
        str, typer.Option("--token-file", metavar="FILE", help="File with the token; - is standard input.")
    ] = "",
) -> None:
    """Add a remote instance, or change it. Without --token-file the token is asked for."""
    if not url.startswith(("http://", "https://")):
        raise CliError(f"address {url!r}: expected http:// or https://", Exit.INVALID)
    known = Contexts.load()
    known.all[name] = {"url": url.rstrip("/"), "token": _token(token_file)}
    known.used = known.used or name
    known.save()
    print(
        f"context {name} added{', in use' if known.used == name else f'; use it with `landbridge context use {name}`'}"
    )


def _token(token_file: str) -> str:
    if token_file == "-":  # noqa: S105 - standard input
        return sys.stdin.read().strip()
    if token_file:
        try:
            with open(token_file, encoding="utf-8") as file:  # noqa: PTH123
                return file.read().strip()
        except OSError as error:
            raise CliError(f"{token_file}: {error.strerror}", Exit.INVALID) from error
    return str(typer.prompt("Token", hide_input=True)).strip()


@app.command()
def use(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Use an instance wherever none is named and none runs in `.landbridge` here."""
    known = Contexts.load()
    _must_know(known, name)
    known.used = name
    known.save()
    print(f"context {name} is in use")


@app.command()
def remove(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Forget an instance and its token."""
    known = Contexts.load()
    _must_know(known, name)
    del known.all[name]
    known.used = "" if known.used == name else known.used
    known.save()
    print(f"context {name} removed")


@app.command("list")
def list_contexts(form: Output = Format.TABLE) -> None:
    """List the instances; tokens are not shown."""
    known = Contexts.load()
    rows = [{"name": name, "url": item["url"], "used": name == known.used} for name, item in sorted(known.all.items())]
    if not output.emit(rows, form):
        output.table(
            [Column("NAME"), Column("IN USE", styled=True), Column("ADDRESS", fold=True)],
            ([row["name"], "yes" if row["used"] else "", row["url"]] for row in rows),
            empty="no contexts yet; add one with `landbridge context add NAME URL`",
        )


def _must_know(known: Contexts, name: str) -> None:
    if name not in known.all:
        raise CliError(f"context {name}: not known (there are: {', '.join(sorted(known.all)) or 'none'})", Exit.INVALID)
