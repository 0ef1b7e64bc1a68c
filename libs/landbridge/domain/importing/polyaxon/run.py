"""The run of a component: a container, its pod, what is fetched first, and how many of them."""

from typing import Any, Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.containers import take_container
from landbridge.domain.importing.pods import take_pod, take_volumes
from landbridge.domain.importing.polyaxon.fetching import take_init
from landbridge.domain.importing.polyaxon.parameters import Values
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.wishes import PORT, take_annotations, take_labels

_GANGS: Final = {
    "pytorchjob": ("master", "worker"),
    "tfjob": ("chief", "ps", "worker", "evaluator"),
    "mpijob": ("launcher", "worker"),
    "paddlejob": ("master", "worker"),
    "xgbjob": ("master", "worker"),
}
_KIND: Final = Left(
    Why.NO_COUNTERPART, "a cluster of its own or several runs; an operation is one", "submit what it is made of"
)
_FIELDS: Final[dict[str, Left]] = {
    "sidecars": Left(Why.NO_COUNTERPART, "an operation has one container", "do its work in the command"),
    "rewritePath": Left(Why.NOT_NEEDED, "the environment's own gateway answers callers"),
    "isExternal": Left(Why.DECISION, "whether callers from outside may come in", "name a control in spec.constraints"),
    "cleanPodPolicy": Left(Why.NOT_NEEDED, "what has ended is kept until the centre has acknowledged it"),
    "schedulingPolicy": Left(Why.NOT_NEEDED, "replicas of a gang start together or not at all"),
    "slotsPerWorker": Left(Why.DECISION, "processes of each replica", "start so many in the command"),
    "elasticPolicy": Left(Why.NO_COUNTERPART, "a gang has a fixed number of replicas"),
    "nProcPerNode": Left(Why.DECISION, "processes of each replica", "start so many in the command"),
}


def take_run(sheet: Sheet, base: Path, values: Values, kind: str) -> None:
    """Map a run, or the patch of one."""
    if kind in _GANGS:
        _gang(sheet, base, values, kind)
    elif kind not in ("job", "service", "runPatch"):
        sheet.leave_rest(base, _KIND)
    else:
        if sheet.has(*base, "kind"):
            sheet.put((*base, "kind"), ("spec", "type"), kind)
        _replica(sheet, base, values)
        if sheet.has(*base, "ports"):
            _ports(sheet, (*base, "ports"), service=kind == "service")
        count = sheet.at(*base, "replicas")
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            sheet.put((*base, "replicas"), ("spec", "replicas"), count)
    sheet.leave_known(base, _FIELDS)


def _replica(sheet: Sheet, base: Path, values: Values) -> None:
    _fill(sheet, base, values)
    environment: Path = (*base, "environment")
    take_labels(sheet, (*environment, "labels"))
    take_annotations(sheet, (*environment, "annotations"))
    take_pod(sheet, environment)
    take_init(sheet, (*base, "init"))
    container: Path = (*base, "container")
    take_volumes(sheet, (*base, "volumes"), (*container, "volumeMounts"))
    take_container(sheet, container)
    for index, name in enumerate(sheet.list(*base, "connections")):
        path: Path = (*base, "connections", index)
        known = sheet.named(str(name)) or str(name)
        left = Left(
            Why.DECISION,
            "granted for reading and writing; an operation says which it does",
            f"add an input or output with connection: {known}",
        )
        sheet.leave(path, left)


def _fill(sheet: Sheet, base: Path, values: Values) -> None:
    """Put values into the texts of the container, before they are mapped; what nothing fills is told."""
    container: Any = sheet.at(*base, "container")
    if not isinstance(container, dict):
        return
    for field in ("image", "command", "args", "env"):
        path: Path = (*base, "container", field)
        target: Path = ("spec", field) if field != "image" else ("spec", "image", "name")
        if field in container:
            container[field] = _filled(sheet, container[field], path, target, values)


def _filled(sheet: Sheet, item: Any, path: Path, target: Path, values: Values) -> Any:
    if isinstance(item, str):
        text, unfilled = values.fill(item, target)
        if unfilled:
            reason = f"Polyaxon fills in {', '.join(sorted(set(unfilled)))}; nothing does here"
            advice = "use $LANDBRIDGE_INPUT_<NAME>, _OUTPUT_<NAME>, or write the value"
            sheet.leave(path, Left(Why.DECISION, reason, advice), found=item)
        return text
    if isinstance(item, list):
        return [_filled(sheet, each, (*path, index), target, values) for index, each in enumerate(item)]
    if isinstance(item, dict):
        return {key: _filled(sheet, each, (*path, key), target, values) for key, each in item.items()}
    return item


def _ports(sheet: Sheet, base: Path, *, service: bool) -> None:
    for index, port in enumerate(sheet.list(*base)):
        if service and isinstance(port, int):
            name = "http" if not index else f"port-{port}"
            sheet.put((*base, index), ("spec", "ports", name, "port"), port)
        else:
            sheet.leave((*base, index), PORT)


def _gang(sheet: Sheet, base: Path, values: Values, kind: str) -> None:
    """Map a distributed run whose roles run the same; roles that do not are told."""
    roles = [role for role in _GANGS[kind] if sheet.map(*base, role)]
    sheet.put((*base, "kind"), ("spec", "type"), "distributed-job", "rank variables say which replica is which")
    if not roles:
        return
    main = "worker" if "worker" in roles else roles[0]
    container = sheet.at(*base, main, "container")
    alike = [role for role in roles if sheet.at(*base, role, "container") == container]
    total = 0
    for role in alike:
        count = sheet.at(*base, role, "replicas")
        total += count if isinstance(count, int) and not isinstance(count, bool) else 1
    sheet.drafted("spec")["replicas"] = total
    for role in alike:
        if sheet.has(*base, role, "replicas"):
            note = f"{' and '.join(alike)} run the same: {total} replicas"
            sheet.note((*base, role, "replicas"), ("spec", "replicas"), note)
    _replica(sheet, (*base, main), values)
    for role in roles:
        if role in alike:
            _same_role(sheet, (*base, role), role, main)
        else:
            reason = f"{role} runs something else than {main}; replicas of one operation are alike"
            sheet.leave_rest(
                (*base, role), Left(Why.NO_COUNTERPART, reason, "choose by LANDBRIDGE_RANK in the command")
            )


def _same_role(sheet: Sheet, base: Path, role: str, main: str) -> None:
    """Account for a role that runs the same as the main one."""
    if role != main:
        for field in sheet.map(*base):
            if sheet.has(*base, field):
                sheet.note((*base, field), ("spec",), f"the same as {main}")
