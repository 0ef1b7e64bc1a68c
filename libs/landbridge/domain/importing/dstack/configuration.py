"""From a dstack task or service to an operation."""

import re
import shlex
from typing import Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.dstack.placement import take_placement
from landbridge.domain.importing.dstack.resources import take_resources
from landbridge.domain.importing.dstack.service import take_service
from landbridge.domain.importing.images import take_image
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.scripts import escaped
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.variables import SECRET, take_variable
from landbridge.domain.importing.wishes import (
    INTERACTIVE,
    PORT,
    PULL_SECRET,
    UPLOADED,
    take_labels,
    take_mount,
    take_name,
)

_INTERPOLATED: Final = re.compile(r"\$\{\{\s*([a-z_.A-Z0-9-]+)\s*\}\}")
_DEFAULT_IMAGE: Final = Left(
    Why.NAME, "an image of dstack's own, by the version of Python or CUDA", "write spec.image, pinned by digest"
)
_PRIVILEGE: Final = Left(
    Why.DECISION, "the environment decides as whom and how confined work runs", "name a role in spec.identity"
)
_GROUPS: Final = Left(
    Why.NO_COUNTERPART,
    "replicas of one operation are alike",
    "submit one operation for each group, or one gang of like replicas",
)
_COMMON: Final[dict[str, Left]] = {
    "python": _DEFAULT_IMAGE,
    "nvcc": _DEFAULT_IMAGE,
    "registry_auth": PULL_SECRET,
    "privileged": _PRIVILEGE,
    "docker": _PRIVILEGE,
    "user": _PRIVILEGE,
    "dstack": Left(Why.NO_COUNTERPART, "access to dstack's own interface"),
    "working_dir": Left(Why.NO_COUNTERPART, "the workload starts in its own directory", "begin the command with cd"),
    "home_dir": Left(Why.NOT_NEEDED, "HOME is set by the environment"),
    "shell": Left(Why.NOT_NEEDED, "there are no commands to run in it"),
    "single_branch": Left(Why.NOT_NEEDED, "code is named by its commit"),
    "setup": Left(Why.NO_COUNTERPART, "has no effect in dstack either"),
    "files": UPLOADED,
    "groups": _GROUPS,
    "priority": Left(Why.DECISION, "a number between runs", "spec.priority names a class of the queue"),
    **dict.fromkeys(("ide", "version", "init", "inactivity_duration"), INTERACTIVE),
}


def import_dstack(sheet: Sheet) -> None:
    """Fill in the operation of a configuration."""
    if sheet.text("name"):
        take_name(sheet, ("name",), sheet.text("name"))
    _kind(sheet)
    _variables(sheet)
    if sheet.text("image"):
        take_image(sheet, ("image",), sheet.text("image"))
    _command(sheet)
    take_resources(sheet, ("resources",))
    _volumes(sheet)
    _repositories(sheet)
    take_placement(sheet)
    take_labels(sheet, ("tags",))
    if sheet.has("ports"):
        sheet.leave(("ports",), PORT)
    sheet.leave_known((), _COMMON)


def _kind(sheet: Sheet) -> None:
    kind = sheet.text("type")
    nodes = sheet.at("nodes")
    if kind == "service":
        sheet.put(("type",), ("spec", "type"), "service")
        take_service(sheet)
    elif kind == "task" and isinstance(nodes, int) and nodes > 1:
        sheet.put(("type",), ("spec", "type"), "distributed-job")
        note = "LANDBRIDGE_RANK and LANDBRIDGE_WORLD_SIZE stand for DSTACK_NODE_RANK and DSTACK_NODES_NUM"
        sheet.put(("nodes",), ("spec", "replicas"), nodes, note)
    elif kind == "task":
        sheet.put(("type",), ("spec", "type"), "job")
        if sheet.has("nodes"):
            sheet.leave(("nodes",), Left(Why.NOT_NEEDED, "a job has one replica"))
    elif sheet.has("type"):
        sheet.leave(("type",), INTERACTIVE)


def _variables(sheet: Sheet) -> None:
    if isinstance(sheet.at("env"), dict):
        for name, value in sheet.map("env").items():
            _variable(sheet, ("env", name), str(name), value)
    for index, entry in enumerate(sheet.list("env")):
        name, equals, value = str(entry).partition("=")
        _variable(sheet, ("env", index), name, value if equals else None)


