"""Lists of machines and pods, held against what can be read from the rows themselves."""

import random
from pathlib import Path

import pytest

from landbridge_ranking.whatif.simulate import Compared, simulate

from .conftest import Write, contract, document

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
MACHINES = "sn,cpu_milli,memory_mib,gpu,model"
MODELS = {"A": ("north", 2, 4), "B": ("south", 4, 2), "C": ("south", 1, 3)}  # environment, devices a machine, machines
COMMON = (document("Project", "p", defaultQueue="q"), document("Queue", "q"))


def write_machines(folder: Path) -> dict[str, object]:
    rows = [
        f"{model}-{number},32000,65536,{devices},{model}"
        for model, (_, devices, machines) in MODELS.items()
        for number in range(machines)
    ]
    (folder / "machines.csv").write_text("\n".join([MACHINES, *rows]) + "\n")
    return {"file": "machines.csv", "environments": {"north": {"models": ["A"]}, "south": {"models": ["B", "C"]}}}


def run(scenario: Write, folder: Path, rows: list[str]) -> Compared:
    return simulate(
        scenario(
            [*COMMON, contract("north"), contract("south")],
            rows,
            header=HEADER,
            trace={"format": "pods", "project": "p", "queue": "q"},
            machines=write_machines(folder),
        )
    )


def pod(name: str, *, cpu: int = 1000, gpus: int = 1, milli: int = 1000, spec: str = "", at: int = 0) -> str:
    return f"{name},{cpu},1024,{gpus},{milli},{spec},LS,Running,{at},{at + 100},{at}"


def test_shares_of_devices_are_counted_in_thousandths(scenario: Write, tmp_path: Path) -> None:
    """North has eight devices: sixteen halves fit at once, the seventeenth waits."""
    found = run(scenario, tmp_path, [pod(f"p{n}", milli=500, spec="A") for n in range(17)])
    [report] = found.reports.values()
    assert report.waits.count == 17
    assert sorted(report.waited)[-2:] == [0, 100]


def test_only_the_wanted_models_serve(scenario: Write, tmp_path: Path) -> None:
    rows = [pod("one", spec="C"), pod("two", spec="A|B"), pod("three", gpus=2, spec="A")]
    [report] = run(scenario, tmp_path, rows).reports.values()
    assert report.waits.count == 3
    assert report.cost == {}  # devices have no price here: unknown, not free
    assert report.unpriced == 3


def test_a_refusal_is_right_for_any_pod(scenario: Write, tmp_path: Path) -> None:
    """By hand: a pod is refused where it asks for more devices than any wanted machine has, or more than there is."""
    draw = random.Random(4)
    asked: dict[str, tuple[int, str]] = {}
    rows = []
    for number in range(400):
        gpus, spec = draw.randint(1, 6), draw.choice(["", "A", "B", "C"])
        name = f"pod-{number}"
        asked[name] = (gpus, spec)
        rows.append(pod(name, cpu=10, gpus=gpus, spec=spec, at=number * 1000))
    found = run(scenario, tmp_path, rows)
    refused = found.refusals["landbridge"]
    # A request for any device is served by the usual model of an environment.
    for name, (gpus, spec) in asked.items():
        models = [spec] if spec else ["A", "B"]
        fits = any(gpus <= MODELS[model][1] for model in models)
        assert (name in refused) is not fits, (name, gpus, spec)
        if not fits and spec:
            environment = MODELS[spec][0]
            assert any(reason.startswith(f"{environment}: count-exceeds-node") for reason in refused[name])


@pytest.mark.parametrize("spec", ["", "A", "B|C"])
def test_nothing_is_ever_exceeded_under_a_storm(scenario: Write, tmp_path: Path, spec: str) -> None:
    draw = random.Random(9)
    rows = [
        pod(f"p{n}", milli=draw.choice([100, 370, 1000]), spec=spec, at=draw.randint(0, 300), cpu=draw.randint(1, 9000))
        for n in range(600)
    ]
    [report] = run(scenario, tmp_path, rows).reports.values()
    assert not report.exceeded
    assert report.waits.count == 600
    assert report.waits.most > 0
