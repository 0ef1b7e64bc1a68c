"""The `landbridge` command. Modules of commands load only what their command needs, so that `--help` is quick."""

import sys
from typing import Annotated

import typer

from landbridge.cli import (
    access,
    comparing,
    contexts,
    decisions,
    discovering,
    documents,
    environments,
    hold,
    importing,
    operations,
    overriding,
    plan,
    prices,
    quarantine,
    queues,
    recover,
    render,
    replay,
    server,
    simulate,
    site,
    submit,
)
from landbridge.cli.running import guard

app = typer.Typer(
    name="landbridge",
    help="Declare AI work once; Landbridge decides where it may and should run, and keeps the evidence.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"landbridge {version('landbridge')}")
        raise typer.Exit


@app.callback()
def landbridge(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Declare AI work once; Landbridge decides where it may and should run, and keeps the evidence."""


server.add_to(app)
documents.add_to(app)
render.add_to(app)
importing.add_to(app)
plan.add_to(app)
submit.add_to(app)
operations.add_to(app)
overriding.add_to(app)
replay.add_to(app)
decisions.add_to(app, environments.app)
app.add_typer(quarantine.app, name="quarantine")
app.add_typer(hold.app, name="hold")
comparing.add_to(environments.app)
discovering.add_to(environments.app)
prices.add_to(environments.app)
recover.add_to(app)
simulate.add_to(app)
app.add_typer(environments.app, name="env")
app.add_typer(queues.app, name="queue")
app.add_typer(access.app, name="access")
app.add_typer(site.app, name="site")
app.add_typer(contexts.app, name="context")


def main() -> None:
    """Entry point."""
    sys.exit(guard(app))


if __name__ == "__main__":
    main()
