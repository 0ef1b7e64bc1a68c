"""The instance under test: short leases, two sites of local processes, two simulated ones, each behind its own wire."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.instance import ROOT, Instance
from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.client import HttpClient, LandbridgeError
from landbridge.store import Database
from landbridge_dispatch.executors.local.client import LauncherClient, LauncherError
from landbridge_embedded import environments
from landbridge_embedded.control import ask
from landbridge_embedded.process import http_body, http_ok
from support.proxy import Proxy

PROJECT = "faults"
QUEUE = "faults"
APPLICATION = "load"
CHECKPOINTS = "checkpoints"
PROCESS_SITES = ("site-a", "site-b")
SIMULATED_SITES = ("sim-a", "sim-b")
SITES = (*PROCESS_SITES, *SIMULATED_SITES)
SERVICES = (
    *("intake", "eligibility", "ranking", "coordinator"),
    *("contract-verifier", "lineage", "alerting", "dashboard"),
)
SERVERS = ("nats", "postgres", "redis")
READY_S = 120.0
_UP_S = 180


class World(Instance):
    """One instance; `ttl_s` is the time to live of an environment's lease.

    `slots`: how many workloads a site of local processes runs at once. `settings`: more LANDBRIDGE_ variables.
    """

    def __init__(
        self,
        root: Path,
        *,
        ttl_s: float,
        sites: tuple[str, ...] = SITES,
        slots: int = 64,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(root)
        self.ttl_s = ttl_s
        self.sites = sites
        self.slots = slots
        self.settings = dict(settings or {})
        self.wires: dict[str, Proxy] = {}
        self.creds_text = ""

    # -- life -----------------------------------------------------------------------------------------------------

    def environ(self) -> dict[str, str]:
        """Return settings with short times, so that minutes hold what takes hours otherwise."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LANDBRIDGE_")}
        return kept | {
            "LANDBRIDGE_LEASE_TTL_SECONDS": f"{self.ttl_s:g}",
            "LANDBRIDGE_LEASE_RENEWAL_SECONDS": f"{self.ttl_s / 3:g}",
            "LANDBRIDGE_OFFER_SECONDS": f"{2 * self.ttl_s:g}",
            "LANDBRIDGE_RESTART_CALM_SECONDS": "3",
            **self.settings,
        }

    async def _landbridge(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "landbridge.cli.main", *arguments]
        done = await asyncio.to_thread(
            subprocess.run,
            command,
            cwd=ROOT,
            env=self.environ(),
            capture_output=True,
            text=True,
            timeout=_UP_S,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"landbridge {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")

    async def open(self) -> None:
        """Start, or go on with what runs already; wires first, so that dispatchers find them."""
        for name in self.sites:
            wire = self.wires[name] = Proxy(self._broker_port, port=self._wire_port(name))
            await wire.open()
        if not (self.data.root.exists() and self.data.is_held()):
            await self.up()
        await self._join()
        await self._grant()
        await self.until_ready()

    async def close(self) -> None:
        """Stop the instance and the wires."""
        try:
            await self.down()
        finally:
            for wire in self.wires.values():
                await wire.close()

    def _broker_port(self) -> int:
        return int(urlsplit(self.state["natsUrl"]).port or 0)

    def _wire_port(self, name: str) -> int:
        """Return the port of an earlier run on the same directory; 0 for a fresh one."""
        file = self.data.environments / name / "environment.json"
        return int(urlsplit(json.loads(file.read_text())["natsUrl"]).port or 0) if file.exists() else 0

    async def _join(self) -> None:
        (self.data.root.parent / CHECKPOINTS).mkdir(exist_ok=True)
        async with self.client() as client:
            for document in (_project(), _queue(), *(self.contract(name) for name in self.sites)):
                await client.apply(json.dumps(document).encode())
            for name in self.sites:
                if (self.data.environments / name / "environment.json").exists():
                    continue
                answer = await patiently(client, name)
                environments.write(
                    self.data,
                    name,
                    creds=str(answer["creds"]),
                    bindings=json.dumps(self.bindings(name)),
                    nats_url=f"nats://127.0.0.1:{self.wires[name].port}",
                )
                await asyncio.to_thread(ask, self.data, "start-environment", timeout_s=60.0, name=name)

    def contract(self, site: str) -> dict[str, Any]:
        return contract(site)

    def bindings(self, site: str) -> dict[str, Any]:
        return bindings(site, self.data.root.parent, self.slots)

    async def _grant(self) -> None:
        async with self.client() as client:
            answer = await client.create_access(APPLICATION, PROJECT, "submitter", replace=True)
        self.token, self.creds_text = str(answer["token"]), str(answer["creds"])

    # -- what runs ------------------------------------------------------------------------------------------------

    def home(self, site: str) -> Path:
        return self.data.environments / site

    @property
    def parts(self) -> tuple[str, ...]:
        """Everything that answers /readyz."""
        return (*SERVICES, *(f"dispatcher-{name}" for name in self.sites))

    def pid(self, name: str) -> int:
        """Return the process id of a part, 0 while it does not run."""
        return int(self.state["services"].get(name, {}).get("pid", 0))

    async def launcher_pid(self, site: str) -> int:
        client = LauncherClient(self.home(site))
        try:
            return int((await client.ask({"do": "ping"}))["pid"])
        except LauncherError:
            return 0
        finally:
            await client.close()

    def hold(self, name: str) -> None:
        """End a part and keep it down."""
        ask(self.data, "hold", name=name)

    def release(self, name: str) -> None:
        ask(self.data, "release", name=name)

    async def unready(self) -> list[str]:
        """Return the parts that are not ready."""
        state = self.state["services"]
        names = [name for name in self.parts if name in state]
        answers = await asyncio.gather(*(http_ok(int(state[name]["port"]), "/readyz") for name in names))
        down = [name for name in SERVERS if state[name]["state"] != "running"]
        return [*down, *(name for name, good in zip(names, answers, strict=True) if not good)]

    async def until_ready(self, timeout_s: float = READY_S) -> None:
        """Wait until every part is ready. RuntimeError that says what is not, and why."""
        deadline = time.monotonic() + timeout_s
        while waiting := await self.unready():
            if time.monotonic() > deadline:
                raise RuntimeError(f"not ready after {timeout_s:g} s: {await self.why(waiting)}")
            await asyncio.sleep(0.05)

    async def why(self, names: list[str]) -> dict[str, str]:
        """Return what parts say of their readiness."""
        state = self.state["services"]
        return {name: await http_body(int(state[name]["port"]), "/readyz?verbose") for name in names if name in state}

    # -- ways in --------------------------------------------------------------------------------------------------

    def application(self, *, retry_s: float = 0.0) -> HttpClient:
        return HttpClient(self.url("dashboard"), self.token, timeout_s=10.0, retry_s=retry_s)

    @property
    def dsn(self) -> str:
        password = (self.data.root / "postgres" / "password").read_text().strip()
        port = self.state["services"]["postgres"]["port"]
        return f"postgresql://landbridge:{password}@127.0.0.1:{port}/landbridge"

    async def database(self, schema: str) -> Database:
        return await Database.open(self.dsn, schema, size=1, application="faults")

    async def bus(self, user: str) -> Bus:
        """Connect as a service's user, or as `environment:NAME`, to look at or to repeat what was said."""
        kind, _, site = user.partition(":")
        creds = self.home(site) / "dispatcher.creds" if site else self.data.creds / f"{kind}.creds"
        settings = BusSettings(url=self.state["natsUrl"], creds=creds, connect_within_s=20.0)
        return await connect(settings, name=kind)

    async def application_bus(self) -> Bus:
        settings = BusSettings(url=self.state["natsUrl"], creds_text=self.creds_text, connect_within_s=20.0)
        return await connect(settings, name="application")


