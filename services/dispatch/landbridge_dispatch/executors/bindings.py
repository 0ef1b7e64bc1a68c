"""The site's own file: where logical connections lie, who logical roles are, and what the site accepts.

It never leaves the environment. Relative directories are below the environment's own directory:

    executor: process                    # or {name: process, slots: 64, cgroup: auto, path: [...], logLimit: 64Mi}
    connections:
      models: {directory: data/models, access: read-write, projects: [retail-eu],
               env: {S3_REGION: eu-1}, secrets: {S3_KEY: {file: secrets/s3-key}, S3_TOKEN: {env: SITE_S3_TOKEN}}}
    identities: {trainer: {user: lb-trainer}}    # absent: every role runs as the dispatcher's own user
    accepts: {projects: [retail-eu], connections: [models], identities: [trainer]}    # absent or "*": all
    simulation: {duration: 2s, failureRate: 0.01, startDelay: 0s, slots: 1000, seed: 7}
    carbon: {file: data/carbon.csv}    # if the contract says carbon.measured; or a url, see carbon_source.py
    kubernetes: {namespace: "lb-{project}", keeper: {url: "http://10.96.0.40:8480"}}    # see kubernetes/settings.py
"""

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import yaml

from landbridge.domain import units
from landbridge_dispatch.carbon_source import CarbonSource
from landbridge_dispatch.executors.kubernetes.settings import KubernetesSettings
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError

WRITABLE = frozenset({"read-write", "write-only"})
EXECUTORS = ("process", "simulated", "kubernetes", "slurm", "managed-endpoint")


class Secret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a secret value is: a file, or a variable of the dispatcher's own environment. Exactly one."""

    file: str = ""
    env: str = ""

    def __post_init__(self) -> None:
        if bool(self.file) is bool(self.env):
            raise ValueError("expected either file or env")


class Binding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The physical side of one connection."""

    directory: str = ""
    access: str = "read-only"
    projects: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    secrets: Mapping[str, Secret] = {}
    location: str = ""
    """What lineage records as the physical place; default: the directory as a file URL."""
    options: Mapping[str, Any] = {}
    """For executors with means of their own (a bucket, a claim, a secret's name)."""

    def __post_init__(self) -> None:
        if self.access not in {"read-only", *WRITABLE}:
            raise ValueError(f"access: expected read-only, read-write or write-only, found {self.access!r}")


class Principal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Who a logical role is here."""

    user: str = ""
    service_account: str = ""
    audience: str = ""
    """Of a projected token for the workload itself; empty: it gets none."""


class Accepts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the site lets in; an empty list or `*` means everything."""

    projects: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    images: tuple[str, ...] = ()


class Simulation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How the simulated executor behaves. `duration`: fixed; with `durationMax`, uniform between both."""

    duration: str = "1s"
    duration_max: str = ""
    start_delay: str = "0s"
    failure_rate: float = 0.0
    slots: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        for text in filter(None, (self.duration, self.duration_max, self.start_delay)):
            units.parse_duration(text)
        if not 0 <= self.failure_rate <= 1:
            raise ValueError(f"failureRate: expected 0 to 1, found {self.failure_rate}")


class ExecutorOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which executor, and how. `path`: directories for programs; `cgroup`: auto, off or a delegated directory."""

    name: str = "process"
    slots: int = 256
    cgroup: str = "auto"
    path: tuple[str, ...] = ()
    start_wait: str = "15s"
    """How long granted work waits at its true start for a lease that allows it, before it is given back."""
    log_limit: str = "64Mi"
    keep_logs: str = "7d"
    keep_logs_size: str = "1Gi"
    options: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        if self.name not in EXECUTORS:
            raise ValueError(f"expected one of {', '.join(EXECUTORS)}, found {self.name!r}")
        units.parse_bytes(self.log_limit)
        units.parse_bytes(self.keep_logs_size)
        units.parse_duration(self.keep_logs)
        units.parse_duration(self.start_wait)


class Bindings(msgspec.Struct, frozen=True):
    """The whole file. `home` is the environment's directory."""

    home: Path
    executor: ExecutorOptions = ExecutorOptions()
    connections: Mapping[str, Binding] = {}
    identities: Mapping[str, Principal] | None = None
    accepts: Accepts = Accepts()
    simulation: Simulation | None = None
    kubernetes: KubernetesSettings = KubernetesSettings()
    carbon: CarbonSource | None = None
    roles: frozenset[str] | None = None
    """Roles of the contract in force: who may come in where `identities` is not stated. None: not known yet."""

    def root(self, name: str) -> Path:
        """Return the directory of a connection, links resolved. Raises RefusedError if there is none."""
        binding = self.connections.get(name)
        if binding is None or not binding.directory:
            raise RefusedError(
                RefusalCode.CONNECTION_MISSING, f"connection {name} is not bound here: add it to the site's bindings"
            )
        root = self.home / Path(binding.directory.removeprefix("file://").removeprefix("file:"))
        return Path(os.path.realpath(root))

    def location(self, name: str) -> str:
        """Return what lineage records as the physical place of a connection."""
        binding = self.connections[name]
        return binding.location or (self.root(name).as_uri() if binding.directory else "")

    def place(self, name: str, path: str, *, write: bool = False) -> Path:
        """Return `path` below a connection, which it cannot leave, links included. Raises RefusedError."""
        root = self.root(name)
        if write and self.connections[name].access not in WRITABLE:
            raise RefusedError(RefusalCode.CONNECTION_READ_ONLY, f"connection {name} is read-only here")
        if not root.is_dir():
            raise RefusedError(RefusalCode.CONNECTION_UNAVAILABLE, f"connection {name}: its directory is not there")
        parts = PurePosixPath(path)
        if "\x00" in path or parts.is_absolute() or ".." in parts.parts:
            raise RefusedError(RefusalCode.PATH, f"connection {name}: path {path!r} must stay below the connection")
        place = Path(os.path.realpath(root / parts))
        if not place.is_relative_to(root):
            raise RefusedError(RefusalCode.PATH, f"connection {name}: path {path!r} leads out of the connection")
        return place


class BindingsError(Exception):
    """The bindings file cannot be used; one line per problem."""


def load_bindings(path: Path, home: Path | None = None) -> Bindings:
    """Read a bindings file. Raises BindingsError with every problem. `home` defaults to the file's directory."""
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise BindingsError(f"{path}: cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise BindingsError(f"{path}: expected a mapping, found {type(value).__name__}")
    problems: list[str] = []
    read = {key: _read(key, value.pop(key), problems) for key in list(value) if key in _SECTIONS}
    problems += [f"{key}: unknown; expected one of {', '.join(sorted(_SECTIONS))}" for key in value]
    if problems:
        raise BindingsError("\n".join(f"{path}: {problem}" for problem in problems))
    return Bindings(home=home or path.parent, **read)


_SECTIONS: dict[str, Any] = {
    "executor": ExecutorOptions,
    "connections": dict[str, Binding],
    "identities": dict[str, Principal],
    "accepts": Accepts,
    "simulation": Simulation,
    "kubernetes": KubernetesSettings,
    "carbon": CarbonSource,
}


def _read(section: str, value: Any, problems: list[str]) -> Any:
    if section == "executor" and isinstance(value, str):
        value = {"name": value}
    if section == "connections" and isinstance(value, dict):
        return {name: _convert(f"connections.{name}", item, Binding, problems) for name, item in value.items()}
    return _convert(section, value, _SECTIONS[section], problems)


def _convert(where: str, value: Any, kind: Any, problems: list[str]) -> Any:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, ValueError) as error:
        problems.append(f"{where}: {error}")
        return None