def _variable(sheet: Sheet, source: Path, name: str, value: object) -> None:
    filled = _INTERPOLATED.search(str(value))
    if filled is None:
        take_variable(sheet, source, name, value)
    elif filled[1].startswith("secrets."):
        sheet.leave(source, SECRET, found=name)
    else:
        left = Left(Why.DECISION, f"dstack fills in {filled[1]}; nothing does here", "write its value in spec.env")
        sheet.leave(source, left)


def _command(sheet: Sheet) -> None:
    """Join the commands to one script that ends at the first failure, as dstack runs them."""
    lines = [str(line).rstrip("\n") for line in sheet.list("commands")]
    entry = sheet.text("entrypoint")
    if entry:
        try:
            words = shlex.split(entry)
        except ValueError:
            sheet.leave(("entrypoint",), Left(Why.DECISION, "its quotes do not close", "write spec.command"))
            words = []
        if words:
            sheet.put(("entrypoint",), ("spec", "command"), words)
    if not lines:
        return
    script = escaped("\n".join(["set -e", *lines] if len(lines) > 1 else lines), sheet.drafted("spec", "env") or ())
    shell = sheet.text("shell") or ("sh" if sheet.text("image") else "bash")
    target: Path = ("spec", "args") if sheet.drafted("spec", "command") else ("spec", "command")
    note = "one script that ends at the first command that fails" if len(lines) > 1 else ""
    sheet.put(("commands",), target, [script] if target[-1] == "args" else [shell, "-c", script], note)
    if sheet.has("shell"):
        sheet.note(("shell",), target)
    told = sorted(set(_INTERPOLATED.findall(script)) | set(re.findall(r"DSTACK_[A-Z_]+", script)))
    if told:
        reason = f"reads {', '.join(told)}, which dstack sets and nothing sets here"
        advice = "use LANDBRIDGE_RANK, LANDBRIDGE_WORLD_SIZE and MASTER_ADDR in a distributed job, or write values"
        sheet.leave(("commands",), Left(Why.DECISION, reason, advice), found=", ".join(told))


def _volumes(sheet: Sheet) -> None:
    for index, entry in enumerate(sheet.list("volumes")):
        path: Path = ("volumes", index)
        if isinstance(entry, str):
            name, _, where = entry.partition(":")
            _volume(sheet, path, name, where)
        elif isinstance(entry, dict):
            several = [str(name) for name in sheet.list(*path, "name")]
            if several:
                _volumes_of_several(sheet, path, several)
                continue
            name = sheet.text(*path, "name") or sheet.text(*path, "instance_path")
            _volume(sheet, path, name, sheet.text(*path, "path"))


def _volumes_of_several(sheet: Sheet, path: Path, names: list[str]) -> None:
    """Map volumes of which any will do: one connection that each environment binds to its own."""
    if sheet.named(*names):
        first = next(name for name in names if sheet.named(name))
        take_mount(sheet, path, first, sheet.text(*path, "path"), what="a volume")
        return
    reason = "one volume of several, each of one place; a connection is bound to its own in every environment"
    sheet.leave(path, Left(Why.NAME, reason, "give its connection"), found=", ".join(names), answer=names[0])


def _volume(sheet: Sheet, path: Path, name: str, where: str) -> None:
    what = "a directory of a machine" if name.startswith("/") else "a network volume of one place"
    take_mount(sheet, path, name, where, what=what)


def _repositories(sheet: Sheet) -> None:
    for index, entry in enumerate(sheet.list("repos")):
        path: Path = ("repos", index)
        url, commit = sheet.text(*path, "url"), sheet.text(*path, "hash")
        connection = sheet.named(url, str(entry) if isinstance(entry, str) else "")
        if index or not (url or isinstance(entry, str)):
            sheet.leave(path, UPLOADED)
            continue
        address = url or str(entry)
        source = (*path, "url") if url else path
        if connection:
            sheet.put(source, ("spec", "source", "connection"), connection, f"{address} is {connection}")
        else:
            remote = "://" in address or address.startswith("git@")
            left = Left(
                Why.NAME, "the address of a repository; an operation names its Git connection", "give its connection"
            )
            sheet.leave(source, left if remote else UPLOADED, answer=address if remote else "")
        if commit:
            sheet.put((*path, "hash"), ("spec", "source", "commit"), commit)
        if sheet.has(*path, "branch"):
            sheet.leave((*path, "branch"), Left(Why.DECISION, "a branch can move", "write spec.source.commit"))
        for field in ("path", "if_exists", "local_path"):
            if sheet.has(*path, field):
                reason = "where the code is checked out, the environment decides"
                sheet.leave((*path, field), Left(Why.NOT_NEEDED, reason))
