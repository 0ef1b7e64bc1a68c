"""`up`, `down`, `status`, `doctor`: Landbridge on this machine."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from landbridge.cli import output
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.instance import data_directory, find
from landbridge.cli.options import Context, Data, Format, Output
from landbridge.cli.output import Column


def add_to(app: typer.Typer) -> None:
    app.command()(up)
    app.command()(down)
    app.command()(status)
    app.command()(doctor)


def up(
    data: Data = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when it is ready; it goes on.")] = False,
    empty: Annotated[bool, typer.Option("--empty", help="Without the sample environments and projects.")] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", help="Port of the dashboard and API.", show_default=False)
    ] = 0,
    nats_port: Annotated[int, typer.Option(metavar="PORT", help="Port of NATS.", show_default=False)] = 0,
    postgres_port: Annotated[int, typer.Option(metavar="PORT", help="Port of Postgres.", show_default=False)] = 0,
    redis_port: Annotated[int, typer.Option(metavar="PORT", help="Port of Redis.", show_default=False)] = 0,
) -> None:
    """Start Landbridge on this machine.

    That is NATS, Postgres, Redis, every service, and the environments that have joined here. Ports are free ones, kept
    for the next start, unless given. Ctrl-C ends everything. LANDBRIDGE_POSTGRES_DSN, LANDBRIDGE_NATS_URL and
    LANDBRIDGE_REDIS_URL name servers of yours, which are then not started here.
    """
    from landbridge_embedded.layout import DataDirectory
    from landbridge_embedded.up import options_for, run_detached, run_here

    chosen = {"dashboard": port, "nats": nats_port, "postgres": postgres_port, "redis": redis_port}
    directory = DataDirectory(data_directory(data))
    options = options_for(directory, empty=empty, ports={name: value for name, value in chosen.items() if value})
    started = time.monotonic()
    print(f"Landbridge, data in {directory.root}", flush=True)

    def note(text: str) -> None:
        print(f"  {output.styled(f'{time.monotonic() - started:5.1f}s', 'dim')}  {text}", flush=True)

    def ready(state: dict[str, Any], link: str) -> None:
        if not detach:
            _say_ready(directory.root, state, link, "Stop with Ctrl-C.")
            return
        _say_ready(directory.root, state, link, f"Stop with `landbridge down{_option(directory.root)}`.")

    if detach:
        run_detached(options, note, ready)
    else:
        run_here(options, note, ready)
        print("stopped")


def _say_ready(root: Path, state: dict[str, Any], link: str, stop: str) -> None:
    environments = [name.removeprefix("dispatcher-") for name in state["services"] if name.startswith("dispatcher-")]
    print()
    output.fields(
        [
            ("Dashboard", state["urls"]["dashboard"]),
            ("Sign in", link),
            ("NATS", state["natsUrl"]),
            ("Environments", ", ".join(sorted(environments)) or "none yet: `landbridge env register FILE`"),
        ]
    )
    example = "examples/operations/3-sales-summary.yaml"
    if environments and Path(example).exists():
        print(f"\nTry: landbridge submit {example} --wait{_option(root)}")
    print(stop, flush=True)


def _option(root: Path) -> str:
    return "" if root == data_directory(None) else f" --data {root}"


def down(
    data: Data = None,
    keep_workloads: Annotated[
        bool, typer.Option("--keep-workloads", help="Leave running workloads alone; the next `up` takes them over.")
    ] = False,
) -> None:
    """Stop Landbridge on this machine and what it runs."""
    from landbridge_embedded.control import ask
    from landbridge_embedded.layout import DataDirectory
    from landbridge_embedded.process import lives

    directory = DataDirectory(data_directory(data))
    if not directory.is_held():
        print(f"nothing to stop: no Landbridge runs on {directory.root}")
        return
    pid = int(ask(directory, "down", keepWorkloads=keep_workloads)["pid"])
    started = time.monotonic()
    while directory.is_held() or lives(pid):
        if time.monotonic() - started > 120:
            raise CliError(f"still stopping after 2 minutes; see {directory.log_of('supervisor')}", Exit.TIMED_OUT)
        time.sleep(0.02)
    print(f"stopped ({time.monotonic() - started:.1f} s)")


def status(data: Data = None, context: Context = "", form: Output = Format.TABLE) -> None:
    """Show what runs and whether it is ready."""
    instance = find(data, context)
    if instance.data is None:
        _remote_status(instance.url, instance.token, form)
        return
    from landbridge_embedded.control import ask
    from landbridge_embedded.layout import DataDirectory

    state = ask(DataDirectory(instance.data), "status")
    if output.emit(state, form):
        return
    output.fields(
        [
            ("Data", state["data"]),
            ("Dashboard", state["urls"]["dashboard"]),
            ("NATS", state["natsUrl"]),
            ("Up for", output.age(state["startedAt"])),
            ("State", "ready" if state["ready"] else "starting"),
        ]
    )
    print()
    columns = [
        Column("PROCESS"),
        Column("STATE", styled=True),
        Column("PID", right=True),
        Column("PORT", right=True),
        Column("RESTARTS", right=True),
    ]
    output.table(columns, (_process_row(name, row) for name, row in state["services"].items()))


def _process_row(name: str, row: dict[str, Any]) -> list[Any]:
    word = row["state"] if row["state"] != "running" else "ready" if row["ready"] else "not ready"
    return [name, word, row["pid"] or "", row["port"] or "", row["restarts"] or ""]


def _remote_status(url: str, token: str, form: Format) -> None:
    import asyncio

    from landbridge.client.http_client import HttpClient

    async def ask() -> Any:
        async with HttpClient(url, token, retry_s=2.0) as client:
            return await client.read("/v1/overview")

    found = asyncio.run(ask())
    if not output.emit({"url": url, "overview": found}, form):
        output.fields([("Address", url), ("State", "ready")])


def doctor(data: Data = None, form: Output = Format.TABLE) -> None:
    """Check this machine; say what to do about findings."""
    from landbridge.cli.doctor import examine

    findings = examine(data_directory(data))
    rows = [finding.as_dict() for finding in findings]
    if not output.emit(rows, form):
        columns = [Column("CHECK"), Column("RESULT", styled=True), Column("FOUND", fold=True)]
        output.table(columns, ([row["check"], row["result"], row["found"]] for row in rows))
        for finding in findings:
            if finding.next_step:
                print(f"\n{finding.check}: {finding.next_step}")
    if any(finding.result == "failed" for finding in findings):
        raise typer.Exit(int(Exit.FAILED))
