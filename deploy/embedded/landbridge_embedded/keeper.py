"""Keeps one process alive: starts it, waits for its end, starts it again with growing pauses."""

import asyncio
import contextlib
import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.logtail import log_tail
from landbridge_embedded.spawn import Running

Note = Callable[[str], None]


class KeptState(StrEnum):
    """What a kept process is doing."""

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "restarting"
    CRASH_LOOP = "crash-loop"
    HELD = "held"
    STOPPED = "stopped"


@dataclass
class RestartPolicy:
    """Pauses grow while a process keeps ending, and start over once it has lived for `calm_s`. All in seconds."""

    pauses_s: tuple[float, ...] = (0.1, 0.3, 1.0, 2.0, 5.0, 10.0)
    calm_s: float = 60.0
    loop_after: int = 4
    _ends: deque[float] = field(default_factory=lambda: deque(maxlen=16))

    def ended(self, started: float, now: float) -> float:
        """Note one end; the pause before the next start."""
        if now - started >= self.calm_s:
            self._ends.clear()
        self._ends.append(now)
        return self.pauses_s[min(len(self._ends), len(self.pauses_s)) - 1]

    @property
    def loops(self) -> bool:
        """Whether it ended so often in a row that somebody should look."""
        return len(self._ends) >= self.loop_after


class Keeper:
    """One kept process. `run` ends only by `stop`."""

    def __init__(
        self, name: str, start: Callable[[], Awaitable[Running]], log: Path, note: Note, policy: RestartPolicy
    ) -> None:
        self.name, self.log = name, log
        self.state = KeptState.STARTING
        self.restarts = 0
        self.last_exit: int | None = None
        self._start, self._note, self._policy = start, note, policy
        self._running: Running | None = None
        self._stopping = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()
        self._told = False
        self.on_change: Callable[[], None] = lambda: None
        self.tells_loops = True  # off while somebody waits for readiness and raises `complaint` himself

    @property
    def pid(self) -> int:
        """Process id, 0 while it does not run."""
        return self._running.pid if self._running and self.state is KeptState.RUNNING else 0

    def adopt(self, running: Running) -> None:
        """Watch a process that was started elsewhere."""
        self._running = running
        self._set(KeptState.RUNNING)

    async def run(self) -> None:
        """Start and restart until `stop`."""
        while not self._stopping.is_set():
            if not self._free.is_set():
                self._set(KeptState.HELD)
                await self._free.wait()
                continue
            started = time.monotonic()
            if self._running is None:
                try:
                    self._running = await self._start()
                except EmbeddedError as error:
                    self._note(f"{self.name}: {error}")
            if self._running is not None:
                self._set(KeptState.RUNNING)
                self.last_exit = await self._running.wait()
                self._running = None
            if self._stopping.is_set():
                break
            if self._free.is_set():
                await self._pause(started)
        self._set(KeptState.STOPPED)

    async def _pause(self, started: float) -> None:
        pause_s = self._policy.ended(started, time.monotonic())
        self.restarts += 1
        self._set(KeptState.CRASH_LOOP if self._policy.loops else KeptState.WAITING)
        if not self._policy.loops:
            self._told = False
            self._note(f"{self.name} ended ({describe_exit(self.last_exit)}); starting it again in {pause_s:g} s")
        elif not self._told:
            self._told = True  # once for each loop; the log has the rest
            if self.tells_loops:
                self._note(self.complaint())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._stopping.wait()

    def complaint(self) -> str:
        """Say that a process does not stay up, with the end of its log."""
        return (
            f"{self.name} ends again and again (last: {describe_exit(self.last_exit)}, {self.restarts} restarts); "
            f"{self.log} says:\n{log_tail(self.log)}"
        )

    def hold(self, signum: signal.Signals) -> None:
        """End the process and do not start it again before `release`: how an outage is rehearsed."""
        self._free.clear()
        if self._running is not None:
            self._running.send(signum)

    def release(self) -> None:
        """Start a held process again."""
        self._free.set()

    async def stop(self, timeout_s: float) -> None:
        """SIGTERM, then SIGKILL after `timeout_s`; returns when the process is gone."""
        self._stopping.set()
        self._free.set()
        running = self._running
        if running is None:
            return
        for signum in (signal.SIGTERM, signal.SIGKILL):
            running.send(signum)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await running.wait()
                    return
            self._note(f"{self.name} did not end within {timeout_s:g} s of {signum.name}")

    def leave(self) -> None:
        """Stop keeping, without touching the process: somebody else ends it."""
        self._stopping.set()
        self._free.set()

    def kill(self) -> None:
        """SIGKILL now; used when somebody insists."""
        self._stopping.set()
        self._free.set()
        if self._running is not None:
            self._running.send(signal.SIGKILL)

    def _set(self, state: KeptState) -> None:
        if state is not self.state:
            self.state = state
            self.on_change()


def describe_exit(code: int | None) -> str:
    """Word an exit code for people."""
    if code is None:
        return "it did not start"
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exit code {code}"
