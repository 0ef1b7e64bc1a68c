"""`make demo`: two environments, six real operations, what ran where and why.

Starts Landbridge in a directory of its own, submits the examples, shows them as they go on and ends with a table. With
`--once` it stops everything and returns 0 only if every outcome was the expected one.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table

from landbridge.client import HttpClient, LandbridgeError, Operation
from landbridge_embedded.demo_expectations import EXPECTED, Expectation, outcome_of, why
from landbridge_embedded.layout import DataDirectory
from landbridge_embedded.sample import sample_root
from landbridge_embedded.services import admin_token

DIRECTORY = ".demo"
_DEADLINE_S = 120.0
_POLL_S = 0.25
_STYLES = {"completed": "green", "failed": "red", "running": "cyan", "retrying": "yellow", "unplaceable": "magenta"}


@dataclass
class Followed:
    """One operation of the demo and what is known of it."""

    expected: Expectation
    file: Path
    id: str = ""
    operation: Operation | None = None
    explanation: dict[str, Any] = field(default_factory=dict)

    @property
    def settled(self) -> bool:
        return self.operation is not None and (self.operation.finished or self.operation.unplaceable)

    @property
    def as_expected(self) -> bool:
        return self.operation is not None and self.expected.met_by(self.operation)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="stop at the end; exit code 0 only if all went as expected")
    parser.add_argument("--data", default=DIRECTORY, help="data directory, made anew (default %(default)s)")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    data = DataDirectory(Path(options.data).resolve())
    signal.signal(signal.SIGTERM, lambda *_: _interrupt())
    try:
        _start_afresh(data, console)
        good = asyncio.run(_show(data, console))
        if not options.once:
            _stay(console)
        return 0 if good else 1
    except KeyboardInterrupt:
        return 0 if not options.once else 130
    except (LandbridgeError, subprocess.CalledProcessError) as error:
        console.print(f"[red]The demo could not go on:[/] {error}", soft_wrap=True)
        return 1
    finally:
        _stop(data, console)


def _interrupt() -> None:
    raise KeyboardInterrupt


def _landbridge(data: DataDirectory, *words: str) -> list[str]:
    return [sys.executable, "-m", "landbridge.cli.main", *words, "--data", str(data.root)]


def _dashboard(data: DataDirectory) -> str:
    return str(json.loads(data.state.read_text())["urls"]["dashboard"])


def _start_afresh(data: DataDirectory, console: Console) -> None:
    if data.is_held():
        subprocess.run(_landbridge(data, "down"), check=True)  # noqa: S603 - the command is ours
    marker = data.root / "demo"
    if data.root.exists() and not marker.exists() and any(data.root.iterdir()):
        raise LandbridgeError(f"{data.root} holds something else than a demo; name another directory with --data")
    shutil.rmtree(data.root, ignore_errors=True)
    data.root.mkdir(mode=0o700, parents=True)
    marker.touch()
    console.rule("[bold]Landbridge demo")
    subprocess.run(_landbridge(data, "up", "--detach"), check=True, env=os.environ)  # noqa: S603 - the command is ours


async def _show(data: DataDirectory, console: Console) -> bool:
    """Submit, follow, print the result; tell whether everything went as expected."""
    root = sample_root()
    followed = [Followed(each, root / "operations" / each.file) for each in EXPECTED]
    async with HttpClient(_dashboard(data), admin_token(data)) as client:
        for each in followed:
            each.id = (await client.submit(each.file)).id
        console.print(f"\n{len(followed)} operations submitted and acknowledged.\n")
        await _follow(client, followed, console)
        for each in followed:
            with contextlib.suppress(LandbridgeError):
                each.explanation = await client.explain(each.id)
    console.print()
    console.print(_result(followed))
    good = all(each.as_expected for each in followed)
    for each in followed:
        if not each.as_expected:
            found = outcome_of(each.operation) if each.operation else "nothing"
            console.print(f"[red]{each.expected.name}: expected {each.expected}, found {found}[/]")
    if good:
        console.print("[green]Every outcome was the expected one.[/]")
    _say_where(data, console, followed)
    return good


async def _follow(client: HttpClient, followed: list[Followed], console: Console) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    with Live(_progress(followed), console=console, refresh_per_second=8, transient=True) as live:
        while not all(each.settled for each in followed) and time.monotonic() < deadline:
            for each in (item for item in followed if not item.settled):
                with contextlib.suppress(LandbridgeError):
                    each.operation = await client.get(each.id)
            live.update(_progress(followed))
            await asyncio.sleep(_POLL_S)


def _progress(followed: list[Followed]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("operation", "phase", "environment", "attempt"):
        table.add_column(title)
    for each in followed:
        found = each.operation
        phase = outcome_of(found) if found else "accepted"
        table.add_row(
            each.expected.name,
            f"[{_STYLES.get(phase, 'default')}]{phase}",
            (found.environment if found else "") or "-",
            str(found.attempt or "-") if found else "-",
        )
    return table


def _result(followed: list[Followed]) -> Table:
    table = Table(title="What ran where, and why", title_justify="left", box=box.SIMPLE_HEAD, leading=1, pad_edge=False)
    for title in ("operation", "outcome", "environment"):
        table.add_column(title, no_wrap=True)
    table.add_column("tries", justify="right")
    table.add_column("why there, why not elsewhere", ratio=1)
    for each in followed:
        outcome = outcome_of(each.operation) if each.operation else "unknown"
        found = each.operation
        table.add_row(
            each.expected.name,
            f"[{_STYLES.get(outcome, 'default')}]{outcome}",
            (found.environment if found else "") or "-",
            str(found.attempt or "-") if found else "-",
            why(each.explanation),
        )
    return table


def _say_where(data: DataDirectory, console: Console, followed: list[Followed]) -> None:
    console.print(f"\nDashboard   {_dashboard(data)}/sign-in?token={admin_token(data)}", soft_wrap=True)
    console.print(f"Try         landbridge explain {followed[0].id[:8]} --data {data.root.name}", soft_wrap=True)


def _stay(console: Console) -> None:
    console.print("\nIt stays up until Ctrl-C.")
    while True:
        time.sleep(3600)


def _stop(data: DataDirectory, console: Console) -> None:
    """End everything, whatever else is interrupted meanwhile."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if data.is_held():
        console.print("Stopping.")
        subprocess.run(_landbridge(data, "down"), check=False, stdout=subprocess.DEVNULL)  # noqa: S603 - ours


if __name__ == "__main__":
    sys.exit(main())
