"""What must stand before a workload's processes are forked. Runs in the guardian; standard library only."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from landbridge_dispatch.executors.local import slots
from landbridge_dispatch.executors.local.cgroups import Cgroup
from landbridge_dispatch.executors.local.order import Order
from landbridge_dispatch.executors.local.processes import Start
from landbridge_dispatch.executors.local.watches import PRIVATE


class NotStartedError(Exception):
    """The workload did not start. `code` is the reason, the text is for people; `denied`: it was not allowed to."""

    def __init__(self, code: str, message: str, *, denied: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.denied = denied


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything but the processes."""

    order: Order
    env: dict[str, str]
    work: Path
    cgroup: Cgroup | None

    def starts(self, log_fd: int) -> Iterator[Start]:
        """Yield one start per rank."""
        join = self.cgroup.join if self.cgroup is not None else _stay
        for rank in range(self.order.ranks):
            env = self.env | rank_variables(rank, self.order.ranks, self.env)
            yield Start(self.order.argv, env, self.work, log_fd, self.order.user, join)


def prepare(slot: Path, order: Order, secrets: dict[str, str], cgroup_base: Path | None) -> Prepared:
    """Directories, variables and cgroup. Raises NotStartedError."""
    work = slot / slots.WORK
    try:
        for path in (work, work / PRIVATE):
            path.mkdir(mode=0o755, exist_ok=True)
            if order.user is not None:
                os.chown(path, *order.user)
        if order.user is not None:
            # Passable, not readable, for another user than ours.
            for path in (slot.parent, slot):
                path.chmod(0o711)
        directories = [place.directory for place in order.outputs.values()]
        if order.checkpoint is not None:
            directories.append(order.checkpoint.directory)
        for directory in directories:
            make_directory(directory, order.user)
        # Secrets are read here and now, so that they are stored nowhere.
        read = {key: Path(path).read_text(encoding="utf-8").strip() for key, path in order.secret_files.items()}
        cgroup = None if cgroup_base is None else Cgroup.create(cgroup_base, slot.name, order.memory_bytes)
    except (OSError, ValueError) as failure:
        raise NotStartedError("failed-to-start", f"cannot prepare the start: {failure}") from failure
    return Prepared(order, {**order.env, **secrets, **read, slots.MARKER: slot.name}, work, cgroup)


def make_directory(path: str, user: tuple[int, int] | None) -> None:
    """Make `path`, whose links are resolved, and give it to `user`. A link planted since then is an error."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open("/", flags)
    try:
        for part in Path(path).parts[1:]:
            made = _make_below(fd, part)
            below = os.open(part, flags, dir_fd=fd)
            os.close(fd)
            fd = below
            if made and user is not None:
                os.fchown(fd, *user)
    finally:
        os.close(fd)


def _make_below(fd: int, name: str) -> bool:
    try:
        os.mkdir(name, 0o755, dir_fd=fd)
    except FileExistsError:
        return False
    return True


def rank_variables(rank: int, world: int, env: dict[str, str]) -> dict[str, str]:
    """Return what a member of a gang needs to find the others, under our names and those that frameworks read."""
    if world == 1:
        return {}
    size, number = str(world), str(rank)
    own = {"LANDBRIDGE_RANK": number, "LANDBRIDGE_WORLD_SIZE": size, "LANDBRIDGE_LOCAL_RANK": number}
    known = {"RANK": number, "WORLD_SIZE": size, "LOCAL_RANK": number, "MASTER_ADDR": "127.0.0.1"}
    return own | {key: value for key, value in known.items() if key not in env}


def _stay() -> None:
    """No cgroup to join."""
