"""An embedded Valkey (or Redis) on loopback behind a password; it holds only what can be rebuilt."""

import asyncio
import secrets
import signal
from pathlib import Path

from landbridge_embedded.binaries import find_redis
from landbridge_embedded.ports import free_port
from landbridge_embedded.process import Child, end_leftover, hang_up, start_ready, write_private

_READY_S = 15.0


class RedisServer:
    """`async start()`, `async stop()`; data in ROOT/redis, log in ROOT/logs/redis.log."""

    def __init__(self, root: Path, *, port: int = 0, max_memory: str = "256mb") -> None:
        self.directory = root.resolve() / "redis"
        self.port = port
        self._fixed = port
        self._max_memory = max_memory
        self._started = False
        self._password = ""
        self.child = Child("valkey-server", (), root.resolve() / "logs" / "redis.log", signal.SIGTERM)

    @property
    def url(self) -> str:
        return f"redis://:{self._password}@127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        """Start and wait for the answer to PING; EmbeddedError otherwise."""
        binary = find_redis()
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._password = self._load_password()
        config, pid_file = self.directory / "redis.conf", self.directory / "redis.pid"
        await end_leftover(pid_file, str(config), self.child.stop_signal)

        def prepare() -> None:
            if not self._started:
                self.port = self._fixed or free_port()
            write_private(config, self.config(pid_file))
            self.child.command = (str(binary), str(config))

        await start_ready(
            self.child,
            prepare,
            self._answers,
            timeout_s=_READY_S,
            ports_are_fixed=self._started or bool(self._fixed),
        )
        self._started = True

    async def stop(self) -> None:
        await self.child.stop()

    def config(self, pid_file: Path) -> str:
        """Return the whole configuration as text."""
        return "\n".join(
            [
                "bind 127.0.0.1",
                f"port {self.port}",
                f'dir "{self.directory}"',
                f'pidfile "{pid_file}"',
                f"requirepass {self._password}",
                "daemonize no",
                "set-proc-title no",  # the command line then names the directory, as that of the others does
                "appendonly yes",
                "appendfsync everysec",
                'save ""',
                f"maxmemory {self._max_memory}",
                # A read model that does not fit is dropped and rebuilt; refusing writes would stop all of them.
                "maxmemory-policy allkeys-lru",
                "",
            ]
        )

    def _load_password(self) -> str:
        path = self.directory / "password"
        if not path.exists():
            write_private(path, secrets.token_hex(24))
        return path.read_text().strip()

    async def _answers(self) -> bool:
        """Whether a PING with our password is answered, which also proves that it is our server."""
        try:
            async with asyncio.timeout(1.0):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                try:
                    writer.write(f"AUTH {self._password}\r\nPING\r\n".encode())
                    return await reader.readline() == b"+OK\r\n" and await reader.readline() == b"+PONG\r\n"
                finally:
                    await hang_up(writer)
        except (OSError, TimeoutError):
            return False
