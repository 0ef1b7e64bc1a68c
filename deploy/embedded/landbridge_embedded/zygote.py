"""A process that imports everything once and forks the services from it.

Ten Python processes that import the same libraries cost ten times the start and the memory; forks of one share both.
Each service is a process of its own, with its own name, session, log and environment. The supervisor speaks to this
process over one socket, a line of JSON each:

    -> {"id": 1, "name": ..., "module": ..., "environ": {...}, "log": ...}
    <- {"id": 1, "pid": 4711}
    <- {"pid": 4711, "code": -9}            when it ended; negative for a signal

The process holds no event loop and no thread, so that forking is safe. It ends when the socket closes.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from landbridge_embedded.process import die_with_parent, open_log

# Room in argv, which is where `ps` reads the name of a process; see `set_title`.
TITLE_ROOM = "-" * 120
_PR_SET_NAME = 15


def main() -> None:
    """Serve a socket. Arguments: its descriptor, modules to import beforehand, our title, room for longer ones."""
    control = socket.socket(fileno=int(sys.argv[1]))
    preload(sys.argv[2].split(","))
    set_title(sys.argv[3], "zygote")
    gc.collect()
    gc.freeze()  # a collection in a child would otherwise touch, and so copy, every shared page
    job = Server(control).serve()
    if job is not None:
        run(job)


def preload(modules: list[str]) -> None:
    """Import what the services will need; what fails here fails again in the service, with its own log."""
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001 - any fault of a service's module must not keep the others from starting
            sys.stderr.write(f"{name} could not be imported beforehand:\n{traceback.format_exc()}")
    if threading.active_count() > 1:
        sys.stderr.write("an import started a thread; forks may misbehave\n")
    sys.stderr.flush()


class Server:
    """Reads jobs, forks, reports ends."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._buffer = b""
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def serve(self) -> dict[str, Any] | None:
        """Serve until the supervisor is gone (None). In a forked child: return the job to run."""
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _signum, _frame: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fd == self._wake_read:
                        self._reap()
                        continue
                    data = self._control.recv(1 << 20)
                    if not data:
                        return None
                    self._buffer += data
                    job = self._fork_all()
                    if job is not None:
                        return job

    def _fork_all(self) -> dict[str, Any] | None:
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            job: dict[str, Any] = json.loads(line)
            parent = os.getpid()
            sys.stdout.flush()
            sys.stderr.flush()
            pid = os.fork()
            if pid == 0:
                die_with_parent(signal.SIGKILL, parent)
                self._leave()
                return job
            self._send({"id": job["id"], "pid": pid})
        return None

    def _leave(self) -> None:
        """In the child: nothing of the zygote stays open or set."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._control.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._send({"pid": pid, "code": os.waitstatus_to_exitcode(status)})

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the supervisor is gone; the next read says so
            self._control.sendall(json.dumps(message).encode() + b"\n")


def run(job: dict[str, Any]) -> None:
    """Become the service: session, environment, log, name; then its `main`. Ends the process."""
    os.setsid()
    os.environ.clear()
    os.environ.update(job["environ"])
    _redirect(Path(job["log"]))
    set_title(job["title"], job["name"])
    sys.argv = [job["name"]]
    code = 1
    try:
        result = importlib.import_module(job["module"]).main()
        code = result if isinstance(result, int) else 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        if isinstance(stop.code, str):
            sys.stderr.write(stop.code + "\n")
    except KeyboardInterrupt:
        code = 130
    except BaseException:  # noqa: BLE001 - what the interpreter would print at top level
        traceback.print_exc()
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()  # noqa: SLF001 - telemetry flushes there; the interpreter's teardown is skipped
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _redirect(log: Path) -> None:
    with open_log(log) as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def set_title(title: str, name: str) -> None:
    """Show `title` in `ps`, by writing over argv, and a short name as the command. Nothing where /proc is missing."""
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, see proc(5)
    except (OSError, IndexError, ValueError):
        return
    if start and end - start > 1:
        text = title.encode()[: end - start - 1]
        ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)
    ctypes.CDLL(None).prctl(_PR_SET_NAME, f"lb-{name}".encode()[:15], 0, 0, 0)


if __name__ == "__main__":
    main()
