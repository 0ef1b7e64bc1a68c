"""Child processes of tests: started with settings, asked over HTTP, killed, and always ended."""

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from support.forking import Forked, fork_server
from support.wait import wait_until


class Child:
    """A Python module, its `main`, in a process of its own."""

    def __init__(self, module: str, environ: Mapping[str, str], folder: Path, *, name: str = "child") -> None:
        self.log = folder / f"{name}.log"
        self.port_file = folder / f"{name}.port"
        self._module = module
        self._environ = {**os.environ, **environ, "LANDBRIDGE_PORT_FILE": str(self.port_file)}
        self.process: Forked | None = None

    def start(self, **more: str) -> None:
        """Start the process, with further environment variables."""
        self.port_file.unlink(missing_ok=True)
        self.process = fork_server().start(self._module, {**self._environ, **more}, self.log)

    @property
    def exit_code(self) -> int | None:
        return self.process.poll() if self.process else None

    @property
    def port(self) -> int:
        return int(self.port_file.read_text()) if self.port_file.exists() else 0

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def ended(self, timeout_s: float = 20.0) -> int:
        """Return the exit code once the process has ended."""
        await wait_until(lambda: self.exit_code is not None, f"{self._module} ends", timeout_s=timeout_s)
        assert self.exit_code is not None
        return self.exit_code

    async def get(self, path: str) -> tuple[int, str]:
        """GET from the child; (0, "") while it does not answer."""
        if not self.port:
            return 0, ""
        try:
            async with asyncio.timeout(3):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                try:
                    writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
                    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
                    return int(head.split()[1]), body
                finally:
                    writer.close()
        except (OSError, TimeoutError, IndexError):
            return 0, ""

    async def status(self, path: str) -> int:
        return (await self.get(path))[0]

    async def ready(self, timeout_s: float = 20.0) -> None:
        async def is_ready() -> bool:
            assert self.exit_code is None, f"ended with {self.exit_code}:\n{self.log.read_text()[-3000:]}"
            return await self.status("/readyz") == 200

        await wait_until(is_ready, f"{self._module} is ready", timeout_s=timeout_s, every_s=0.02)

    async def stop(self) -> None:
        """End it, by force if it does not end by itself."""
        if self.process is None or self.exit_code is not None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            await self.ended(10)
        except AssertionError:
            self.process.kill()
            await self.ended()
