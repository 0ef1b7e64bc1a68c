"""The launcher of one environment: a small process beside the dispatcher that forks guardians and outlives restarts.

Forking a running interpreter costs about a millisecond where starting one costs tens. It imports only the standard
library, so that a guardian shares nearly all of its memory with it, and has one thread, so that forking is safe.

Requests come over a Unix socket as a length (4 bytes, big-endian) and JSON; only this user may connect:

    {"do": "ping"}                                               -> {"pid", "boot", "guardians"}
    {"do": "start", "slots": [{"slot": NAME, "secrets": {...}}]} -> {"started": {NAME: PID}}
    {"do": "close-lost"}                                         -> {"closed": [NAME]}
    {"do": "quit", "keepWorkloads": BOOL, "graceMs": INT}        -> {"left": INT}, and it ends
"""

import argparse
import contextlib
import fcntl
import gc
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from landbridge_dispatch.executors.local import files, guardian, procfs, slots
from landbridge_dispatch.executors.local.cgroups import delegated_base
from landbridge_dispatch.executors.local.course import StopRequest

SOCKET_FILE, LOCK_FILE = "launcher.sock", "launcher.lock"
REQUEST_BYTES_MAX = 16 * 2**20
FORGOTTEN_CHECK_S = 60.0
_LENGTH = struct.Struct(">I")


