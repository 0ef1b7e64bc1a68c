"""A whole Landbridge on this machine for benchmarks: `landbridge up`, eight simulated environments, one local one."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from landbridge.client import HttpClient, LandbridgeError, NotFoundError
from landbridge_embedded import environments
from landbridge_embedded.control import ask
from landbridge_embedded.layout import DataDirectory

from .measure import Usage, usage

PROJECT = "bench"
QUEUE = "bench"
APPLICATION = "load"
ROOT = Path(__file__).parents[2]
_UP_SECONDS = 120
_JOIN_SECONDS = 60.0


class Instance:
    """One data directory. Everything runs as `landbridge up` starts it: every part a process of its own, durable."""

    def __init__(self, root: Path) -> None:
        self.data = DataDirectory.locate(root)
        self.creds = root / "load.creds"
        self.token = ""

    # -- life -----------------------------------------------------------------------------------------------------

    async def up(self) -> float:
        """Start in the background; return the seconds until everything was ready."""
        started = time.perf_counter()
        await self._landbridge("up", "--empty", "--detach", "--data", str(self.data.root))
        return time.perf_counter() - started

    async def down(self) -> None:
        await self._landbridge("down", "--data", str(self.data.root))

    async def _landbridge(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "landbridge.cli.main", *arguments]
        done = await asyncio.to_thread(
            subprocess.run, command, cwd=ROOT, capture_output=True, text=True, timeout=_UP_SECONDS, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"landbridge {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")

    # -- addresses ------------------------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, Any]:
        found = self.data.read_state()
        if found is None:
            raise RuntimeError(f"{self.data.root} has no running instance")
        return found

    def url(self, service: str) -> str:
        return str(self.state["urls"][service])

    def port(self, service: str) -> int:
        return int(self.state["services"][service]["port"])

    def client(self) -> HttpClient:
        return HttpClient(self.url("dashboard"), self.data.admin_token.read_text().strip())

    def pids(self) -> dict[str, int]:
        """Return every process by name; dispatchers of simulated environments under one name each."""
        return {name: int(row["pid"]) for name, row in self.state["services"].items() if row["pid"]}

    def usage(self) -> dict[str, Usage]:
        return {name: usage(pid) for name, pid in self.pids().items()}

    # -- contents -------------------------------------------------------------------------------------------------

    async def register(self, names: Sequence[str], *, executor: str, duration: str = "20ms") -> None:
        """Register project, queue and environments, let them join and start their dispatchers."""
        async with self.client() as client:
            for document in (_project(), _queue()):
                await client.apply(json.dumps(document).encode())
            for name in names:
                await client.apply(json.dumps(_contract(name, executor, duration)).encode())
            for name in names:
                answer = await _joined(client, name)
                bindings = json.dumps(_bindings(executor, duration))
                environments.write(self.data, name, creds=str(answer["creds"]), bindings=bindings)
                await asyncio.to_thread(ask, self.data, "start-environment", timeout_s=60.0, name=name)
            await self._connected(client, names)

    async def grant(self) -> None:
        """Make the load's own token and NATS credentials, as an application has them."""
        async with self.client() as client:
            answer = await client.create_access(APPLICATION, PROJECT, "submitter")
        self.token = str(answer["token"])
        self.creds.write_text(str(answer["creds"]))

    async def _connected(self, client: HttpClient, names: Sequence[str]) -> None:
        deadline = time.monotonic() + _JOIN_SECONDS
        while True:
            found = {row["environment"]: json.dumps(row.get("link")) for row in await client.environments()}
            if all('"connected"' in found.get(name, "") for name in names):
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"environments did not connect: {found}")
            await asyncio.sleep(0.2)


async def _joined(client: HttpClient, name: str) -> dict[str, Any]:
    deadline = time.monotonic() + _JOIN_SECONDS
    while True:
        try:
            return await client.join(name)
        except (NotFoundError, LandbridgeError):
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.1)


def _project() -> dict[str, Any]:
    spec = {"description": "Load of the benchmark", "defaultQueue": QUEUE}
    return {"apiVersion": "landbridge/v1", "kind": "Project", "metadata": {"name": PROJECT}, "spec": spec}


def _queue() -> dict[str, Any]:
    spec = {"description": "Load of the benchmark", "priority": 10, "concurrency": 1_000_000}
    return {"apiVersion": "landbridge/v1", "kind": "Queue", "metadata": {"name": QUEUE}, "spec": spec}


def _contract(name: str, executor: str, duration: str) -> dict[str, Any]:
    runtime: dict[str, Any] = {"executor": executor}
    if executor == "simulated":
        runtime["simulation"] = {"duration": duration}
    return {
        "apiVersion": "landbridge/v1",
        "kind": "EnvironmentContract",
        "metadata": {"name": name, "version": 1},
        "spec": {
            "owner": {"team": "bench", "contact": "bench@example.org"},
            "location": {"regions": ["eu-de-1"], "jurisdictions": ["DE", "EU"], "operatedBy": "own"},
            "runtime": runtime,
            "workloads": ["job"],
            "classes": {"cpu-general": {"cpu": "100000", "memory": "100Ti"}},
            "quotas": {"running": 100_000},
            "cost": {"currency": "EUR", "perHour": {"cpu-general": 0.05}},
            "objectives": {"availability": "99.5%", "startWithin": "1m"},
        },
    }


def _bindings(executor: str, duration: str) -> dict[str, Any]:
    if executor == "simulated":
        return {"executor": "simulated", "simulation": {"duration": duration, "slots": 100_000}}
    return {"executor": {"name": executor, "slots": 64}}


def operation(number: int, *, environment: str = "", command: Sequence[str] = ("true",), tiny: bool = False) -> bytes:
    """Make a small but complete operation; distinct names, few requirement classes, as real load has.

    `tiny` ones ask for so little that a hundred fit beside each other on one core that really exists.
    """
    requests = {"cpu": f"{100 + number % 20 * 50}m", "memory": f"{64 + number % 8 * 32}Mi"}
    if tiny:
        requests = {"cpu": "10m", "memory": "8Mi"}
    spec: dict[str, Any] = {
        "type": "job",
        "queue": QUEUE,
        "command": list(command),
        "env": {"SHARD": str(number)},
        "resources": {"requests": requests},
        "lifecycle": {"expectedDuration": "1s", "timeout": "5m", "disconnection": {"policy": "continue"}},
    }
    if environment:
        spec["constraints"] = {"environments": {"allow": [environment]}}
    metadata = {"name": f"load-{number}", "project": PROJECT, "labels": {"team": "bench"}}
    return json.dumps(
        {"apiVersion": "landbridge/v1", "kind": "Operation", "metadata": metadata, "spec": spec}, separators=(",", ":")
    ).encode()
