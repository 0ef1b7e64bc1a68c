"""Queues on a whole instance with real processes: urgent work takes the place of idle work, which goes on afterwards.

The instance is this file's own; its tests run in their order.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fixtures.instance import Instance, running
from support.wait import wait_until

from .test_operators import SEALING, operation, runs_in, submit

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("queues")]

QUEUE = {
    "apiVersion": "landbridge/v1",
    "kind": "Queue",
    "metadata": {"name": "shared"},
    "spec": {
        "concurrency": 1,
        "preemption": "lower-priority",
        "priorityClasses": {"urgent": 90, "idle": -10},
    },
}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    folder = tmp_path_factory.mktemp("queues")
    (folder / "queue.yaml").write_text(yaml.safe_dump(QUEUE))
    with running(folder / "data") as found:
        found.run("apply", str(folder / "queue.yaml"))
        yield found


def phase(machine: Instance, name: str) -> str:
    return str(machine.json("get", "operation", name)["phase"])


def work(name: str, command: list[str], class_: str, **more: Any) -> dict[str, Any]:
    return operation(name, command, queue="shared", priority=class_, **more)


async def test_urgent_work_takes_the_place_of_idle_work_which_goes_on_from_its_checkpoint(
    machine: Instance, tmp_path: Path
) -> None:
    checkpoints = {"connection": "shared-checkpoints", "every": "10m"}
    idle = submit(machine, work("idle", ["python3", "-c", SEALING], "idle", checkpoints=checkpoints), tmp_path)
    await runs_in(machine, idle)
    await wait_until(lambda: "began at 0" in machine.run("logs", idle).stdout, "it counts")
    urgent = submit(machine, work("urgent", ["sleep", "3"], "urgent"), tmp_path)
    await wait_until(lambda: phase(machine, urgent) == "completed", "the urgent one has run", timeout_s=90)
    await runs_in(machine, idle, attempt=2)
    await wait_until(lambda: "began at " in machine.run("logs", idle).stdout, "it counts again")
    assert int(machine.run("logs", idle).stdout.split("began at ")[1].split()[0]) > 0
    assert "preempted" in machine.run("events", idle).stdout
    machine.run("cancel", idle, "--wait", "--timeout", "60s")


async def test_a_queue_is_paused_and_what_waits_goes_on_in_another_one(machine: Instance, tmp_path: Path) -> None:
    preview = machine.run("queue", "pause", "shared", "--dry-run").stdout
    assert "Nothing leaves queue shared" in preview
    machine.run("queue", "pause", "shared", "--reason", "disk swap", "--yes")
    name = submit(machine, work("waiting", ["true"], "idle"), tmp_path)
    waits = "queue shared is paused"
    await wait_until(lambda: waits in machine.run("explain", name).stdout, "it waits for the queue", timeout_s=30)
    machine.run("queue", "prioritise", name, "--class", "urgent", "--reason", "asked for", "--yes")
    machine.run("queue", "move", name, "--to", "default", "--reason", "cannot wait", "--yes")
    await wait_until(lambda: phase(machine, name) == "completed", "it has run in the other queue", timeout_s=60)
    told = machine.run("events", name).stdout
    assert "queue-changed: admin has it wait in queue default: cannot wait" in told
    machine.run("queue", "resume", "shared", "--reason", "swapped", "--yes")