class Launcher:
    """The process's state: its sockets and the guardians it has forked."""

    def __init__(self, home: Path, cgroup: str) -> None:
        self._home = home
        self._boot = procfs.boot_id()
        self._cgroup_base = delegated_base(cgroup)
        self._guardians: dict[int, str] = {}
        self._selector = selectors.DefaultSelector()
        self._buffers: dict[socket.socket, bytearray] = {}
        # Never written to: its end tells guardians that this process is gone.
        self._life_read, self._life_write = os.pipe()
        self._quitting: tuple[bool, int] | None = None

    def serve(self) -> None:
        """Answer until asked to quit."""
        # By a relative name: the kernel takes 107 bytes, and the directory may lie deep.
        os.chdir(self._home)
        listener = _listen(Path(SOCKET_FILE))
        wakeup = _arm_signals()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._selector.register(wakeup, selectors.EVENT_READ, self._drain_wakeup)
        self._close_lost()
        # Objects made so far stay for ever: keep the collector from touching, and so copying, their pages in forks.
        gc.collect()
        gc.freeze()
        gc.disable()
        place = Path(SOCKET_FILE).stat().st_ino
        while self._quitting is None and not self._is_forgotten(place):
            for key, _ in self._selector.select(FORGOTTEN_CHECK_S):
                key.data(key.fileobj)
            self._reap()
        listener.close()
        if self._quitting is not None:
            (self._home / SOCKET_FILE).unlink(missing_ok=True)

    def _is_forgotten(self, place: int) -> bool:
        """Tell whether nobody can reach this launcher any more, its directory being gone, and nothing needs it."""
        if self._guardians:
            return False
        try:
            return Path(SOCKET_FILE).stat().st_ino != place
        except OSError:
            return True

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        pid, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.getuid():
            print(f"refused pid {pid}: user {uid}, expected {os.getuid()}", file=sys.stderr, flush=True)  # noqa: T201
            connection.close()
            return
        # A peer that stops reading must not stop the launcher for longer.
        connection.settimeout(5.0)
        self._buffers[connection] = bytearray()
        self._selector.register(connection, selectors.EVENT_READ, self._receive)

    def _receive(self, connection: socket.socket) -> None:
        try:
            chunk = connection.recv(1 << 16)
            buffer = self._buffers[connection]
            buffer += chunk
            if not chunk or len(buffer) > REQUEST_BYTES_MAX:
                self._hang_up(connection)
                return
            while (request := _take_frame(buffer)) is not None:
                connection.sendall(frame(self._answer(request)))
        except (OSError, ValueError, KeyError, TypeError):
            self._hang_up(connection)

    def _hang_up(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._buffers[connection]
        connection.close()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request.get("do"):
            case "ping":
                return {"pid": os.getpid(), "boot": self._boot, "guardians": len(self._guardians)}
            case "start":
                started = {item["slot"]: self._fork(item["slot"], item.get("secrets", {})) for item in request["slots"]}
                return {"started": started}
            case "close-lost":
                return {"closed": self._close_lost()}
            case "quit":
                keep, grace_ms = bool(request.get("keepWorkloads")), int(request.get("graceMs", 10_000))
                left = 0 if keep else self._stop_all(grace_ms)
                self._quitting = (keep, grace_ms)
                return {"left": left}
        return {"error": f"unknown request {request.get('do')!r}"}

    def _fork(self, name: str, secrets: dict[str, str]) -> int:
        if "/" in name or name.startswith("."):
            raise ValueError(f"not a slot name: {name!r}")
        pid = os.fork()
        if pid:
            self._guardians[pid] = name
            return pid
        try:
            self._leave_launcher()
            around = guardian.Surroundings(self._home, self._boot, self._life_read, self._cgroup_base)
            guardian.run(around, name, secrets)
        except BaseException:  # noqa: BLE001 - the child must never return into the launcher
            files.append_line(self._home / "guardian-faults.log", f"{name}: {traceback.format_exc()}")
        finally:
            os._exit(0)

    def _leave_launcher(self) -> None:
        """In a fresh guardian: drop what belongs to the launcher."""
        signal.set_wakeup_fd(-1)
        os.close(self._life_write)
        for key in list(self._selector.get_map().values()):
            os.close(key.fd)
        self._selector.close()

    def _reap(self) -> None:
        """Collect guardians that ended; one that ended without recording it is a lost one."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            name = self._guardians.pop(pid, None)
            if name is not None and slots.close_lost(self._home, name, self._boot):
                self._kill_strays()

    def _kill_strays(self) -> None:
        """Kill what a lost guardian left running: it is now below this process, beside guardians and their work."""
        children = procfs.children_of_all()
        guarded = {pid for one in self._guardians for pid in (one, *procfs.descendants(one, children))}
        for pid in procfs.descendants(os.getpid(), children):
            if pid not in guarded:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _close_lost(self) -> list[str]:
        return [name for name in slots.names(self._home) if slots.close_lost(self._home, name, self._boot)]

    def _stop_all(self, grace_ms: int) -> int:
        """Stop every workload of this environment, also those of an earlier launcher. How many would not end."""
        stop = StopRequest("environment-shut-down", grace_ms)
        waiting = [
            name for name in slots.names(self._home) if slots.request_stop(self._home / slots.SLOTS / name, stop)
        ]
        deadline = time.monotonic() + grace_ms / 1000 + 10
        while waiting and time.monotonic() < deadline:
            self._reap()
            time.sleep(0.02)
            waiting = [name for name in waiting if self._is_guarded(name)]
        return len(waiting)

    def _is_guarded(self, name: str) -> bool:
        slot = self._home / slots.SLOTS / name
        state, holder = slots.state_of(slot), slots.guardian_of(slot)
        ended = state is None or state["state"] in slots.ENDED
        return not ended and holder is not None and holder.lives(self._boot)

    def _drain_wakeup(self, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(fd, 4096)


def frame(value: dict[str, Any]) -> bytes:
    """Return one message as it goes over the socket."""
    body = json.dumps(value, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


def _take_frame(buffer: bytearray) -> dict[str, Any] | None:
    """Remove one whole message from `buffer`. Raises ValueError for what is none."""
    if len(buffer) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(buffer)
    if length > REQUEST_BYTES_MAX:
        raise ValueError(f"a request of {length} bytes; at most {REQUEST_BYTES_MAX} are read")
    if len(buffer) < _LENGTH.size + length:
        return None
    value = json.loads(bytes(buffer[_LENGTH.size : _LENGTH.size + length]))
    del buffer[: _LENGTH.size + length]
    if not isinstance(value, dict):
        raise ValueError("a request is a JSON object")
    return value


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    previous = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(previous)
    listener.listen(16)
    return listener


def _arm_signals() -> int:
    read, write = os.pipe()
    for fd in (read, write):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # Ended only on request, or by SIGKILL: a signal to a whole group of services must not take guardians' parent away.
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(signum, signal.SIG_IGN)
    return read


def main() -> int:
    """Serve one environment; ends at once, quietly, if another launcher already does."""
    parser = argparse.ArgumentParser(prog="landbridge-launcher")
    parser.add_argument("home", type=Path)
    parser.add_argument("--cgroup", default="auto")
    parser.add_argument("--detach", action="store_true", help="go on as a child of init")
    options = parser.parse_args()
    home: Path = options.home.resolve()
    if options.detach and os.fork():
        os._exit(0)
    # A lock of this process alone: guardians, being forked, do not hold it.
    lock = os.open(home / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.FILE_MODE)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 0
    procfs.prctl(procfs.PR_SET_NAME, b"lb-launcher")
    procfs.prctl(procfs.PR_SET_CHILD_SUBREAPER, 1)
    Launcher(home, options.cgroup).serve()
    return 0
