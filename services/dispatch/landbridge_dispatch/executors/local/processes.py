"""Starting one process of a workload and ending all of them. Runs in a guardian; standard library only."""

import contextlib
import errno
import fcntl
import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from landbridge_dispatch.executors.local import procfs

_HANDLED = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGPIPE, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Start:
    """What one process needs. `log_fd` receives stdout and stderr; `join` puts it into its cgroup."""

    argv: list[str]
    env: dict[str, str]
    directory: Path
    log_fd: int
    user: tuple[int, int] | None
    join: Callable[[], None]


@dataclass(slots=True)
class Held:
    """A child that waits before exec: `release` lets it go, `discard` ends it unstarted."""

    pid: int
    _go: int
    _error: int

    def release(self) -> OSError | None:
        """Let it start. The error that kept the program from starting, if any."""
        os.write(self._go, b"1")
        os.close(self._go)
        with os.fdopen(self._error, "rb") as pipe:
            report = pipe.read()
        if not report:
            return None
        code, _, subject = report.decode(errors="replace").partition(" ")
        return OSError(int(code), os.strerror(int(code)), subject)

    def discard(self) -> None:
        """End it before it has started."""
        os.close(self._go)
        os.close(self._error)


def hold(start: Start) -> Held:
    """Fork a child in a session of its own that waits for `release`. It dies with this process."""
    go_read, go_write = os.pipe()
    error_read, error_write = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(go_write)
        _become(start, parent, go_read, error_write)
    os.close(go_read)
    os.close(error_write)
    return Held(pid, go_write, error_read)


def _become(start: Start, parent: int, go: int, error: int) -> NoReturn:
    """Prepare, in the child, wait, exec. Never returns; a failure is reported as `errno subject`."""
    subject = start.argv[0]
    try:
        os.setsid()
        for signum in _HANDLED:
            signal.signal(signum, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        _arrange_descriptors(start.log_fd, go, error)
        start.join()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if start.user is not None:
            subject = f"user {start.user[0]}"
            os.setgroups([])
            os.setgid(start.user[1])
            os.setuid(start.user[0])
        # After the change of user, which would clear it.
        procfs.prctl(procfs.PR_SET_PDEATHSIG, signal.SIGKILL)
        subject = str(start.directory)
        os.chdir(start.directory)
        subject = start.argv[0]
        os.umask(0o022)
        if os.getppid() != parent or os.read(_GO_FD, 1) != b"1":
            os._exit(125)
        os.execvpe(start.argv[0], start.argv, start.env)  # noqa: S606 - an argument list, never a shell
    except OSError as failure:
        with contextlib.suppress(OSError):
            os.write(_ERROR_FD, f"{failure.errno or errno.EIO} {subject}".encode())
    finally:
        os._exit(127)


_ERROR_FD, _GO_FD, _FIRST_FREE_FD = 3, 4, 10


def _arrange_descriptors(log: int, go: int, error: int) -> None:
    """Let 0 read nothing, 1 and 2 go to the log; exec closes the rest: 3 reports its failure, 4 lets it happen."""
    # First above the targets, so that none is overwritten before it was copied.
    sources = [os.open(os.devnull, os.O_RDONLY), log, log, error, go]
    for target, fd in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD, _FIRST_FREE_FD) for fd in sources]):
        os.dup2(fd, target, inheritable=target < _ERROR_FD)
    os.closerange(_GO_FD + 1, os.sysconf("SC_OPEN_MAX"))


def kill_everything() -> dict[int, int]:
    """Kill and reap every process below this one, daemonised ones included. Wait statuses by pid.

    Only for a subreaper: what a workload leaves behind is then below it. Returns when nothing is left, however long
    a process takes to die: saying that it has ended before it has would let a second copy start beside it.
    """
    statuses: dict[int, int] = {}
    while reap(statuses):
        _freeze()
        for pid in procfs.subtree(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    return statuses


def _freeze() -> None:
    """Stop the processes below this one until no new ones appear, so that forking cannot outrun killing."""
    stopped: set[int] = set()
    while fresh := [pid for pid in procfs.subtree(os.getpid()) if pid not in stopped]:
        for pid in fresh:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        stopped.update(fresh)


def reap(statuses: dict[int, int]) -> bool:
    """Collect what has ended into `statuses`; False once there is no child left at all."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        statuses[pid] = status


def ask_to_end(leader: int) -> None:
    """SIGTERM to the process group of `leader`."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGTERM)
