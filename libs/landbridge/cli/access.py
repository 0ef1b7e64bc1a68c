"""`access`: tokens and NATS credentials for applications and people."""

from pathlib import Path
from typing import Annotated

import typer

from landbridge.cli import output
from landbridge.cli.options import Context, Data, Format, Output
from landbridge.cli.output import Column
from landbridge.cli.running import call

app = typer.Typer(help="Tokens and NATS credentials.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who it is for.")],
    project: Annotated[str, typer.Option("--project", "-p", help="For this project.")],
    role: Annotated[str, typer.Option("--role", help="viewer, submitter, operator or admin.")] = "submitter",
    creds: Annotated[
        Path | None,
        typer.Option("--creds", metavar="FILE", help="Write the NATS credentials there.", show_default=False),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="End what was given under this name before.")] = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Make a token for HTTP and credentials for NATS. They are shown once and not kept."""
    answer = call(data, context, lambda client: client.create_access(name, project, role, replace=replace))
    if creds is not None and answer.get("creds"):
        from landbridge.cli.files import write_private

        write_private(creds, str(answer["creds"]))
    if output.emit(answer, form):
        return
    print(f"access {name} for project {project}, role {role}")
    print(f"token  {answer['token']}")
    if creds is not None:
        print(f"NATS credentials are in {creds}")
    elif answer.get("creds"):
        print("NATS credentials were made, too; write them to a file with --creds FILE")
    print("The token is shown only now.")


@app.command("list")
def list_access(data: Data = None, context: Context = "", form: Output = Format.TABLE) -> None:
    """List who has access; tokens are not kept and not shown."""
    found = call(data, context, lambda client: client.access())
    if not output.emit(found, form):
        columns = [Column("NAME"), Column("ROLE"), Column("PROJECTS", fold=True), Column("AGE", right=True)]
        rows = (
            [item["name"], item["role"], ", ".join(item["projects"]), output.age(str(item.get("at") or ""))]
            for item in found
        )
        output.table(columns, rows, empty="nobody yet; let an application in with `landbridge access create NAME`")


@app.command()
def revoke(name: Annotated[str, typer.Argument(metavar="NAME")], data: Data = None, context: Context = "") -> None:
    """End a token and its NATS credentials."""
    call(data, context, lambda client: client.revoke_access(name))
    print(f"access {name} ended")
