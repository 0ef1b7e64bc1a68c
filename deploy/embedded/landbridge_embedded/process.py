"""Child processes that end with their parent.

A child gets PR_SET_PDEATHSIG, so that also `kill -9` of the parent leaves nothing behind. The kernel ties that signal
to the *thread* that forked: start children from a thread that lives as long as they should (the main one).
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.logtail import log_tail

_PR_SET_PDEATHSIG = 1
_LOG_BYTES_MAX = 16 * 1024 * 1024
_POLL_S = 0.005
# Loaded once, before any fork: the child between fork and exec only calls through it.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(signum: signal.Signals, parent: int) -> None:
    """Ask the kernel for `signum` when `parent` ends; called in the child. Nothing on systems without it."""
    if _LIBC is None:
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
    if os.getppid() != parent:  # it ended before the request was made
        os._exit(1)


def launch(
    command: Sequence[str],
    log: Path,
    end_signal: signal.Signals,
    *,
    environ: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> "subprocess.Popen[bytes]":
    """Start a process in a session of its own that gets `end_signal` when this one ends; output goes to `log`."""
    parent = os.getpid()
    with open_log(log) as output:
        return subprocess.Popen(  # noqa: S603 - the commands are ours
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environ) if environ is not None else None,
            pass_fds=pass_fds,
            start_new_session=True,  # Ctrl-C reaches the supervisor only, which stops the rest in order
            preexec_fn=lambda: die_with_parent(end_signal, parent),  # noqa: PLW1509 - one C call, no locks taken
        )


async def exit_of(process: "subprocess.Popen[bytes]") -> int:
    """Wait for the end of a process; its exit code, negative for a signal."""
    if not hasattr(os, "pidfd_open"):
        return await asyncio.to_thread(process.wait)
    if process.poll() is None:
        descriptor = os.pidfd_open(process.pid)
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
    return process.wait()


@dataclass
class Child:
    """One process with its output in a log file.

    `start` and `stop` are tied to no event loop, so a test fixture may call them from different ones.
    """

    name: str
    command: Sequence[str]
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False, repr=False)

    @property
    def pid(self) -> int:
        """Process id, 0 when never started."""
        return self._process.pid if self._process else 0

    @property
    def exit_code(self) -> int | None:
        """Exit code, negative for a signal; None while it runs or before the start."""
        return self._process.poll() if self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def wait(self) -> int:
        """Wait for the end of a started process; its exit code, negative for a signal."""
        assert self._process is not None, "started"
        return await exit_of(self._process)

    def launch(self) -> None:
        """Start the process; returns at once."""
        self._process = launch(self.command, self.log, self.stop_signal)

    async def stop(self, timeout_s: float = 10.0) -> int:
        """Signal, wait, and kill what does not end in time; the exit code (0 when it never ran)."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(self.stop_signal)
            if not await self._ended(timeout_s):
                self._process.kill()
                await self._ended(timeout_s)
        return self._process.wait(timeout=timeout_s)

    async def _ended(self, timeout_s: float) -> bool:
        process = self._process
        return process is None or await wait_for(lambda: process.poll() is not None, timeout_s)

    def log_tail(self, lines: int = 12) -> str:
        return log_tail(self.log, lines)


async def wait_for(ready: Callable[[], bool], timeout_s: float, *, poll_s: float = _POLL_S) -> bool:
    """Poll until `ready`; False when `timeout_s` passed first."""
    deadline = time.monotonic() + timeout_s
    while not ready():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(poll_s)
    return True


async def wait_ready(child: Child, probe: Callable[[], Awaitable[bool]], timeout_s: float) -> None:
    """Poll `probe` until it holds.

    Raises EmbeddedError with the end of the log when the process ends first or the time is over.
    """
    deadline = time.monotonic() + timeout_s
    while not await probe():
        if not child.running:
            raise EmbeddedError(
                f"{child.name} ended with code {child.exit_code}; {child.log} says:\n{child.log_tail()}"
            )
        if time.monotonic() >= deadline:
            await child.stop()
            raise EmbeddedError(
                f"{child.name}: not ready after {timeout_s:.0f} s; {child.log} says:\n{child.log_tail()}"
            )
        await asyncio.sleep(_POLL_S)


async def start_ready(
    child: Child,
    prepare: Callable[[], None],
    probe: Callable[[], Awaitable[bool]],
    *,
    timeout_s: float,
    ports_are_fixed: bool,
) -> None:
    """Prepare, launch and wait; again when a port picked a moment ago was taken before the server bound it."""
    for last in (ports_are_fixed, ports_are_fixed, True):
        prepare()
        child.launch()
        try:
            return await wait_ready(child, probe, timeout_s)
        except EmbeddedError as error:
            if last or "address already in use" not in str(error).lower():
                raise
    return None


def open_log(path: Path) -> IO[bytes]:
    """Append to a log that only its owner reads; a large one is set aside first, one old file is kept."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.exists() and path.stat().st_size > _LOG_BYTES_MAX:
        path.replace(path.with_suffix(path.suffix + ".1"))
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    scratch.replace(path)


async def end_leftover(pid_file: Path, marker: str, stop_signal: signal.Signals, timeout_s: float = 10.0) -> None:
    """End a server of an earlier run that is still there; `marker` in its command line proves that it is ours."""
    pid = _running_pid(pid_file, marker)
    if not pid:
        return
    for signum in (stop_signal, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)
        if await wait_for(lambda: not Path(f"/proc/{pid}").exists(), timeout_s):
            return


def lives(pid: int) -> bool:
    """Whether a process runs; one that ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (OSError, IndexError):
        pass
    if sys.platform == "linux":
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _running_pid(pid_file: Path, marker: str) -> int:
    try:
        pid = int(pid_file.read_text().split()[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (OSError, ValueError, IndexError):
        return 0
    return pid if marker in command else 0


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection whose answer was read; the peer may have gone first."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def http_ok(port: int, path: str) -> bool:
    """Whether a GET on loopback answers 200 within a second."""
    return (await _get(port, path)).partition(b"\r\n")[0].split(b" ")[1:2] == [b"200"]


async def http_body(port: int, path: str, token: str = "") -> str:
    """Body of a GET on loopback, whatever the status; empty when nobody answers."""
    return (await _get(port, path, token)).partition(b"\r\n\r\n")[2].decode(errors="replace")


async def _get(port: int, path: str, token: str = "") -> bytes:
    try:
        async with asyncio.timeout(1.0):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                sign = f"Authorization: Bearer {token}\r\n" if token else ""
                writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{sign}Connection: close\r\n\r\n".encode())
                return await reader.read()
            finally:
                await hang_up(writer)
    except (OSError, TimeoutError):
        return b""
