"""A memory limit per workload, where the site has delegated a cgroup; both cgroup versions. Standard library only.

Without one, the guardian watches resident memory instead: it cannot stop a burst between two looks, and the kernel
chooses its victim by itself. RLIMIT_AS is not used: it limits address space, of which runtimes for accelerators
reserve many times what they touch.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layout:
    """How one cgroup version names its files."""

    limit: str
    swap_limit: str
    events: str


_V2 = Layout("memory.max", "memory.swap.max", "memory.events")
_V1 = Layout("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control")


class Cgroup:
    """One workload's group below a delegated one."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self._path = path
        self._layout = layout

    @classmethod
    def create(cls, base: Path, name: str, memory_bytes: int) -> "Cgroup":
        """Make the group and set its limit. Raises OSError where the site has not delegated `base`."""
        path = base / name
        path.mkdir(exist_ok=True)
        layout = _V2 if (path / _V2.limit).exists() else _V1
        group = cls(path, layout)
        try:
            if memory_bytes:
                (path / layout.limit).write_text(str(memory_bytes))
                # Swapping instead of ending would make the limit a slow death; not every kernel counts swap.
                with contextlib.suppress(OSError):
                    (path / layout.swap_limit).write_text("0" if layout is _V2 else str(memory_bytes))
        except OSError:
            group.remove()
            raise
        return group

    def join(self) -> None:
        """Move the calling process into the group."""
        (self._path / "cgroup.procs").write_text("0")

    def oom_kills(self) -> int:
        """How often the kernel has killed in this group for memory."""
        with contextlib.suppress(OSError):
            for line in (self._path / self._layout.events).read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return int(value)
        return 0

    def kill(self) -> None:
        """SIGKILL every process of the group, also one that has left its session."""
        try:
            (self._path / "cgroup.kill").write_text("1")
        except OSError:
            for pid in self._members():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def remove(self) -> None:
        """Remove the empty group; what is left of it is no reason to fail."""
        for _ in range(50):
            try:
                self._path.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)
            else:
                return

    def _members(self) -> list[int]:
        with contextlib.suppress(OSError):
            return [int(pid) for pid in (self._path / "cgroup.procs").read_text().split()]
        return []


def delegated_base(configured: str) -> Path | None:
    """Return the directory to make groups in: the configured one, or our own v2 group if it may hand on memory.

    None where there is none. A v1 hierarchy is used only if the site names it.
    """
    if configured == "off":
        return None
    if configured and configured != "auto":
        return Path(configured)
    with contextlib.suppress(OSError):
        own = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
        base = Path("/sys/fs/cgroup") / own[3:].lstrip("/")
        if "memory" in (base / "cgroup.subtree_control").read_text().split() and os.access(base, os.W_OK):
            return base
    return None