async def patiently(client: HttpClient, name: str, *, leaf: bool = False) -> dict[str, Any]:
    """Let an environment join as soon as its registration has arrived."""
    deadline = time.monotonic() + 60.0
    while True:
        try:
            return await client.join(name, leaf=leaf)
        except LandbridgeError:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.1)


def _project() -> dict[str, Any]:
    spec = {"description": "Work under faults", "defaultQueue": QUEUE}
    return {"apiVersion": "landbridge/v1", "kind": "Project", "metadata": {"name": PROJECT}, "spec": spec}


def _queue() -> dict[str, Any]:
    spec = {"description": "Work under faults", "priority": 10, "concurrency": 1_000_000}
    return {"apiVersion": "landbridge/v1", "kind": "Queue", "metadata": {"name": QUEUE}, "spec": spec}


def contract(name: str) -> dict[str, Any]:
    """Return the contract of a site of this world."""
    executor = "simulated" if name in SIMULATED_SITES else "process"
    runtime: dict[str, Any] = {"executor": executor}
    if executor == "simulated":
        runtime["simulation"] = {"duration": "20ms"}
    return {
        "apiVersion": "landbridge/v1",
        "kind": "EnvironmentContract",
        "metadata": {"name": name, "version": 1},
        "spec": {
            "owner": {"team": "faults", "contact": "faults@example.org"},
            "location": {"regions": ["eu-de-1"], "jurisdictions": ["DE", "EU"], "operatedBy": "own"},
            "runtime": runtime,
            "workloads": ["job"],
            "classes": {"cpu-general": {"cpu": "100000", "memory": "100Ti"}},
            "connections": {CHECKPOINTS: {"type": "volume", "access": "read-write", "projects": ["*"]}},
            "quotas": {"running": 100_000},
            "cost": {"currency": "EUR", "perHour": {"cpu-general": 0.05}},
            "objectives": {"availability": "99.5%", "startWithin": "1m"},
        },
    }


def bindings(name: str, shared: Path, slots: int = 64) -> dict[str, Any]:
    """Return what the connections of a site of this world are."""
    connections = {CHECKPOINTS: {"directory": str(shared / CHECKPOINTS), "access": "read-write"}}
    if name in SIMULATED_SITES:
        simulation = {"duration": "20ms", "slots": 100_000}
        return {"executor": {"name": "simulated"}, "simulation": simulation, "connections": connections}
    return {"executor": {"name": "process", "slots": slots}, "connections": connections}
