"""What is below a process is found without a look at the rest of the machine."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from landbridge_dispatch.executors.local import procfs
from support.wait import wait_until

_TREE = "sleep 60 & (sleep 60; true) & (setsid sh -c 'sleep 60; true' & wait) & wait"


@pytest.fixture
def tree() -> Iterator[int]:
    """A shell with a tree of processes below it, one of them in a session of its own."""
    child = subprocess.Popen(["/bin/sh", "-c", _TREE])
    yield child.pid
    for pid in (*procfs.descendants(child.pid), child.pid):
        os.kill(pid, procfs.KILL)
    child.wait()


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


async def grown(tree: int) -> None:
    def all_sleep() -> bool:
        return [name_of(pid) for pid in procfs.descendants(tree)].count("sleep") == 3

    await wait_until(all_sleep, "the tree has grown")


async def test_a_subtree_is_what_a_look_at_every_process_finds(tree: int) -> None:
    await grown(tree)
    assert sorted(procfs.subtree(tree)) == sorted(procfs.descendants(tree))
    assert tree not in procfs.subtree(tree)


async def test_a_subtree_costs_no_look_at_other_processes(tree: int, monkeypatch: pytest.MonkeyPatch) -> None:
    await grown(tree)
    monkeypatch.setattr(procfs, "children_of_all", lambda: pytest.fail("every process was looked at"))
    assert procfs.subtree(tree)


async def test_without_lists_of_children_every_process_is_looked_at(tree: int, monkeypatch: pytest.MonkeyPatch) -> None:
    await grown(tree)
    monkeypatch.setattr(procfs, "_lists_children", lambda: False)
    assert sorted(procfs.subtree(tree)) == sorted(procfs.descendants(tree))
