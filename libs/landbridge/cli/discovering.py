"""`env discover`: the draft of a contract from a live cluster."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from landbridge.cli.exits import CliError, Exit

if TYPE_CHECKING:
    from landbridge.domain.discovering import Draft, Survey

_PATIENCE_S = 3.0  # somebody waits for the answer


def add_to(app: typer.Typer) -> None:
    app.command()(discover)


def discover(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the environment is to be called.")],
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--kubeconfig", metavar="FILE", help="Whose cluster. [default: $KUBECONFIG]", show_default=False),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", metavar="NS", help="Where work is to run; its quotas and labels count.", show_default=False
        ),
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the draft there.", show_default=False)
    ] = None,
) -> None:
    """Draft the contract of a Kubernetes environment from what its API tells.

    Reads version, nodes, devices, storage classes, operators, quotas and labels, and changes nothing. The draft is a
    valid contract; what a person has to decide stands above it, where a value comes from beside it. Nothing that it
    claims counts before it was proven.
    """
    import asyncio

    from landbridge.cli.annotated import annotated_text
    from landbridge.domain.discovering import draft_contract

    draft = draft_contract(asyncio.run(_survey(_file(kubeconfig), namespace)), name)
    text = "".join(f"{line}\n" for line in (*_head(draft), *annotated_text(draft.document, draft.remarks)))
    if out is None:
        print(text, end="")
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(f"{out}: {error.strerror}", Exit.INVALID) from error
    print(f"written to {out}; decide what its head lists, then: landbridge env register {out}")


def _file(kubeconfig: Path | None) -> str:
    found = str(kubeconfig or os.environ.get("KUBECONFIG", ""))
    if not found:
        raise CliError("expected --kubeconfig FILE or KUBECONFIG, found neither", Exit.INVALID)
    if not Path(found).is_file():
        raise CliError(f"{found}: there is no such file", Exit.INVALID)
    return found


async def _survey(kubeconfig: str, namespace: str) -> "Survey":
    try:
        from landbridge_dispatch.executors.kubernetes.api import Api, ApiError
        from landbridge_dispatch.executors.kubernetes.surveying import survey
    except ImportError as error:
        raise CliError(f"reading a cluster needs landbridge[server]: {error}", Exit.INVALID) from error
    api = Api(kubeconfig, patience_s=_PATIENCE_S)
    try:
        await api.open()
        return await survey(api, namespace)
    except ApiError as error:
        raise CliError(f"the cluster of {kubeconfig} cannot be read: {error.message}") from error
    finally:
        await api.close()


def _head(draft: "Draft") -> list[str]:
    return ["# For a person to decide, before this is registered:", *(f"#   {told}" for told in draft.questions)]
