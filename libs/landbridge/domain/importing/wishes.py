"""What several formats say alike and an operation says in another way, or not at all."""

from typing import Final

from landbridge.domain.documents.credentials import shown
from landbridge.domain.documents.names import is_name, label_refusal, mount_path_refusal, suggest_name
from landbridge.domain.documents.places import Path
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet

REGION: Final = Left(
    Why.DECISION,
    "pins a cloud, region or zone; where work may run follows from what its data allows",
    "if it is a duty, write spec.constraints.jurisdictions or regions; if it is a habit, leave it out",
)
INSTANCE: Final = Left(
    Why.NAME,
    "a provider's instance type; an operation asks for amounts and a capability class",
    "write spec.resources.requests (cpu, memory) and, for accelerators, spec.resources.accelerator.class",
)
PLACEMENT: Final = Left(
    Why.DECISION,
    "chooses machines within one cluster",
    "say what it is for: an architecture, a class, a control or a region under spec.constraints and spec.resources",
)
CLUSTER: Final = Left(Why.NOT_NEEDED, "about the machines, which the environment keeps", "")
SCHEDULE: Final = Left(
    Why.NO_COUNTERPART, "an operation is one run", "submit it on schedule, with an idempotency key for each run"
)
INTERACTIVE: Final = Left(Why.NO_COUNTERPART, "for people at a terminal; an operation runs by itself", "")
UPLOADED: Final = Left(
    Why.NAME,
    "code or files from the caller's machine; an operation names code by Git connection and commit",
    "write spec.source (connection, commit), or put them into the image or a connection",
)
PORT: Final = Left(Why.NO_COUNTERPART, "only a service answers on ports", "use the type service if callers need it")
PULL_SECRET: Final = Left(
    Why.SECRET, "credentials for a registry", "the registry connection's binding at the site holds them"
)


def take_name(sheet: Sheet, source: Path, name: str) -> None:
    """Map the name of the work; one that is no name here is made one."""
    if is_name(name):
        sheet.put(source, ("metadata", "name"), name)
        return
    made = suggest_name(name)
    if made:
        sheet.put(source, ("metadata", "name"), made, f"{shown(name)} is no name here")
    else:
        sheet.leave(source, Left(Why.DECISION, "is no name here, and none can be made of it", "write metadata.name"))


def take_labels(sheet: Sheet, base: Path) -> None:
    """Map labels that may be labels here."""
    for key in sheet.map(*base):
        value = sheet.text(*base, key)
        message, suggestion = label_refusal(str(key), value)
        if message:
            sheet.leave((*base, key), Left(Why.NO_COUNTERPART, message, suggestion))
        else:
            sheet.put((*base, key), ("metadata", "labels", str(key)), value)


def take_annotations(sheet: Sheet, base: Path) -> None:
    """Map annotations as notes."""
    for key in sheet.map(*base):
        message, suggestion = label_refusal(str(key), "")
        if message:
            sheet.leave((*base, key), Left(Why.NO_COUNTERPART, message, suggestion))
        else:
            sheet.put((*base, key), ("metadata", "annotations", str(key)), sheet.text(*base, key))


def take_mount(
    sheet: Sheet, source: Path, physical: str, mount: str, *, what: str, path: str = "", read_only: bool | None = None
) -> None:
    """Map mounted storage to an input or output of the connection that people call it.

    `read_only` is None where the format does not say; then it becomes an input, and a note asks.
    """
    connection = sheet.named(physical)
    name = _entry_name(sheet, mount or physical)
    if not connection:
        left = Left(
            Why.NAME,
            f"{what}, which is a place; an operation names the connection to it",
            f"give its connection; then it becomes an input or output called {name}",
        )
        sheet.leave(source, left, found=physical, answer=physical)
        return
    group = "outputs" if read_only is False else "inputs"
    note = f"{physical} is the connection {connection}"
    if read_only is None:
        note += "; taken as an input: move it to outputs if the work writes there"
    elif not read_only:
        note += "; written to, so an output: add an input if the work reads it as well"
    sheet.put(source, ("spec", group, name, "connection"), connection, note)
    if path:
        sheet.put(source, ("spec", group, name, "path"), path)
    if mount and not mount_path_refusal(mount)[0]:
        sheet.put(source, ("spec", group, name, "mountPath"), mount)
    elif mount:
        reason = f"{mount_path_refusal(mount)[0]}: the local path is in the variable that is named after it"
        sheet.leave(source, Left(Why.DECISION, reason, "use $LANDBRIDGE_INPUT_<NAME> or _OUTPUT_<NAME>"), found=mount)


def _entry_name(sheet: Sheet, text: str) -> str:
    """Return a name for an input or output, made of the end of a path, that is still free."""
    parts = [part for part in text.rstrip("/").split("/") if part]
    base = suggest_name(parts[-1] if parts else "data") or "data"
    inputs, outputs = sheet.drafted("spec", "inputs") or {}, sheet.drafted("spec", "outputs") or {}
    number = sheet.numbers.get(base, 1)
    while (name := base if number == 1 else f"{base[:56]}-{number}") in inputs or name in outputs:
        number += 1
    sheet.numbers[base] = number
    return name
