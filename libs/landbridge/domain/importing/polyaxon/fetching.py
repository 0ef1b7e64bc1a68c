"""What a run fetches before it starts: data of a connection, code of a repository."""

import re
from typing import Any, Final

from landbridge.domain.documents.names import is_name
from landbridge.domain.documents.places import Path
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_WRITTEN: Final = Left(
    Why.NO_COUNTERPART, "makes a file before the start", "put it into the image, or write it in the command"
)
_OTHER: Final[dict[str, Left]] = {
    "dockerfile": _WRITTEN,
    "file": _WRITTEN,
    "tensorboard": Left(Why.NO_COUNTERPART, "outputs of other runs", "name them under inputs with their connection"),
    "lineageRef": Left(Why.NAME, "an artifact of another run", "write spec.inputs: its connection and path"),
    "modelRef": Left(Why.NAME, "a version of a model", "write spec.inputs: its connection and path"),
    "artifactRef": Left(Why.NAME, "a version of an artifact", "write spec.inputs: its connection and path"),
    "paths": Left(Why.NAME, "paths of Polyaxon's own store", "write spec.inputs: connection and path"),
    "container": Left(Why.NOT_NEEDED, "how data comes to the work is the environment's choice"),
    "path": Left(Why.NOT_NEEDED, "$LANDBRIDGE_INPUT_<NAME> holds the local path"),
}


def take_init(sheet: Sheet, base: Path) -> None:
    """Map initialisers that name a connection; others are told."""
    for index, entry in enumerate(sheet.list(*base)):
        path: Path = (*base, index)
        if not isinstance(entry, dict):
            continue
        if sheet.has(*path, "git") or _is_code(entry):
            _code(sheet, path)
        elif sheet.text(*path, "connection"):
            _data(sheet, path)
        elif "container" in entry and len(entry) == 1:
            reason = "a container of its own before the start; an operation has one"
            sheet.leave(path, Left(Why.NO_COUNTERPART, reason, "prepare in the command"))
        if sheet.has(*path, "artifacts"):
            reason = "paths of Polyaxon's own store"
            sheet.leave_rest((*path, "artifacts"), Left(Why.NAME, reason, "write spec.inputs: connection and path"))
        sheet.leave_known(path, _OTHER)


def _is_code(entry: dict[str, Any]) -> bool:
    """Tell whether only a connection is named: Polyaxon fetches code then, by the connection's kind."""
    return set(entry) <= {"connection", "git"} and "git" in entry


def _connection(sheet: Sheet, source: Path, target: Path) -> None:
    name = sheet.text(*source)
    known = sheet.named(name) or (name if is_name(name) else "")
    if known:
        note = f"{name} is the connection {known}" if known != name else "there must be such a connection here"
        sheet.put(source, target, known, note)
    else:
        sheet.leave(source, Left(Why.NAME, "no name of a connection here", "give its name"), answer=name)


def _code(sheet: Sheet, path: Path) -> None:
    if sheet.text(*path, "connection"):
        _connection(sheet, (*path, "connection"), ("spec", "source", "connection"))
    url = sheet.text(*path, "git", "url")
    if url:
        known = sheet.named(url)
        left = Left(
            Why.NAME, "the address of a repository; an operation names its Git connection", "give its connection"
        )
        if known:
            sheet.put((*path, "git", "url"), ("spec", "source", "connection"), known, f"{url} is {known}")
        else:
            sheet.leave((*path, "git", "url"), left, answer=url)
    revision = sheet.text(*path, "git", "revision")
    if _COMMIT.fullmatch(revision):
        sheet.put((*path, "git", "revision"), ("spec", "source", "commit"), revision)
    elif revision:
        left = Left(Why.DECISION, "a branch or tag can move", "write spec.source.commit: the full id (`git rev-parse`)")
        sheet.leave((*path, "git", "revision"), left)
    if sheet.has(*path, "git"):
        sheet.leave_rest((*path, "git"), Left(Why.NOT_NEEDED, "how code is fetched is the environment's choice"))


def _data(sheet: Sheet, path: Path) -> None:
    name = sheet.text(*path, "connection")
    parts = [
        ((*path, "artifacts", group, index), str(item))
        for group in ("dirs", "files")
        for index, item in enumerate(sheet.list(*path, "artifacts", group))
    ]
    entry = (sheet.named(name) or name) if is_name(sheet.named(name) or name) else f"input-{path[-1]}"
    _connection(sheet, (*path, "connection"), ("spec", "inputs", entry, "connection"))
    if len(parts) == 1 and sheet.drafted("spec", "inputs", entry):
        source, below = parts[0]
        sheet.put(source, ("spec", "inputs", entry, "path"), below.strip("/"), "below the connection")
    for source, _ in parts if len(parts) > 1 else []:
        reason = "several paths of one connection"
        sheet.leave(source, Left(Why.DECISION, reason, "write an input for each, or name the path above them"))
