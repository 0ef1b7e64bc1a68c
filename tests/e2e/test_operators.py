"""Decisions of people on a whole instance: a move with its checkpoint, a cut told in words, an environment off.

The instance is this file's own, with short leases; its tests run in their order.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.instance import Instance, running
from support.wait import wait_until

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("operators")]

SEALING = """
import os, pathlib, signal, sys, time
from landbridge.client import workload
source = os.environ.get("LANDBRIDGE_RESUME_FROM", "")
count = int((pathlib.Path(source) / "count").read_text()) if source else 0
print("began at", count, flush=True)
signal.signal(signal.SIGURG, signal.SIG_IGN)
for _ in range(3000):
    count += 1
    time.sleep(0.1)
    if workload.checkpoint_requested():
        part = pathlib.Path(os.environ["LANDBRIDGE_CHECKPOINT_DIR"]) / "count"
        part.write_text(str(count))
        workload.seal_checkpoint([part])
        time.sleep(600)
"""


def operation(name: str, command: list[str], *, policy: str = "continue", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "landbridge/v1",
        "kind": "Operation",
        "metadata": {"name": name, "project": "analytics"},
        "spec": {
            "type": "job",
            "command": command,
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            "lifecycle": {
                "expectedDuration": "1m",
                "timeout": "20m",
                "stopGrace": "5s",
                "disconnection": {"policy": policy},
            },
            **more,
        },
    }


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    short = {"LANDBRIDGE_LEASE_TTL_SECONDS": "6", "LANDBRIDGE_LEASE_RENEWAL_SECONDS": "1.5"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in short.items():
            patch.setenv(name, value)
        with running(tmp_path_factory.mktemp("operators") / "data") as found:
            yield found


def submit(machine: Instance, document: dict[str, Any], folder: Path) -> str:
    import yaml

    path = folder / f"{document['metadata']['name']}.yaml"
    path.write_text(yaml.safe_dump(document))
    submitted = machine.json("submit", str(path))
    return str(submitted["operation"] if isinstance(submitted, dict) else submitted[0]["operation"])


async def runs_in(machine: Instance, name: str, attempt: int = 1) -> str:
    """Wait until an attempt runs; return where."""
    row: dict[str, Any] = {}

    def there() -> bool:
        row.update(machine.json("get", "operation", name))
        return bool(row["phase"] == "running" and row["attempt"] >= attempt)

    try:
        await wait_until(there, f"{name} runs", timeout_s=60)
    except AssertionError as error:
        raise AssertionError(f"{error}: {row.get('phase')} {row.get('reason')} {row.get('message')}") from None
    return str(row["environment"])


def other(environment: str) -> str:
    return "cloud-b" if environment == "onprem-a" else "onprem-a"


async def test_a_move_seals_a_checkpoint_and_goes_on_from_it(machine: Instance, tmp_path: Path) -> None:
    document = operation(
        "counting", ["python3", "-c", SEALING], checkpoints={"connection": "shared-checkpoints", "every": "10m"}
    )
    name = submit(machine, document, tmp_path)
    here = await runs_in(machine, name)
    await wait_until(lambda: "began at 0" in machine.run("logs", name).stdout, "it counts")
    preview = machine.run("move", name, "--to", other(here), "--dry-run").stdout
    machine.run("move", name, "--to", other(here), "--reason", "the other is idle", "--yes")

    assert f"asked to stop in {here}" in preview
    assert await runs_in(machine, name, attempt=2) == other(here)
    await wait_until(lambda: "began at " in machine.run("logs", name).stdout, "it counts again")
    began = int(machine.run("logs", name).stdout.split("began at ")[1].split()[0])
    assert began > 0
    told = machine.run("events", name).stdout
    assert "move-requested: admin moves it" in told
    machine.run("cancel", name, "--wait", "--timeout", "60s")


async def test_a_cut_is_told_and_an_environment_declared_off_stops_its_old_copy_on_return(
    machine: Instance, tmp_path: Path
) -> None:
    name = submit(machine, operation("steady", ["sleep", "900"]), tmp_path)
    here = await runs_in(machine, name)
    pid = int(machine.state["services"][f"dispatcher-{here}"]["pid"])
    os.kill(pid, signal.SIGSTOP)
    try:
        await wait_until(
            lambda: machine.json("get", "environment", here)["link"]["state"] == "lost", "it is lost", timeout_s=60
        )
        await wait_until(
            lambda: "control-lost" in str(machine.json("get", "operation", name)["conditions"]), "control is lost"
        )
        environment, shown = (
            machine.run("get", "environment", here).stdout,
            machine.run("get", "operation", name).stdout,
        )
        refused = machine.run("release", name, check=2).stderr
        preview = machine.run("env", "declare-dead", here, "--dry-run").stdout
        machine.run("env", "declare-dead", here, "--reason", "switched off", "--yes")
        moved_to = await runs_in(machine, name, attempt=2)
        before = machine.json("env", "reconciliation", here)["term"]
    finally:
        # It returns as a new process: commands then wait until the centre has compared what the environment holds, so
        # that the old copy is surely in it. One that went on could be told to stop it first.
        os.kill(pid, signal.SIGKILL)

    assert "Not heard since " in environment
    assert "declared continue: it runs on" in environment
    assert "Unknown since " in shown
    assert "--override" in refused
    assert "judged and placed again" in preview
    assert moved_to == other(here)

    await wait_until(
        lambda: "superseded" in str(machine.json("events", name)), "the old copy is told as a record", timeout_s=60
    )
    latest = machine.json("env", "reconciliation", here)
    since = [found for found in (latest, *latest["earlier"]) if found["term"] > before]
    assert since[-1]["slots"], "the first comparison after the return shows the old copy"
    assert since[-1]["settledOrStopped"] == since[-1]["slots"]
    assert not any(found["adopted"] for found in since)
    printed = machine.run("env", "reconciliation", here).stdout
    assert f"term {latest['term']}" in printed
    assert "EARLIER" in printed
    assert machine.json("get", "operation", name)["environment"] == moved_to
    machine.run("cancel", name, "--wait", "--timeout", "60s")
