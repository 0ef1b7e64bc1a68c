"""Every executor in turn, in a site of its own, which must be empty of processes in the end."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from contract.executors.cluster import KubernetesHarness
from contract.executors.harness import Harness, ProcessHarness, SimulatedHarness, Watcher, a_lease, make_executor
from contract.executors.real_cluster import RealKubernetesHarness
from landbridge_dispatch.executors.local import procfs
from landbridge_dispatch.executors.local.executor import LocalExecutor
from support.kubernetes.access_point import real_is_wanted
from support.wait import wait_until

HARNESSES: dict[str, Callable[[Path], Harness]] = {
    "kubernetes": KubernetesHarness,
    "process": ProcessHarness,
    "simulated": SimulatedHarness,
}
if real_is_wanted():
    HARNESSES["real-kubernetes"] = RealKubernetesHarness


@pytest.fixture(params=sorted(HARNESSES))
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Harness]:
    async for ready in opened(HARNESSES[request.param](tmp_path / "site")):
        yield ready


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Harness]:
    """The process executor alone, for what only real processes can show."""
    async for ready in opened(ProcessHarness(tmp_path / "site")):
        yield ready


async def opened(harness: Harness) -> AsyncIterator[Harness]:
    async with harness.around():
        async for ready in working(harness):
            yield ready
    await wait_until(lambda: not strays(harness.home), "no process of the site is left")


async def working(harness: Harness) -> AsyncIterator[Harness]:
    """An executor in what stands around it already."""
    harness.executor = make_executor(harness.home)
    await harness.executor.open()
    harness.executor.hold_lease(a_lease())
    try:
        yield harness
    finally:
        if isinstance(harness.executor, LocalExecutor):
            left = await harness.executor.shut_down(keep_workloads=False, grace_ms=100)
            assert left == 0
        await harness.executor.close()


def strays(home: Path) -> list[int]:
    """Processes whose working directory lies in the site."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and procfs.start_ticks(int(entry.name)) is not None:
            try:
                if (entry / "cwd").resolve().is_relative_to(home):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.fixture
async def kubernetes(tmp_path: Path) -> AsyncIterator[KubernetesHarness]:
    """The executor for clusters alone, for what only a cluster can do."""
    harness = KubernetesHarness(tmp_path / "site")
    async for _ in opened(harness):
        yield harness


@pytest.fixture
async def cluster_watcher(kubernetes: KubernetesHarness) -> AsyncIterator[Watcher]:
    watching = Watcher(kubernetes.executor)
    yield watching
    await watching.close()


@pytest.fixture
async def watcher(harness: Harness) -> AsyncIterator[Watcher]:
    watching = Watcher(harness.executor)
    yield watching
    await watching.close()


@pytest.fixture
async def process_watcher(process: Harness) -> AsyncIterator[Watcher]:
    watching = Watcher(process.executor)
    yield watching
    await watching.close()
