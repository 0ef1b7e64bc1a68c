"""Servers started from the very files in deploy/nats, each in a directory of its own."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge_embedded.binaries import find_nats
from landbridge_embedded.ports import free_port
from landbridge_embedded.process import Child, http_body, http_ok, wait_ready

FOLDER = Path(__file__).parents[2] / "deploy" / "nats"
_READY_S = 30.0


class DeployedServer:
    """One server: `start`, `stop`, `kill`. It keeps its directory and its ports."""

    def __init__(self, folder: Path, file: str, name: str, variables: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(FOLDER / file, folder / file)
        self.folder, self.name = folder, name
        self.port, self.monitor_port = free_port(), free_port()
        settings = {
            "NATS_NAME": name,
            "NATS_LISTEN": f"127.0.0.1:{self.port}",
            "NATS_MONITOR": f"127.0.0.1:{self.monitor_port}",
            "NATS_STORE": "jetstream",
            **variables,
        }
        words = (f"{key}={value}" for key, value in settings.items())
        command = ("env", f"--chdir={folder}", *words, str(find_nats()), "--config", file)
        self.child = Child(name, command, folder / "nats.log", signal.SIGTERM)

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def launch(self) -> None:
        self.child.launch()

    async def until_ready(self, path: str = "/healthz?js-enabled-only=true") -> None:
        await wait_ready(self.child, lambda: http_ok(self.monitor_port, path), _READY_S)

    async def start(self) -> None:
        self.launch()
        await self.until_ready()

    async def stop(self) -> None:
        await self.child.stop()

    def kill(self) -> None:
        """SIGKILL, as a crash."""
        os.kill(self.child.pid, signal.SIGKILL)
        process = self.child._process
        assert process is not None
        process.wait()

    async def links(self) -> int:
        """Return how many leaf nodes, or servers to which this one is a leaf, are connected."""
        text = await http_body(self.monitor_port, "/leafz")
        return int(json.loads(text).get("leafnodes", 0)) if text else 0


class Deployment:
    """Servers of the centre with the keys and credentials that `landbridge_embedded.keys` makes."""

    def __init__(self, root: Path) -> None:
        self.data = root / "data"
        self.root = root
        self.servers: list[DeployedServer] = []
        environ = {**os.environ, "LANDBRIDGE_DATA": str(self.data), "LANDBRIDGE_NATS_RESOLVER_DIR": "accounts"}
        command = [sys.executable, "-m", "landbridge_embedded.keys"]
        subprocess.run(command, env=environ, check=True, timeout=60)

    @property
    def url(self) -> str:
        return ",".join(server.url for server in self.servers)

    @property
    def leaf_port(self) -> int:
        return self._leaf_ports[0]

    def single(self) -> DeployedServer:
        return self._add("single.conf", "n1", {})

    def hub(self) -> DeployedServer:
        self._leaf_ports = [free_port()]
        return self._add("hub.conf", "n1", {"NATS_LEAF_LISTEN": f"127.0.0.1:{self.leaf_port}"})

    def cluster(self, size: int = 3) -> Sequence[DeployedServer]:
        ports = [free_port() for _ in range(size)]
        self._leaf_ports = [free_port() for _ in range(size)]
        routes = ",".join(f"nats://route:secret@127.0.0.1:{port}" for port in ports)
        for number, port in enumerate(ports):
            variables = {
                "NATS_CLUSTER_LISTEN": f"127.0.0.1:{port}",
                "NATS_ROUTES": f"[{routes}]",
                "NATS_ROUTE_USER": "route",
                "NATS_ROUTE_PASSWORD": "secret",
                "NATS_LEAF_LISTEN": f"127.0.0.1:{self._leaf_ports[number]}",
            }
            self._add("cluster.conf", f"n{number + 1}", variables)
        return self.servers

    def _add(self, file: str, name: str, variables: Mapping[str, str]) -> DeployedServer:
        server = DeployedServer(self.root / name, file, name, variables)
        shutil.copy(self.data / "nats" / "accounts.conf", server.folder / "accounts.conf")
        self.servers.append(server)
        return server

    async def start(self) -> None:
        for server in self.servers:
            server.launch()
        for server in self.servers:
            await server.until_ready()

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop() for server in self.servers))

    async def bus(self, service: str) -> Bus:
        """Connect as a service of the centre, to any of the servers."""
        creds = self.data / "creds" / f"{service}.creds"
        return await connect(BusSettings(url=self.url, creds=creds), name=service)
