"""From a Polyaxonfile, an operation or a component that runs by itself, to an operation."""

import re
from typing import Any, Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.polyaxon.parameters import Values, read_values, take_parameters
from landbridge.domain.importing.polyaxon.run import take_run
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.sizes import seconds
from landbridge.domain.importing.wishes import SCHEDULE, UPLOADED, take_name

_REFERENCE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(@[1-9][0-9]{0,8})?")
_FLOW: Final = Left(
    Why.NO_COUNTERPART, "an operation is one run", "submit it when what it waits for has ended: follow the events"
)
_SWEEP: Final = Left(
    Why.NO_COUNTERPART, "an operation is one run", "submit one operation for each set of values (`submit --set`)"
)
_REFERENCES: Final = ("hubRef", "pathRef", "urlRef", "dagRef")
_FIELDS: Final[dict[str, Left]] = {
    "version": Left(Why.NOT_NEEDED, "the version of the declaration that was read"),
    "kind": Left(Why.NOT_NEEDED, "the kind of the declaration that was read"),
    "namespace": Left(
        Why.DECISION, "a part of one cluster; an operation belongs to a project", "name it with --project"
    ),
    "cache": Left(Why.NO_COUNTERPART, "every operation runs", "repeat the idempotency key to get the earlier one"),
    "plugins": Left(Why.NOT_NEEDED, "logs, outputs and states are kept for every operation"),
    "patchStrategy": Left(Why.NOT_NEEDED, "the operation's own fields win"),
    "isPreset": Left(Why.DECISION, "a part of operations, not one", "write it as a Preset: the patch is its spec"),
    "isApproved": Left(Why.NO_COUNTERPART, "waits for a person's word", "submit it into a paused queue"),
    "schedule": SCHEDULE,
    "events": _FLOW,
    "joins": _FLOW,
    "dependencies": _FLOW,
    "trigger": _FLOW,
    "conditions": _FLOW,
    "skipOnUpstreamSkip": _FLOW,
    "matrix": _SWEEP,
    "hooks": Left(Why.NO_COUNTERPART, "runs something when it has ended", "follow the events, or set an alert"),
    "build": Left(Why.NO_COUNTERPART, "builds an image first", "build it in CI and pin it by digest in spec.image"),
    "mount": UPLOADED,
    "template": Left(Why.DECISION, "to be filled in by a person first", "fill it in"),
    "actions": Left(Why.NO_COUNTERPART, "things that people may do later"),
    "cost": Left(Why.NOT_NEEDED, "the environment's contract says what work costs"),
}


def import_polyaxon(sheet: Sheet) -> None:
    """Fill in the operation of an operation with its component, or of a component."""
    component: Path = ("component",) if sheet.map("component") else ()
    values = read_values(sheet, component)
    for base in dict.fromkeys(((), component)):
        _described(sheet, base)
        _termination(sheet, (*base, "termination"))
    for field in _REFERENCES:
        if sheet.has(field):
            _reference(sheet, field)
    if sheet.map("runPatch"):
        take_run(sheet, ("runPatch",), values, "runPatch")
    if sheet.map(*component, "run"):
        take_run(sheet, (*component, "run"), values, sheet.text(*component, "run", "kind"))
    take_parameters(sheet, component, values)
    for base in dict.fromkeys(((), component)):
        sheet.leave_known(base, _FIELDS)


def _described(sheet: Sheet, base: Path) -> None:
    """Map what the work is called and where it waits; the operation's own words come first and win."""
    if sheet.text(*base, "name"):
        if sheet.drafted("metadata", "name"):
            sheet.leave((*base, "name"), Left(Why.NOT_NEEDED, "the operation's own name stands"))
        else:
            take_name(sheet, (*base, "name"), sheet.text(*base, "name").rpartition("/")[2])
    if sheet.text(*base, "description"):
        if sheet.drafted("metadata", "annotations", "description"):
            sheet.leave((*base, "description"), Left(Why.NOT_NEEDED, "the operation's own description stands"))
        else:
            target: Path = ("metadata", "annotations", "description")
            sheet.put((*base, "description"), target, sheet.text(*base, "description"))
    tags: Any = sheet.at(*base, "tags")
    for index, tag in enumerate(tags if isinstance(tags, list) else []):
        if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", str(tag)):
            sheet.put((*base, "tags", index), ("metadata", "labels", str(tag)), "true", "a tag is a label that is true")
        else:
            sheet.leave((*base, "tags", index), Left(Why.DECISION, "no key of a label", "write metadata.labels"))
    _queue(sheet, (*base, "queue"))
    _presets(sheet, (*base, "presets"))


def _queue(sheet: Sheet, source: Path) -> None:
    text = sheet.text(*source)
    if not text:
        return
    name = text.rpartition("/")[2]
    known = sheet.named(text, name)
    if not known and sheet.drafted("spec", "queue"):
        sheet.leave(source, Left(Why.NOT_NEEDED, "the operation's own queue stands"))
        return
    note = "without the agent; there must be such a queue here" if name != text else "there must be such a queue here"
    sheet.put(source, ("spec", "queue"), known or name, "" if known else note)


def _presets(sheet: Sheet, source: Path) -> None:
    found = sheet.list(*source) or ([sheet.text(*source)] if sheet.text(*source) else [])
    for index, preset in enumerate(found):
        path = (*source, index) if sheet.list(*source) else source
        known = sheet.named(str(preset)) or str(preset)
        if not _REFERENCE.fullmatch(known):
            left = Left(Why.NAME, "not the name of a preset here", "give the preset's name")
            sheet.leave(path, left, answer=str(preset))
            continue
        presets = sheet.drafted("spec").setdefault("presets", [])
        if known not in presets:
            presets.append(known)
        sheet.note(path, ("spec", "presets", presets.index(known)), "there must be such a preset here")


def _termination(sheet: Sheet, base: Path) -> None:
    limit = sheet.at(*base, "maxRetries")
    if isinstance(limit, int) and not isinstance(limit, bool):
        sheet.put((*base, "maxRetries"), ("spec", "lifecycle", "retries", "limit"), limit)
    timeout = seconds(sheet.at(*base, "timeout"))
    if timeout:
        sheet.put((*base, "timeout"), ("spec", "lifecycle", "timeout"), timeout, "of each attempt")
    sheet.leave_known(
        base,
        {
            "ttl": Left(Why.NOT_NEEDED, "what has ended is removed once the centre has acknowledged it"),
            "culling": Left(Why.NO_COUNTERPART, "ends a service that nobody uses", "let it end itself"),
            "probe": Left(
                Why.NO_COUNTERPART, "asks whether a service is used", "route.healthPath tells when it is ready"
            ),
            "podFailurePolicy": Left(
                Why.DECISION, "rules about pods", "write lifecycle.retries.exceptExitCodes and lifecycle.recovery"
            ),
        },
    )


def _reference(sheet: Sheet, field: str) -> None:
    """Map a component that is kept elsewhere to a component here."""
    text = sheet.text(field)
    known = sheet.named(text)
    if known:
        sheet.put((field,), ("spec", "component"), known, f"{text} is the component {known}")
        return
    left = Left(
        Why.NAME,
        "the work is described elsewhere, which this importer does not read",
        "bring that file in, or apply it as a Component and give its name",
    )
    sheet.leave((field,), left, answer=text)


__all__ = ["Values", "import_polyaxon"]
