"""The NATS of a site as a process that a test can kill and start again, with the very text that a site gets."""

import json
import signal
from pathlib import Path

from landbridge.bus.configuration import LeafSettings, leaf_config, new_user, site_domain
from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge_embedded.binaries import find_nats
from landbridge_embedded.process import Child, free_port, http_body, http_ok, wait_ready


class SiteNats:
    """One leaf node. `hub_port`: where the centre takes leaf nodes, or a proxy before it."""

    def __init__(self, root: Path, environment: str, creds: str, hub_port: int, *, ca: str = "") -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root, self.environment = root, environment
        self.port, self.monitor_port = free_port(), free_port()
        self.seed = root / "dispatcher.nkey"
        user = new_user()
        self.seed.write_text(user.seed)
        (root / "leaf.creds").write_text(creds)
        self.settings = LeafSettings(
            environment,
            f"nats-leaf://127.0.0.1:{hub_port}",
            user.public,
            listen=f"127.0.0.1:{self.port}",
            monitor=f"127.0.0.1:{self.monitor_port}",
            store=str(root / "jetstream"),
            creds=str(root / "leaf.creds"),
            tls_ca=ca,
        )
        config = root / "nats.conf"
        config.write_text(leaf_config(self.settings))
        command = (str(find_nats()), "--config", str(config))
        self.child = Child("site-nats", command, root / "nats.log", signal.SIGTERM)

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
