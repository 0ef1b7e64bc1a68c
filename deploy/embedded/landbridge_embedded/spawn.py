"""Ways to start a service process: forked from the zygote, or by a new interpreter."""

import asyncio
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.logtail import log_tail
from landbridge_embedded.process import exit_of, launch, wait_for
from landbridge_embedded.zygote import TITLE_ROOM

_REPLY_S = 120.0  # the first reply comes after all imports; a crowded machine takes its time
_STOP_S = 5.0
_RUN_MAIN = "import importlib, sys; sys.exit(importlib.import_module(sys.argv[1]).main())"


@dataclass(frozen=True, slots=True)
class Job:
    """One process to start: `main` of a module, with exactly this environment."""

    name: str
    module: str
    environ: Mapping[str, str]
    log: Path
    title: str


@dataclass(eq=False)
class Running:
    """A started process."""

    pid: int
    ended: "asyncio.Future[int]" = field(repr=False)

    async def wait(self) -> int:
        """Exit code, negative for a signal."""
        return await asyncio.shield(self.ended)

    def send(self, signum: signal.Signals) -> None:
        if not self.ended.done():
            try:
                os.kill(self.pid, signum)
            except ProcessLookupError:
                return


class Spawner(Protocol):
    """Starts processes that end with this one."""

    async def start(self) -> None: ...

    async def spawn(self, job: Job) -> Running: ...

    async def stop(self) -> None: ...


class ForkSpawner:
    """Through the zygote. When that dies, its processes die with it and it is started again at the next job."""

    def __init__(self, preload: list[str], log: Path, title: str) -> None:
        self._preload, self._log, self._title = preload, log, title
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reader_task: asyncio.Task[None] | None = None
        self._ids = itertools.count(1)
        self._replies: dict[int, asyncio.Future[Running]] = {}
        self._running: dict[int, Running] = {}
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Start the zygote; it imports while the caller goes on."""
        async with self._starting:
            if self._reader_task is not None and not self._reader_task.done():
                return
            ours, theirs = socket.socketpair()
            number = theirs.fileno()
            command = [sys.executable, "-m", "landbridge_embedded.zygote", str(number), ",".join(self._preload)]
            with theirs:
                self._process = launch(
                    [*command, self._title, TITLE_ROOM], self._log, signal.SIGKILL, pass_fds=[number]
                )
            reader, self._writer = await asyncio.open_connection(sock=ours)
            self._reader_task = asyncio.create_task(self._read(reader), name="zygote-reader")

    async def spawn(self, job: Job) -> Running:
        """Fork one service. EmbeddedError when the zygote does not answer."""
        await self.start()
        number = next(self._ids)
        reply: asyncio.Future[Running] = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        request = {"id": number, "name": job.name, "module": job.module, "log": str(job.log), "title": job.title}
        try:
            assert self._writer is not None
            self._writer.write(json.dumps({**request, "environ": dict(job.environ)}).encode() + b"\n")
            async with asyncio.timeout(_REPLY_S):
                return await reply
        except (OSError, TimeoutError) as error:
            raise EmbeddedError(f"{job.name}: could not be forked; {self._log} says:\n{log_tail(self._log)}") from error
        finally:
            self._replies.pop(number, None)

    async def stop(self) -> None:
        """End the zygote, and with it whatever still runs."""
        if self._writer is not None:
            self._writer.close()
        process = self._process
        if process is not None:
            if not await wait_for(lambda: process.poll() is not None, _STOP_S):
                process.kill()
            process.wait(timeout=_STOP_S)
        if self._reader_task is not None:
            await self._reader_task

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._take(json.loads(line))
        except OSError:
            pass
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(ConnectionResetError("the zygote ended"))
        for running in self._running.values():
            if not running.ended.done():
                running.ended.set_result(-signal.SIGKILL)
        self._running.clear()

    def _take(self, message: dict[str, Any]) -> None:
        pid = int(message["pid"])
        if "id" in message:
            running = self._running[pid] = Running(pid, asyncio.get_running_loop().create_future())
            reply = self._replies.get(message["id"])
            if reply is not None and not reply.done():
                reply.set_result(running)
        elif (ended := self._running.pop(pid, None)) is not None:
            ended.ended.set_result(int(message["code"]))


class ExecSpawner:
    """A new interpreter for each: slower and larger, for systems where forking after imports is not safe."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        return None

    async def spawn(self, job: Job) -> Running:
        # The title is an argument that nobody reads but people, in `ps`.
        command = [sys.executable, "-c", _RUN_MAIN, job.module, job.title]
        process = launch(command, job.log, signal.SIGKILL, environ=job.environ)
        running = Running(process.pid, asyncio.get_running_loop().create_future())
        waiter = asyncio.create_task(_watch(process, running), name=f"wait-{job.name}")
        self._waiters.add(waiter)
        waiter.add_done_callback(self._waiters.discard)
        return running

    async def stop(self) -> None:
        if self._waiters:
            await asyncio.wait(set(self._waiters), timeout=_STOP_S)


async def _watch(process: "subprocess.Popen[bytes]", running: Running) -> None:
    running.ended.set_result(await exit_of(process))


def choose_spawner(preload: list[str], log: Path, title: str) -> Spawner:
    """Fork on Linux; elsewhere, or with LANDBRIDGE_PREFORK=0, start an interpreter for each."""
    if sys.platform == "linux" and os.environ.get("LANDBRIDGE_PREFORK", "1") != "0":
        return ForkSpawner(preload, log, title)
    return ExecSpawner()
