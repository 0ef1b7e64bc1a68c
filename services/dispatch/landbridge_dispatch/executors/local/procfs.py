"""What Linux tells about processes. A process is named by pid *and* start time, so that a reused pid is never hit."""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
WAKE = signal.SIGUSR1
KILL = signal.SIGKILL
_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_libc = ctypes.CDLL(None, use_errno=True)


def boottime_ns() -> int:
    """Return nanoseconds since boot, suspend included: the only clock that lease decisions use."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Return the kernel's id of this boot; times on the boot clock mean nothing across two of them."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def prctl(option: int, value: int | bytes) -> None:
    """Set one of the process's properties. Raises OSError."""
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")


def _stat(pid: int | str) -> list[bytes] | None:
    """Return fields of /proc/PID/stat after the command name: [0] state, [1] parent, [19] start time."""
    try:
        text = (_PROC / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return text[text.rindex(b")") + 2 :].split()


def start_ticks(pid: int) -> int | None:
    """Return the start time of a living process in clock ticks since boot; None for none, a zombie included."""
    fields = _stat(pid)
    if fields is None or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[19])


def is_alive(pid: int, ticks: int) -> bool:
    """Tell whether exactly that process still runs."""
    return start_ticks(pid) == ticks


def signal_exactly(pid: int, ticks: int, signum: signal.Signals) -> bool:
    """Signal the process of that pid and start time; False if it is gone. Never hits a successor of its pid."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not is_alive(pid, ticks):
            return False
        signal.pidfd_send_signal(fd, signum)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True


def children_of_all() -> dict[int, list[int]]:
    """Return the children of every process of the machine; it costs a look at each of them."""
    children: dict[int, list[int]] = {}
    for name in os.listdir(_PROC):  # noqa: PTH208 - names only, and fast
        if name.isdecimal() and (fields := _stat(name)) is not None and fields[0] != b"Z":
            children.setdefault(int(fields[1]), []).append(int(name))
    return children


def descendants(root: int, children: dict[int, list[int]] | None = None) -> list[int]:
    """Return every process below `root`, parents before children; `root` itself not included."""
    children = children_of_all() if children is None else children
    return _below(root, lambda parent: children.get(parent, []))


def subtree(root: int) -> list[int]:
    """Return what is below `root` as the processes' own lists of children tell it: as dear as the subtree is large.

    A thousand guardians that each looked at the whole machine would do nothing else. While children end, the kernel may
    leave out a sibling: only for those who look again.
    """
    return _below(root, _children) if _lists_children() else descendants(root)


def _below(root: int, children: Callable[[int], list[int]]) -> list[int]:
    found: list[int] = []
    frontier = [root]
    while frontier:
        frontier = [child for parent in frontier for child in children(parent)]
        found += frontier
    return found


def _children(pid: int) -> list[int]:
    """Return a process's living children; none if it has ended."""
    listed: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for thread in os.listdir(_PROC / str(pid) / "task"):  # noqa: PTH208
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
                listed += map(int, (_PROC / str(pid) / "task" / thread / "children").read_bytes().split())
    return [child for child in listed if (fields := _stat(child)) is not None and fields[0] != b"Z"]


@cache
def _lists_children() -> bool:
    """Whether this kernel lists them (CONFIG_PROC_CHILDREN)."""
    return (_PROC / "self" / "task" / str(os.getpid()) / "children").exists()


def resident_bytes(pids: list[int]) -> int:
    """Return the resident memory of the processes together; pages that they share count for each (an upper bound)."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            total += int((_PROC / str(pid) / "statm").read_bytes().split()[1])
    return total * _PAGE_BYTES


def proportional_bytes(pids: list[int]) -> int:
    """Return the resident memory with shared pages divided among their users; slow. Else the upper bound."""
    total = 0
    for pid in pids:
        try:
            lines = (_PROC / str(pid) / "smaps_rollup").read_bytes().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith(b"Pss:")) * 1024
        except (OSError, StopIteration):
            total += resident_bytes([pid])
    return total


def marked_processes(marker: bytes) -> list[int]:
    """Return the processes whose initial environment holds the entry `marker`; those of other users are not seen."""
    found = []
    for name in os.listdir(_PROC):  # noqa: PTH208 - names only, and fast
        if not name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            if marker in (_PROC / name / "environ").read_bytes().split(b"\x00"):
                found.append(int(name))
    return found


def oom_kills() -> int:
    """Return how often this kernel has killed a process for memory since boot; 0 where it does not tell."""
    with contextlib.suppress(OSError):
        for line in (_PROC / "vmstat").read_bytes().splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0
