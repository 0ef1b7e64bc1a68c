"""The NATS of a site as a process that a test can kill and start again, with the very text that a site gets."""

import json
import signal
from pathlib import Path
from typing import Self

from landbridge.bus.configuration import LeafSettings, leaf_config, new_user, site_domain
from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge_embedded.binaries import find_nats
from landbridge_embedded.ports import free_port
from landbridge_embedded.process import Child, http_body, http_ok, wait_ready


class SiteNats:
    """One leaf node. `hub_port`: where the centre takes leaf nodes, or a proxy before it."""

    def __init__(self, root: Path, environment: str, creds: str, hub_port: int, *, ca: str = "") -> None:
        root.mkdir(parents=True, exist_ok=True)
        user = new_user()
        (root / "dispatcher.nkey").write_text(user.seed)
        (root / "leaf.creds").write_text(creds)
        port, monitor_port = free_port(), free_port()
        settings = LeafSettings(
            environment,
            f"nats-leaf://127.0.0.1:{hub_port}",
            user.public,
            listen=f"127.0.0.1:{port}",
            monitor=f"127.0.0.1:{monitor_port}",
            tls_ca=ca,
        )
        (root / "nats.conf").write_text(leaf_config(settings))
        self._take(root, environment, port, monitor_port)

    def _take(self, root: Path, environment: str, port: int, monitor_port: int) -> None:
        self.root, self.environment = root, environment
        self.port, self.monitor_port = port, monitor_port
        self.seed = root / "dispatcher.nkey"
        # Files are named as they lie in the directory, so it has to be the working one.
        command = ("env", f"--chdir={root}", str(find_nats()), "--config", "nats.conf")
        self.child = Child("site-nats", command, root / "nats.log", signal.SIGTERM)

    @classmethod
    def of_files(cls, root: Path, environment: str, port: int, monitor_port: int) -> Self:
        """Use a directory that somebody else has written."""
        made = cls.__new__(cls)
        made._take(root, environment, port, monitor_port)
        return made

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def domain(self) -> str:
        return site_domain(self.environment)

    async def start(self) -> None:
        self.child.launch()
        await wait_ready(self.child, lambda: http_ok(self.monitor_port, "/healthz?js-enabled-only=true"), 15.0)

    async def stop(self) -> None:
        await self.child.stop()

    async def kill(self) -> None:
        """SIGKILL, as a crash."""
        process = self.child._process
        assert process is not None
        process.kill()
        process.wait()

    async def linked(self) -> bool:
        """Whether it is connected to the centre."""
        text = await http_body(self.monitor_port, "/leafz")
        return bool(text) and bool(json.loads(text).get("leafnodes"))

    async def bus(self, name: str = "dispatcher") -> Bus:
        """Connect as the site's dispatcher."""
        return await connect(BusSettings(url=self.url, nkey=self.seed, domain=self.domain), name=name)
