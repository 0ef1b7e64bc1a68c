"""`env`: environments, their contracts and their dispatchers."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from landbridge.cli.decisions import decide
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.instance import data_directory, find
from landbridge.cli.leaf_site import write_leaf_site
from landbridge.cli.options import Context, Data, DryRun, EnvironmentName, Format, Output, Reason, Yes
from landbridge.cli.registering import register
from landbridge.cli.running import call
from landbridge.cli.verifying import verify

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

app = typer.Typer(help="Environments: register, pause, join.", no_args_is_help=True, rich_markup_mode=None)


app.command()(register)


@app.command()
def join(
    name: EnvironmentName,
    *,
    bindings: Annotated[
        Path | None,
        typer.Option("--bindings", metavar="FILE", help="What its connections are here.", show_default=False),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            "--into", metavar="DIR", help="Write credentials there, to carry them to the site.", show_default=False
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="End credentials that were given before.")] = False,
    leaf: Annotated[bool, typer.Option("--leaf", help="The site has its own NATS, which connects here.")] = False,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Print what to apply to the cluster that the environment is.")
    ] = False,
    image: Annotated[
        str,
        typer.Option("--image", metavar="REF", help="Of Landbridge, for the cluster, by digest.", show_default=False),
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NS", help="Where in the cluster the dispatcher runs.")
    ] = "landbridge",
    work_namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--work-namespace", metavar="NS", help="Where work runs. [default: landbridge-work]", show_default=False
        ),
    ] = None,
    data: Data = None,
    context: Context = "",
) -> None:
    """Make an environment's credentials and start its dispatcher.

    With an instance on this machine the dispatcher runs here, supervised. For a remote instance, or with --into, the
    files are written and the command to start it is printed. With --leaf these are the files of a NATS of the site's
    own, which keeps orders and reports while the link is cut, and of a dispatcher that speaks with that NATS alone.
    With --kubernetes the manifests of a dispatcher in the cluster are printed, credentials included.
    """
    text = _bindings(bindings)
    if kubernetes:
        _print_cluster(name, image, namespace, work_namespaces or ["landbridge-work"], text, replace, data, context)
        return
    if leaf:
        answer = call(data, context, lambda client: client.join(name, replace=replace, leaf=True))
        write_leaf_site(name, answer, text, into or Path(name))
        return
    instance = find(data, context)
    here = instance.data is not None and into is None
    if here and not text and not (data_directory(instance.data) / "environments" / name / "bindings.yaml").exists():
        raise CliError(f"environment {name}: expected what its connections are here: --bindings FILE", Exit.INVALID)
    answer = call(data, context, lambda client: client.join(name, replace=replace))
    if instance.data is None or into is not None:
        _write_site(name, answer, text, into or Path(name))
        return
    from landbridge_embedded import environments
    from landbridge_embedded.control import ask
    from landbridge_embedded.layout import DataDirectory

    directory = DataDirectory(instance.data)
    place = environments.write(directory, name, creds=answer["creds"], bindings=text)
    ask(directory, "start-environment", name=name, timeout_s=90)
    print(f"environment {name}: its dispatcher runs, data in {place.directory}")


def _print_cluster(
    name: str,
    image: str,
    namespace: str,
    work_namespaces: list[str],
    bindings: str,
    replace: bool,
    data: Data,
    context: Context,
) -> None:
    from landbridge.cli import kubernetes_site

    choices = kubernetes_site.checked(image, namespace, work_namespaces)
    answer = call(data, context, lambda client: client.join(name, replace=replace))
    print(kubernetes_site.text_of(name, answer, bindings, choices), end="")
    if told := kubernetes_site.advice(bindings, choices):
        print(told, file=sys.stderr)


def _bindings(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text()
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", Exit.INVALID) from error


def _write_site(name: str, answer: dict[str, Any], bindings: str, place: Path) -> None:
    from landbridge.cli.files import write_private

    write_private(place / "dispatcher.creds", answer["creds"])
    if bindings:
        write_private(place / "bindings.yaml", bindings)
    settings = {
        "LANDBRIDGE_ENVIRONMENT": name,
        "LANDBRIDGE_NATS_URL": str(answer.get("natsUrl") or "nats://ADDRESS:4222"),
        "LANDBRIDGE_NATS_CREDS": "dispatcher.creds",
        "LANDBRIDGE_DATA_DIR": ".",
        "LANDBRIDGE_BINDINGS": "bindings.yaml",
    }
    write_private(place / "dispatcher.env", "".join(f"{key}={value}\n" for key, value in settings.items()))
    print(f"written to {place}: dispatcher.creds, dispatcher.env{', bindings.yaml' if bindings else ''}")
    print(f"Start it at the site: cd {place} && set -a && . ./dispatcher.env && landbridge-dispatcher")


_Class = Annotated[
    str, typer.Option("--class", metavar="C", help="Only this capability class of it.", show_default=False)
]
_Nodes = Annotated[
    str,
    typer.Option(
        "--node-selector", metavar="K=V", help="Only the classes on nodes with this label.", show_default=False
    ),
]


app.command()(verify)


@app.command()
def pause(
    name: EnvironmentName,
    capability_class: _Class = "",
    node_selector: _Nodes = "",
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Start nothing new in an environment, or in a part of it; what runs goes on.

    A part is a capability class, or what its contract offers on nodes with a label (classes.<name>.via.nodeSelector).
    Pausing a part is shown first, and needs a reason; work for it waits and says who paused it and why.
    """
    _steer("pause", name, _part(capability_class, node_selector), reason, dry_run, yes, data, context, form)


@app.command()
def resume(
    name: EnvironmentName,
    capability_class: _Class = "",
    node_selector: _Nodes = "",
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Let an environment, or the part of it that was paused, take work again.

    Without a part, what was paused as a part stays so.
    """
    _steer("resume", name, _part(capability_class, node_selector), reason, dry_run, yes, data, context, form)


@app.command()
def drain(
    name: EnvironmentName,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Start nothing new in an environment and move what can be moved."""
    _steer("drain", name, {}, reason, dry_run, yes, data, context, form)


_TOLD = {
    "pause": "asked to start nothing new",
    "resume": "asked to take work again",
    "drain": "asked to start nothing new and to move what can be moved",
}


def _part(capability_class: str, node_selector: str) -> dict[str, str]:
    if capability_class and node_selector:
        raise CliError("expected --class or --node-selector, found both", Exit.INVALID)
    if capability_class:
        return {"class": capability_class}
    return {"nodeSelector": node_selector} if node_selector else {}


def _steer(
    action: str,
    name: str,
    part: dict[str, str],
    reason: str,
    dry_run: bool,
    yes: bool,
    data: Data,
    context: Context,
    form: Format,
) -> None:
    if not (part or dry_run):
        call(data, context, lambda client: client.control(name, action, reason))
        print(f"environment {name}: {_TOLD[action]}")
        return
    path = f"/v1/environments/{quote(name, safe='')}/control/{action}"

    async def run(client: "HttpClient") -> None:
        await decide(client, path, {**part, "reason": reason}, dry_run=dry_run, yes=yes, form=form)

    call(data, context, run)
