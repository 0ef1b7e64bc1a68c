"""Gangs on a whole instance with real processes in two environments: they start together, and end as declared.

The instance is this file's own; its tests run in their order.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.instance import Instance, running
from support.wait import wait_until

from .test_operators import operation, runs_in, submit

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("gangs")]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with running(tmp_path_factory.mktemp("gangs") / "data") as found:
        yield found


def member(name: str, environment: str, command: list[str], **gang: Any) -> dict[str, Any]:
    declared = {"name": "exchange", "members": 2, "spanEnvironments": True, **gang}
    constraints = {"environments": {"allow": [environment]}}
    return operation(name, command, gang=declared, constraints=constraints)


def phase(machine: Instance, name: str) -> str:
    return str(machine.json("get", "operation", name)["phase"])


async def test_two_members_start_together_in_two_environments_and_one_that_fails_ends_the_other(
    machine: Instance, tmp_path: Path
) -> None:
    north = submit(machine, member("north", "onprem-a", ["sleep", "600"]), tmp_path)
    waits = "gang exchange has 1 of 2 members waiting here"
    await wait_until(lambda: waits in machine.run("explain", north).stdout, "it waits for the other", timeout_s=60)
    assert phase(machine, north) == "queued"
    otherwise = member("south", "cloud-b", ["true"], members=3)
    refused = machine.run("submit", str(written(otherwise, tmp_path)), check=None)
    assert refused.returncode != 0
    assert f"gang exchange was declared with 2 by operation {north}, found 3" in refused.stdout + refused.stderr
    south = submit(machine, member("south", "cloud-b", ["sh", "-c", "sleep 25; exit 3"]), tmp_path)
    assert await runs_in(machine, north) == "onprem-a"
    assert await runs_in(machine, south) == "cloud-b"
    told = machine.run("events", north).stdout
    assert "all 2 members of gang exchange are claimed" in told
    await wait_until(lambda: phase(machine, south) == "failed", "one fails", timeout_s=90)
    await wait_until(lambda: phase(machine, north) == "cancelled", "the other one is ended", timeout_s=60)
    assert "gang-member-lost" in machine.run("events", north).stdout


async def test_the_example_is_planned_and_runs(machine: Instance) -> None:
    example = str(ROOT / "examples" / "gangs" / "two-sites.yaml")
    plan = machine.run("plan", example).stdout
    assert "members waiting here" not in plan, plan  # both are in the file, and planned together
    assert plan.count("it would be placed at once") == 4, plan  # in the overview and in the part of each
    assert {"onprem-a *", "cloud-b *"} == {found for found in ("onprem-a *", "cloud-b *") if found in plan}, plan
    submitted = machine.json("submit", example)
    names = [item["operation"] for item in submitted]
    for name in names:
        await wait_until(lambda n=name: phase(machine, n) == "completed", "it has run", timeout_s=90)  # type: ignore[misc]


def written(document: dict[str, Any], folder: Path) -> Path:
    import yaml

    path = folder / "otherwise.yaml"
    path.write_text(yaml.safe_dump(document))
    return path
