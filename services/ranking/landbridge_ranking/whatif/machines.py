"""Lists of machines: what an environment of a scenario has, added up by model.

Pods of such lists ask for thousandths of a device, so capacity is counted in thousandths: a class of devices is named
`gpu-<model>`, and one of its units is a thousandth of a device.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from landbridge.schema import documents_v1 as schema
from landbridge_ranking.whatif.files import number, rows
from landbridge_ranking.whatif.problems import ScenarioError

ANY_CLASS: Final = "gpu"
SHARES: Final = 1000  # units of a device
_COLUMNS: Final = ("cpu_milli", "memory_mib", "gpu", "model")


def class_of(model: str) -> str:
    """Return the name of a model's class."""
    return f"gpu-{model.lower()}"


@dataclass
class _Sum:
    """What the machines of one model have together, and the most that one of them has."""

    machines: int = 0
    devices: int = 0
    most: int = 0
    cpu_milli: int = 0
    memory_mib: int = 0


@dataclass(frozen=True)
class Machines:
    """Machines by environment and model. `models` names the models of each environment, the usual one first."""

    models: Mapping[str, tuple[str, ...]]
    sums: Mapping[str, Mapping[str, _Sum]] = field(default_factory=dict)

    def environments_for(self, wanted: frozenset[str]) -> tuple[str, ...]:
        """Return the environments whose usual model is among those that are wanted."""
        return tuple(name for name, models in sorted(self.models.items()) if models[0] in wanted)

    def knows(self, model: str) -> bool:
        return any(model in models for models in self.models.values())

    def classes(self, environment: str) -> dict[str, dict[str, Any]]:
        """Return the classes of an environment's contract: one of processors, one for each model of device."""
        found: dict[str, dict[str, Any]] = {}
        sums = self.sums.get(environment, {})
        for place, model in enumerate(self.models[environment]):
            each = sums.get(model)
            if each is not None and each.devices:
                found[class_of(model)] = {
                    "product": model,
                    "count": each.devices * SHARES,
                    "perNode": each.most * SHARES,
                    # All serve a request for any device; the usual model comes first because its class is the smallest.
                    "memory": f"{place + 1}Gi",
                    "precision": ["fp32"],
                }
        cpu, memory = sum(s.cpu_milli for s in sums.values()), sum(s.memory_mib for s in sums.values())
        found["cpu-general"] = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
        return found


def read_machines(folder: Path, listed: schema.MachineList) -> Machines:
    """Read a list of machines. ScenarioError with the place of what is wrong."""
    file = folder / listed.file
    models = {name: tuple(each.models) for name, each in listed.environments.items()}
    home = {model: name for name, each in models.items() for model in each}
    sums: dict[str, dict[str, _Sum]] = defaultdict(lambda: defaultdict(_Sum))
    for line, row in rows(file, _COLUMNS):
        model = row["model"]
        if model not in home:
            known = ", ".join(sorted(home))
            raise ScenarioError(
                f"{file}:{line}: model: expected one of those in spec.machines.environments ({known}), found {model!r}"
            )
        each = sums[home[model]][model]
        devices = int(number(file, line, row, "gpu"))
        each.machines += 1
        each.devices += devices
        each.most = max(each.most, devices)
        each.cpu_milli += int(number(file, line, row, "cpu_milli"))
        each.memory_mib += int(number(file, line, row, "memory_mib"))
    return Machines(models, {name: dict(each) for name, each in sums.items()})


ANY_DOCUMENT: Final[dict[str, Any]] = {
    "apiVersion": "landbridge/v1",
    "kind": "CapabilityClass",
    "metadata": {"name": ANY_CLASS, "version": 1},
    "spec": {"kind": "accelerator", "attributes": {"precision": ["fp32"]}},
}
