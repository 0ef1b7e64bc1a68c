"""A Kubernetes container, as Jobs and Polyaxonfiles have it."""

from typing import Final

from landbridge.domain import units
from landbridge.domain.documents.places import Path
from landbridge.domain.importing.hardware import ACCELERATOR, take_count
from landbridge.domain.importing.images import take_image
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.variables import SECRET, take_variable

_PROBE: Final = Left(Why.NO_COUNTERPART, "a probe of the container; a service states route.healthPath instead", "")
_SECURITY: Final = Left(
    Why.DECISION,
    "the environment decides as whom and how confined work runs",
    "name a role in spec.identity, and controls in spec.constraints.controls",
)
_FROM: Final = Left(
    Why.NAME, "variables from an object of the cluster", "write them in spec.env, or name a connection that has them"
)
_FIELD: Final = Left(
    Why.NO_COUNTERPART, "from the pod's own fields", "use LANDBRIDGE_OPERATION, _ATTEMPT or rank variables"
)
CONTAINER: Final[dict[str, Left]] = {
    "name": Left(Why.NOT_NEEDED, "an operation has one container"),
    "imagePullPolicy": Left(Why.NOT_NEEDED, "a digest names one image for ever"),
    "workingDir": Left(
        Why.NO_COUNTERPART, "the workload starts in the image's or its own directory", "begin the command with cd"
    ),
    "securityContext": _SECURITY,
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "lifecycle": Left(Why.NO_COUNTERPART, "hooks of the container", "do it in the command; SIGTERM comes first"),
    "terminationMessagePath": Left(Why.NOT_NEEDED, "the end of the log is kept"),
    "terminationMessagePolicy": Left(Why.NOT_NEEDED, "the end of the log is kept"),
    "tty": Left(Why.NOT_NEEDED, "no terminal is attached"),
    "stdin": Left(Why.NOT_NEEDED, "no terminal is attached"),
    "stdinOnce": Left(Why.NOT_NEEDED, "no terminal is attached"),
    "volumeDevices": Left(Why.NO_COUNTERPART, "raw devices of a node", "name a connection under inputs or outputs"),
    "resizePolicy": Left(Why.NO_COUNTERPART, "resources of running work do not change"),
    "restartPolicy": Left(Why.NOT_NEEDED, "spec.lifecycle.retries says what follows a failure"),
}
_AMOUNTS: Final = ("cpu", "memory", "ephemeral-storage")


def take_container(sheet: Sheet, base: Path) -> None:
    """Map image, command, variables and resources of the main container; the rest of it is accounted for."""
    if sheet.text(*base, "image"):
        take_image(sheet, (*base, "image"), sheet.text(*base, "image"))
    for name in ("command", "args"):
        found = sheet.at(*base, name)
        if isinstance(found, list) and found:
            sheet.put((*base, name), ("spec", name), [str(word) for word in found])
        elif isinstance(found, str):
            sheet.put((*base, name), ("spec", name), [found], "one word, as it is written")
    _variables(sheet, base)
    _resources(sheet, (*base, "resources"))
    sheet.leave_known(base, CONTAINER)


def _variables(sheet: Sheet, base: Path) -> None:
    entries = sheet.at(*base, "env")
    if isinstance(entries, dict):
        for name in entries:
            take_variable(sheet, (*base, "env", name), str(name), entries[name])
    for index, entry in enumerate(sheet.list(*base, "env")):
        path = (*base, "env", index)
        name = sheet.text(*path, "name")
        if not name:
            continue
        source = sheet.map(*path, "valueFrom")
        if not source:
            take_variable(sheet, path, name, entry.get("value", ""))
        elif "secretKeyRef" in source:
            sheet.leave(path, SECRET, found=name)
        else:
            sheet.leave(path, _FIELD if "fieldRef" in source or "resourceFieldRef" in source else _FROM, found=name)
    for index, entry in enumerate(sheet.list(*base, "envFrom")):
        secret = isinstance(entry, dict) and "secretRef" in entry
        sheet.leave((*base, "envFrom", index), SECRET if secret else _FROM)


def _resources(sheet: Sheet, base: Path) -> None:
    asked, limits = sheet.map(*base, "requests"), sheet.map(*base, "limits")
    for name in _AMOUNTS:
        for group, other in (("requests", limits), ("limits", asked)):
            if sheet.has(*base, group, name):
                _amount(sheet, (*base, group, name), name, other.get(name) if group == "limits" else None)
    for group in ("requests", "limits"):
        for key in sheet.map(*base, group):
            if sheet.has(*base, group, key):
                _device(sheet, (*base, group, key), str(key))
    if sheet.has(*base, "claims"):
        left = Left(Why.NAME, "a device claim of the cluster", "ask for a capability class under spec.resources")
        sheet.leave((*base, "claims"), left)


def _amount(sheet: Sheet, source: Path, name: str, request: object) -> None:
    """Map a request; a limit only where no request stands beside it."""
    text = sheet.text(*source)
    target: Path = ("spec", "resources", "requests", name)
    if request is None:
        note = "a limit without a request is the request" if source[-2] == "limits" else ""
        sheet.put(source, target, text, note)
    elif _size(name, text) == _size(name, str(request)):
        sheet.note(source, target, "the same as the request")
    else:
        reason = f"work gets what it asks for, and no more than the site lets it: the request {request} stands"
        sheet.leave(source, Left(Why.DECISION, reason, f"write {target[-1]}: {text} if it needs as much"))


def _size(name: str, text: str) -> object:
    try:
        return units.parse_cpu(text) if name == "cpu" else units.parse_bytes(text)
    except units.UnitError:
        return text


def _device(sheet: Sheet, source: Path, key: str) -> None:
    """Map a device of an extended resource such as nvidia.com/gpu or nvidia.com/mig-1g.10gb."""
    text = sheet.text(*source)
    if "/" not in key or not text.isdigit():
        left = Left(
            Why.DECISION, "an amount of something that only this cluster knows", "ask for it by class or control"
        )
        sheet.leave(source, left)
        return
    if source[-2] == "limits" and sheet.drafted(*ACCELERATOR, "count") == int(text):
        sheet.note(source, (*ACCELERATOR, "count"), "the same as the request")
        return
    take_count(sheet, source, int(text))
    vendor, _, device = key.partition("/")
    if device.startswith("mig-"):
        sheet.put(source, (*ACCELERATOR, "partition"), device.removeprefix("mig-"))
    known = sheet.named(key)
    if not known and sheet.drafted(*ACCELERATOR, "class"):
        return
    if known:
        sheet.put(source, (*ACCELERATOR, "class"), known, f"{key} is the class {known}")
    else:
        reason = f"{key} is any device of {vendor}; an operation asks for a capability class"
        advice = "choose the class that the work needs (`landbridge get capability-classes`)"
        sheet.leave(source, Left(Why.NAME, reason, advice), found=key, answer=key)
