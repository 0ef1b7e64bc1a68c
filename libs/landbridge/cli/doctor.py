"""What `doctor` looks at: the machine, the binaries, the data directory, the processes."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from landbridge_embedded import binaries
from landbridge_embedded.control import ask
from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.layout import DataDirectory
from landbridge_embedded.postgres_user import choose_user

_DISK_WARN_BYTES = 5 * 1024**3
_DISK_FAIL_BYTES = 1024**3


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: `result` is ok, warning or failed; `next_step` says what to do about it."""

    check: str
    result: str
    found: str
    next_step: str = ""

    def as_dict(self) -> dict[str, str]:
        return {"check": self.check, "result": self.result, "found": self.found, "nextStep": self.next_step}


def examine(root: Path) -> list[Finding]:
    """Look at everything; nothing is changed."""
    data = DataDirectory(root)
    return [*_machine(), *_binaries(data), *_disk(root), *_instance(data)]


def _machine() -> Iterator[Finding]:
    version = platform.python_version()
    good = sys.version_info >= (3, 11)
    yield Finding("python", "ok" if good else "failed", version, "" if good else "install Python 3.11 or newer")
    system = f"{platform.system()} {platform.release()}"
    if sys.platform == "linux":
        yield Finding("system", "ok", system)
    else:
        step = "run it on Linux, or in a virtual machine: processes are supervised with means of Linux"
        yield Finding("system", "warning", system, step)


def _binaries(data: DataDirectory) -> Iterator[Finding]:
    if os.environ.get("LANDBRIDGE_POSTGRES_DSN"):
        yield Finding("postgres", "ok", "yours, by LANDBRIDGE_POSTGRES_DSN")
    else:
        yield _binary("postgres", lambda: binaries.find_postgres() / "postgres")
        yield from _postgres_user(data)
    for name, variable, finder in (
        ("nats", "LANDBRIDGE_NATS_URL", binaries.find_nats),
        ("redis", "LANDBRIDGE_REDIS_URL", binaries.find_redis),
    ):
        yield Finding(name, "ok", f"yours, by {variable}") if os.environ.get(variable) else _binary(name, finder)


def _binary(name: str, find: Callable[[], Path]) -> Finding:
    try:
        path = find()
        done = subprocess.run([str(path), "--version"], capture_output=True, text=True, timeout=10, check=True)  # noqa: S603
    except EmbeddedError as error:
        return Finding(name, "failed", "not found", str(error))
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(name, "failed", f"{name} cannot be run", str(error))
    return Finding(name, "ok", f"{(done.stdout or done.stderr).strip().splitlines()[0]} ({path})")


def _postgres_user(data: DataDirectory) -> Iterator[Finding]:
    if os.geteuid() != 0:
        return
    try:
        chosen = choose_user(binaries.find_postgres(), data.root, data.root / "postgres" / "data")
    except EmbeddedError as error:
        yield Finding("postgres as root", "failed", "no way found", str(error))
        return
    way = "in a user namespace" if chosen.owner is None else f"as user {chosen.owner[0]}"
    yield Finding("postgres as root", "ok", way)


def _disk(root: Path) -> Iterator[Finding]:
    place = root
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    result = "failed" if free < _DISK_FAIL_BYTES else "warning" if free < _DISK_WARN_BYTES else "ok"
    step = "" if result == "ok" else f"make room on the disk of {place}: streams and database need space, or --data DIR"
    yield Finding("disk", result, f"{free / 1024**3:.1f} GiB free at {place}", step)


def _instance(data: DataDirectory) -> Iterator[Finding]:
    if not data.root.exists():
        yield Finding("instance", "ok", f"none yet at {data.root}", "start one with `landbridge up`")
        return
    if not os.access(data.root, os.R_OK | os.W_OK | os.X_OK):
        step = "use the account that owns it, or another directory with --data DIR"
        yield Finding("instance", "failed", f"{data.root} is not accessible for this user", step)
        return
    if not data.is_held():
        yield Finding("instance", "ok", f"{data.root}, not running", "start it with `landbridge up`")
        return
    try:
        state = ask(data, "status")
    except EmbeddedError as error:
        yield Finding("instance", "failed", "it runs, but does not answer", str(error))
        return
    yield Finding("instance", "ok" if state["ready"] else "warning", f"{data.root}, process {state['pid']}")
    for name, row in state["services"].items():
        yield _process(data, name, row)
    yield from broker(state["services"].get("contract-verifier") or {})


def broker(verifier: dict[str, Any]) -> Iterator[Finding]:
    """Tell whether what the broker acknowledges is on disk: the contract-verifier asks every server of it."""
    if not verifier.get("ready"):
        return
    address = f"http://127.0.0.1:{verifier['port']}/readyz/broker-sync"
    try:
        told = httpx2.get(address, params={"verbose": "true"}, timeout=5).text
    except httpx2.HTTPError as error:
        yield Finding("broker sync", "warning", "not known", f"the contract-verifier does not answer: {error}")
        return
    line = told.splitlines()[0] if told else ""
    found, _, step = line.partition(" degraded: ")[2].partition("; ")
    if found:
        yield Finding("broker sync", "warning", found, step)
    elif line.endswith("broker-sync ok"):
        yield Finding("broker sync", "ok", "every server has on disk what it acknowledges")


def _process(data: DataDirectory, name: str, row: dict[str, Any]) -> Finding:
    log = data.log_of(name)
    if row["state"] != "running":
        return Finding(name, "failed", f"{row['state']}, {row['restarts']} restarts", f"see {log}")
    if not row["ready"]:
        step = f"ask why: curl http://127.0.0.1:{row['port']}/readyz?verbose ; log: {log}"
        return Finding(name, "failed", "runs, not ready", step)
    if row["restarts"]:
        return Finding(name, "warning", f"ready, after {row['restarts']} restarts", f"see {log}")
    return Finding(name, "ok", f"ready, process {row['pid']}")
