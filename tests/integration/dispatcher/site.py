"""A dispatcher as a process of its own, in a directory of its own, that a test may kill and start again."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import yaml

from landbridge.client.site import SiteError, ask_site
from support.forking import Forked, fork_server
from support.wait import wait_until

_MODULE = "landbridge_dispatch.dispatcher"


class Site:
    """One environment's directory and dispatcher."""

    def __init__(self, home: Path, url: str, *, executor: Any = "process", creds: Path | None = None) -> None:
        self.home = home
        self.url = url
        self.creds = creds
        self.process: asyncio.subprocess.Process | Forked | None = None
        self.port_file = home / "port"
        (home / "data/events").mkdir(parents=True)
        (home / "data/events/part.csv").write_text("a,b\n")
        settings = {"name": executor} if isinstance(executor, str) else executor
        bindings = {
            "executor": {"startWait": "2s", "cgroup": "off", **settings},
            "connections": {
                "events": {"directory": "data/events"},
                "models": {"directory": "data/models", "access": "read-write"},
                "checkpoints": {"directory": "data/checkpoints", "access": "read-write"},
            },
            "accepts": {"projects": ["retail-eu"]},
        }
        (home / "bindings.yaml").write_text(yaml.safe_dump(bindings))

    async def start(self, *prefix: str, **environ: str) -> None:
        """Start the dispatcher, forked; by a command of its own behind the words of `prefix`, if there are any."""
        settings = {
            "LANDBRIDGE_ENVIRONMENT": "onprem-a",
            "LANDBRIDGE_DATA_DIR": str(self.home),
            "LANDBRIDGE_NATS_URL": self.url,
            "LANDBRIDGE_PORT_FILE": str(self.port_file),
            "LANDBRIDGE_LOG_FORMAT": "json",
            **({"LANDBRIDGE_NATS_CREDS": str(self.creds)} if self.creds else {}),
        }
        # Compiled modules are kept, or every start would compile hundreds of them again.
        settings = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **settings, **environ}
        log = self.home / "dispatcher.log"
        if not prefix:
            self.process = fork_server().start(f"{_MODULE}.__main__", settings, log)
            return
        with log.open("ab") as output:
            command = (*prefix, sys.executable, "-W", "error", "-m", _MODULE)
            self.process = await asyncio.create_subprocess_exec(*command, stdout=output, stderr=output, env=settings)

    async def kill(self) -> None:
        """SIGKILL, as a crash."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    async def terminate(self) -> int:
        """SIGTERM; return the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            return await self.process.wait()

    async def ended(self) -> int:
        assert self.process is not None
        async with asyncio.timeout(20):
            return await self.process.wait()

    async def ask(self, **request: Any) -> dict[str, Any]:
        return await asyncio.to_thread(ask_site, self.home, request)

    async def until_started(self) -> None:
        async def answers() -> bool:
            try:
                return bool((await self.ask(do="status"))["ok"])
            except SiteError:
                return False

        await wait_until(answers, "the site answers")

    def log(self) -> str:
        path = self.home / "dispatcher.log"
        return path.read_text() if path.exists() else ""

    async def close(self) -> None:
        """End everything that runs here."""
        await self.kill()
        if (self.home / "slots").is_dir():
            from landbridge_dispatch.executors.local.client import LauncherClient

            client = LauncherClient(self.home)
            await client.ask({"do": "quit", "keepWorkloads": False, "graceMs": 100})
            await client.close()
