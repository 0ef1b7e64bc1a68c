"""Where a cgroup is delegated, the kernel enforces memory and nothing escapes; skipped where none can be made."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contract.executors.conftest import opened
from contract.executors.harness import Behaviour, Harness, ProcessHarness, Watcher, a_work, run
from landbridge_dispatch.executors.local.cgroups import Cgroup


def own_group() -> Path | None:
    """This process's own memory cgroup of either version, if groups can be made below it."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            base = Path("/sys/fs/cgroup") / controllers / path.lstrip("/")
            with contextlib.suppress(OSError):
                Cgroup.create(base, "landbridge-trial", 1 << 26).remove()
                return base
    return None


@pytest.fixture
async def grouped(tmp_path: Path) -> AsyncIterator[tuple[Harness, Path]]:
    base = own_group()
    if base is None:
        pytest.skip("no cgroup with memory can be made here")
    async for harness in opened(ProcessHarness(tmp_path / "site", cgroup=str(base))):
        yield harness, base


@pytest.mark.root  # for others a group has to be delegated first
async def test_the_kernel_ends_what_takes_too_much_memory_and_it_is_told_apart(grouped: tuple[Harness, Path]) -> None:
    harness, base = grouped
    watcher = Watcher(harness.executor)
    hungry = a_work(harness.command(Behaviour(out_of_memory=True)), resources={"requests": {"memory": "64Mi"}})
    modest = a_work(harness.command(Behaviour()), resources={"requests": {"memory": "64Mi"}})
    await run(harness.executor, hungry, modest)

    view = await watcher.end(hungry.key)

    assert view.reason == "out-of-memory"
    assert (await watcher.end(modest.key)).reason == ""
    await watcher.close()
    assert not list(base.glob("op-*"))
