"""Options that many commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How to print what was read."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Data directory of an instance on this machine. [default: $LANDBRIDGE_DATA or .landbridge]",
        show_default=False,
    ),
]
Context = Annotated[
    str,
    typer.Option(
        "--context",
        metavar="NAME",
        help="A remote instance, see `landbridge context`. [default: $LANDBRIDGE_CONTEXT or the one in use]",
        show_default=False,
    ),
]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print.", show_default=True)]
Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Files to read; - is standard input.")]
OperationId = Annotated[str, typer.Argument(metavar="ID", help="An operation's id, or the beginning of it.")]
Project = Annotated[str, typer.Option("--project", "-p", metavar="NAME", help="The project.", show_default=False)]
Queue = Annotated[str, typer.Option("--queue", "-q", metavar="NAME", help="The queue.", show_default=False)]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on as more comes, until the operation has ended.")]
EnvironmentName = Annotated[str, typer.Argument(metavar="NAME", help="The environment.")]
QueueName = Annotated[str, typer.Argument(metavar="NAME", help="The queue.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.", show_default=False)]
# Of what only people can decide: each change is shown, asked about, and kept with its reason.
Why = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; needed, and recorded with your name.", show_default=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what it would do.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; for scripts.")]
Timeout = Annotated[
    str,
    typer.Option(
        "--timeout",
        metavar="TIME",
        help="How long to wait: 30s, 5m, 1h. [default: as long as it takes]",
        show_default=False,
    ),
]
