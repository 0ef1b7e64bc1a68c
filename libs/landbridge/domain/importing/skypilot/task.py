"""From a SkyPilot task to an operation: scripts, variables, nodes, and a service where there is one."""

import re
from typing import Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.scripts import escaped
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.skypilot.mounts import take_mounts
from landbridge.domain.importing.skypilot.resources import take_resources
from landbridge.domain.importing.variables import SECRET, take_variables
from landbridge.domain.importing.wishes import CLUSTER, PORT, UPLOADED, take_name

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SCALING: Final = Left(
    Why.NO_COUNTERPART, "a service has a fixed number of replicas", "write spec.replicas, and change it as load does"
)
_TASK: Final[dict[str, Left]] = {
    "config": CLUSTER,
    "event_callback": Left(
        Why.NO_COUNTERPART, "a script on the submitting side", "follow the operation's events, or set an alert"
    ),
    "experimental": CLUSTER,
    "inputs": Left(Why.NAME, "data by its address", "write spec.inputs with a connection"),
    "outputs": Left(Why.NAME, "data by its address", "write spec.outputs with a connection"),
    "pool": CLUSTER,
    "api_server": CLUSTER,
    "file_mounts_mapping": CLUSTER,
}
_SERVICE: Final[dict[str, Left]] = {
    "replica_policy": _SCALING,
    "load_balancing_policy": Left(Why.NOT_NEEDED, "the environment spreads requests"),
    "tls": Left(Why.NOT_NEEDED, "the environment ends TLS in front of a service"),
}


def import_skypilot(sheet: Sheet) -> None:
    """Fill in the operation of a task."""
    if sheet.text("name"):
        take_name(sheet, ("name",), sheet.text("name"))
    _nodes(sheet)
    take_variables(sheet, ("envs",))
    for name in sheet.map("secrets"):
        sheet.leave(("secrets", name), SECRET, found=str(name))
    if sheet.has("secrets"):
        sheet.leave_rest(("secrets",), SECRET)
    _script(sheet)
    _workdir(sheet)
    take_mounts(sheet)
    take_resources(sheet)
    _service(sheet)
    sheet.leave_known((), _TASK)


def _nodes(sheet: Sheet) -> None:
    count = sheet.at("num_nodes")
    if isinstance(count, int) and not isinstance(count, bool) and count > 1:
        sheet.put(("num_nodes",), ("spec", "type"), "distributed-job")
        note = "LANDBRIDGE_RANK and LANDBRIDGE_WORLD_SIZE stand for SKYPILOT_NODE_RANK and SKYPILOT_NUM_NODES"
        sheet.put(("num_nodes",), ("spec", "replicas"), count, note)
    elif count == 1:
        sheet.leave(("num_nodes",), Left(Why.NOT_NEEDED, "a job has one replica"))


def _script(sheet: Sheet) -> None:
    """Join setup and run to one script: an operation has one command."""
    setup, run = sheet.text("setup"), sheet.text("run")
    script = "\n".join(part.rstrip("\n") for part in (setup, run) if part.strip())
    if not script:
        return
    command = ["bash", "-c", escaped(script, sheet.drafted("spec", "env") or ())]
    note = (
        ""
        if not (setup and run)
        else "setup and run are one script, so setup runs at every attempt: better in an image"
    )
    target: Path = ("spec", "command")
    for field in ("setup", "run"):
        if sheet.text(field).strip():
            sheet.put((field,), target, command, note)
            note = ""
    used = sorted(set(re.findall(r"SKYPILOT_[A-Z_]+", script)))
    if used:
        reason = f"reads {', '.join(used)}, which SkyPilot sets and nothing sets here"
        advice = "use LANDBRIDGE_RANK, LANDBRIDGE_WORLD_SIZE and MASTER_ADDR in a distributed job"
        field = "run" if "SKYPILOT_" in run else "setup"
        sheet.leave((field,), Left(Why.DECISION, reason, advice), found=", ".join(used))


def _workdir(sheet: Sheet) -> None:
    if not sheet.map("workdir"):
        if sheet.has("workdir"):
            sheet.leave(("workdir",), UPLOADED)
        return
    url, ref = sheet.text("workdir", "url"), sheet.text("workdir", "ref")
    connection = sheet.named(url)
    if connection:
        sheet.put(("workdir", "url"), ("spec", "source", "connection"), connection, f"{url} is {connection}")
    elif url:
        left = Left(
            Why.NAME, "the address of a repository; an operation names its Git connection", "give its connection"
        )
        sheet.leave(("workdir", "url"), left, answer=url)
    if _COMMIT.fullmatch(ref):
        sheet.put(("workdir", "ref"), ("spec", "source", "commit"), ref)
    elif ref:
        left = Left(Why.DECISION, "a branch or tag can move", "write spec.source.commit: the full id (`git rev-parse`)")
        sheet.leave(("workdir", "ref"), left)


def _service(sheet: Sheet) -> None:
    base: Path = ("service",)
    if not sheet.map(*base):
        if sheet.has("resources", "ports"):
            sheet.leave(("resources", "ports"), PORT)
        return
    port = sheet.at("resources", "ports")
    source: Path = ("resources", "ports")
    if isinstance(port, list) and len(port) == 1:
        port, source = port[0], ("resources", "ports", 0)
    if isinstance(port, int) or str(port).isdigit():
        sheet.put(source, ("spec", "type"), "service")
        sheet.put(source, ("spec", "ports", "http", "port"), int(str(port)))
    elif sheet.has("resources", "ports"):
        sheet.leave(("resources", "ports"), Left(Why.DECISION, "which port answers callers", "write spec.ports"))
    sheet.drafted("spec").setdefault("type", "service")
    _probe(sheet)
    _count(sheet)
    sheet.leave_known(base, _SERVICE)


def _probe(sheet: Sheet) -> None:
    probe: Path = ("service", "readiness_probe")
    source = probe if sheet.text(*probe) else (*probe, "path")
    if sheet.text(*source):
        sheet.put(source, ("spec", "route", "healthPath"), sheet.text(*source))
    for field in sheet.map(*probe):
        if field != "path":
            reason = "a service is ready when its path answers a GET; how often it is asked is the environment's"
            sheet.leave((*probe, field), Left(Why.NO_COUNTERPART, reason))


def _count(sheet: Sheet) -> None:
    for source in (("service", "replicas"), ("service", "replica_policy", "min_replicas")):
        count = sheet.at(*source)
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            note = "the smallest number; it does not grow by itself" if source[-1] == "min_replicas" else ""
            sheet.put(source, ("spec", "replicas"), count, note)
