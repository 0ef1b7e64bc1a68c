"""An embedded nats-server with JetStream on loopback, durable: every acknowledged message is on disk."""

import signal
from pathlib import Path

from landbridge.bus.configuration import CentreSettings, ClusterSettings, centre_config
from landbridge_embedded.binaries import find_nats
from landbridge_embedded.ports import free_port
from landbridge_embedded.process import Child, end_leftover, http_ok, start_ready, write_private

_READY_S = 15.0


class NatsServer:
    """`async start()`, `async stop()`; data in ROOT/nats, log in ROOT/logs/nats.log.

    `accounts` is configuration text for operator mode (operator, resolver, preload: `landbridge.bus.accounts`);
    empty means no authentication, which is for tests only. Ports of 0 are picked once and kept over restarts.
    `leaf_port`: where sites with their own NATS connect; 0: nowhere.
    """

    def __init__(
        self,
        root: Path,
        *,
        accounts: str = "",
        port: int = 0,
        monitor_port: int = 0,
        domain: str = "hub",
        sync_interval: str = "always",
        max_payload_bytes: int = 8 * 1024 * 1024,
        host: str = "127.0.0.1",
        leaf_port: int = 0,
        name: str = "landbridge",
        cluster: ClusterSettings | None = None,
    ) -> None:
        self.directory = root.resolve() / "nats"
        self.port, self.monitor_port = port, monitor_port
        self._fixed = (port, monitor_port)
        self._accounts, self._domain, self._sync = accounts, domain, sync_interval
        self._max_payload_bytes = max_payload_bytes
        self._host = host
        self.leaf_port = leaf_port
        self.leaf_files = ("", "")
        """Certificate and key for sites; empty: no TLS, which is for loopback and networks of your own."""
        self._name, self.cluster = name, cluster
        self._started = False
        self.child = Child("nats-server", (), root.resolve() / "logs" / "nats.log", signal.SIGTERM)

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start and wait until JetStream answers; EmbeddedError otherwise."""
        binary = find_nats()
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        pid_file, config = self.directory / "nats.pid", self.directory / "nats.conf"
        await end_leftover(pid_file, str(config), self.child.stop_signal)

        def prepare() -> None:
            self._pick_ports()
            write_private(config, self.config())
            self.child.command = (str(binary), "--config", str(config), "--pid", str(pid_file))

        await start_ready(
            self.child,
            prepare,
            lambda: http_ok(self.monitor_port, "/healthz"),
            timeout_s=_READY_S,
            ports_are_fixed=self._started or all(self._fixed),
        )
        self._started = True

    async def stop(self) -> None:
        await self.child.stop()

    def config(self) -> str:
        """Return the whole configuration as text."""
        settings = CentreSettings(
            self._accounts,
            name=self._name,
            listen=f"{self._host}:{self.port}",
            monitor=f"{self._host}:{self.monitor_port}",
            store=str(self.directory / "jetstream"),
            domain=self._domain,
            sync=self._sync,
            max_payload_bytes=self._max_payload_bytes,
            leaf_listen=f"{self._host}:{self.leaf_port}" if self.leaf_port else "",
            leaf_cert=self.leaf_files[0],
            leaf_key=self.leaf_files[1],
            cluster=self.cluster,
        )
        return centre_config(settings)

    def _pick_ports(self) -> None:
        if not self._started:
            self.port = self._fixed[0] or free_port()
            self.monitor_port = self._fixed[1] or free_port()
