"""Service processes forked from one that has imported everything, as `landbridge up` starts them.

A new interpreter spends a second of processor time on imports before it does anything. Tests that start, kill and
start services again spend most of theirs there. One server a pytest process, started when it is first needed.
"""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from landbridge_embedded.process import launch
from landbridge_embedded.services import PRELOAD
from landbridge_embedded.zygote import TITLE_ROOM

_TESTS = Path(__file__).parents[1]
_ANSWER_SECONDS = 120.0  # the first answer comes after all imports
_POLL_SECONDS = 0.01


class Forked:
    """A forked process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, server: "ForkServer", pid: int) -> None:
        self._server = server
        self.pid = pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal, as far as it is known by now."""
        return self._server.code_of(self.pid)

    def poll(self) -> int | None:
        return self.returncode

    async def wait(self) -> int:
        while (code := self.returncode) is None:
            await asyncio.sleep(_POLL_SECONDS)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that forks; it ends, and with it whatever it forked, when this one does."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._pids: dict[int, int] = {}
        self._codes: dict[int, int] = {}
        number = theirs.fileno()
        modules = ",".join([*PRELOAD, "support.sample_service"])
        python = [sys.executable, "-W", "error"]
        command = [*python, "-m", "landbridge_embedded.zygote", str(number), modules, "tests", TITLE_ROOM]
        self._folder = tempfile.TemporaryDirectory(prefix="landbridge-tests-")
        self._log = Path(self._folder.name) / "fork-server.log"
        environ = {**os.environ, "PYTHONPATH": str(_TESTS)}
        with theirs:
            self._process: subprocess.Popen[bytes] = launch(
                command, self._log, signal.SIGKILL, environ=environ, pass_fds=[number]
            )

    def start(self, module: str, environ: Mapping[str, str], log: Path) -> Forked:
        """Run `main` of a module in a process of its own, with exactly this environment."""
        log.touch()  # so that it can be read at once
        number = next(self._numbers)
        job = {"id": number, "name": module, "module": module, "environ": dict(environ), "log": str(log)}
        self._control.setblocking(True)
        self._control.sendall(json.dumps({**job, "title": f"{module} of a test"}).encode() + b"\n")
        self._control.settimeout(_ANSWER_SECONDS)
        while number not in self._pids:
            self._read()
        return Forked(self, self._pids.pop(number))

    def code_of(self, pid: int) -> int | None:
        self._control.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self._read()
        return self._codes.get(pid)

    def _read(self) -> None:
        data = self._control.recv(1 << 16)
        if not data:
            raise RuntimeError(f"the fork server ended with {self._process.wait(5)}:\n{self._log.read_text()}")
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "id" in message:
                self._codes.pop(message["pid"], None)  # numbers of processes come round again
                self._pids[message["id"]] = message["pid"]
            else:
                self._codes[message["pid"]] = message["code"]


@cache
def fork_server() -> ForkServer:
    """Return the server of this pytest process."""
    return ForkServer()
