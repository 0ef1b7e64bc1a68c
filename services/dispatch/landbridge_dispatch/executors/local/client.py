"""The dispatcher's end of the launcher's socket: finds the launcher, starts one if there is none, asks it."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from landbridge.client.site import short_path
from landbridge_dispatch.executors.local import files
from landbridge_dispatch.executors.local.launcher import SOCKET_FILE, frame

START_WITHIN_S = 10.0
ANSWER_WITHIN_S = 60.0
AGAIN_AFTER_S = (0.02, 0.1, 0.3, 0.0)
_ROOT = Path(__file__).resolve().parents[3]
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from landbridge_dispatch.executors.local.launcher import main; sys.exit(main())"
)


class LauncherError(Exception):
    """The launcher cannot be started or does not answer."""


def spawn_launcher(home: Path, cgroup: str) -> None:
    """Start a launcher that is no child of this process and outlives it. One too many ends by itself."""
    log = os.open(home / "launcher.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, files.FILE_MODE)
    try:
        # Isolated and without site-packages: a small process, and nothing of our own variables in it.
        subprocess.run(  # noqa: S603 - our own interpreter and program
            [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_ROOT), str(home), "--cgroup", cgroup, "--detach"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            close_fds=True,
            cwd=home,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            check=True,
            timeout=START_WITHIN_S,
        )
    finally:
        os.close(log)


class LauncherClient:
    """One connection, requests in turn; reconnects, and starts a launcher where none answers."""

    def __init__(self, home: Path, cgroup: str = "auto") -> None:
        self._home = home
        self._cgroup = cgroup
        self._lock = asyncio.Lock()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the launcher's answer; asks again, of a new one, if it died. Raises LauncherError."""
        failure: Exception | None = None
        async with self._lock:
            for wait_s in AGAIN_AFTER_S:
                try:
                    async with asyncio.timeout(ANSWER_WITHIN_S):
                        return await self._exchange(request)
                except (OSError, EOFError, TimeoutError, ValueError) as error:
                    await self._hang_up()
                    failure = error
                    # One that is just being killed may still take a connection.
                    await asyncio.sleep(wait_s)
        raise LauncherError(f"the launcher of {self._home.name} does not answer: {failure}") from failure

    async def close(self) -> None:
        """Hang up; the launcher goes on."""
        async with self._lock:
            await self._hang_up()

    async def _exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._writer is None or self._reader is None:
            self._reader, self._writer = await self._connect()
        self._writer.write(frame(request))
        await self._writer.drain()
        length = int.from_bytes(await self._reader.readexactly(4), "big")
        answer: dict[str, Any] = json.loads(await self._reader.readexactly(length))
        return answer

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        deadline = asyncio.get_running_loop().time() + START_WITHIN_S
        spawned = False
        while True:
            try:
                return await asyncio.open_unix_connection(short_path(self._home / SOCKET_FILE), limit=1 << 24)
            except OSError:
                if asyncio.get_running_loop().time() > deadline:
                    raise
            if not spawned:
                await asyncio.to_thread(spawn_launcher, self._home, self._cgroup)
                spawned = True
            await asyncio.sleep(0.01)

    async def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
        self._reader = self._writer = None
