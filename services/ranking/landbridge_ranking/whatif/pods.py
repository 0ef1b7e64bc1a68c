"""Lists of pods: rows of a real cluster's work, each made the operation that would have asked for the same."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from landbridge.schema import documents_v1 as schema
from landbridge_ranking.whatif.files import number, rows
from landbridge_ranking.whatif.machines import ANY_CLASS, SHARES, Machines, class_of
from landbridge_ranking.whatif.problems import ScenarioError

_COLUMNS: Final = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos"),
    *("creation_time", "deletion_time", "scheduled_time"),
)
_NOBODY: Final = "none-of-these"


@dataclass(frozen=True, slots=True)
class Pod:
    """One row: `effective` is the operation as intake would have accepted it, times are seconds."""

    name: str
    at_s: float
    duration_s: float
    effective: bytes


def read_pods(file: Path, trace: schema.Trace, machines: Machines | None) -> Iterator[Pod]:
    """Yield the operations of a list of pods. A pod that was never scheduled runs from its creation to its deletion."""
    known: dict[tuple[str, ...], bytes] = {}
    for line, row in rows(file, _COLUMNS):
        created, deleted = (number(file, line, row, name) for name in ("creation_time", "deletion_time"))
        began = number(file, line, row, "scheduled_time") if row["scheduled_time"] else created
        shape = tuple(row[name] for name in _COLUMNS[1:7])
        if shape not in known:
            known[shape] = json.dumps(_operation(file, line, row, trace, machines)).encode()
        yield Pod(row["name"], created, max(deleted - began, 0.0), known[shape])


def _operation(
    file: Path, line: int, row: dict[str, str], trace: schema.Trace, machines: Machines | None
) -> dict[str, Any]:
    def whole(column: str) -> int:
        return int(number(file, line, row, column))

    requests = {"cpu": f"{whole('cpu_milli')}m", "memory": f"{whole('memory_mib')}Mi"}
    resources: dict[str, Any] = {"requests": requests}
    spec: dict[str, Any] = {
        "type": "job",
        "command": ["run"],
        "queue": trace.queues.get(row["qos"], trace.queue or "default"),
        "resources": resources,
    }
    devices, share = whole("num_gpu"), whole("gpu_milli")
    if devices:
        wanted = [model for model in row["gpu_spec"].split("|") if model]
        name, allowed = _class(file, line, frozenset(wanted), machines)
        resources["accelerator"] = {"class": name, "count": devices * min(share, SHARES)}
        if allowed is not None:
            spec["constraints"] = {"environments": {"allow": list(allowed) or [_NOBODY]}}
    return {"metadata": {"project": trace.project or "default"}, "spec": spec}


def _class(
    file: Path, line: int, wanted: frozenset[str], machines: Machines | None
) -> tuple[str, tuple[str, ...] | None]:
    """Return the class to ask for, and the environments that hold one of the wanted models; None: any."""
    if machines is None:
        raise ScenarioError(f"{file}:{line}: gpu_spec: a list of pods with devices needs spec.machines; add it")
    unknown = sorted(model for model in wanted if not machines.knows(model))
    if unknown:
        raise ScenarioError(f"{file}:{line}: gpu_spec: no machine has the model {unknown[0]}; expected one of the list")
    if not wanted:
        return ANY_CLASS, None
    if len(wanted) == 1:
        return class_of(next(iter(wanted))), None
    return ANY_CLASS, machines.environments_for(wanted)
