"""A site without room on disk: what cannot be kept is not taken, what has ended is told once there is room again.

No file of the site's processes may grow, by a limit that any user may set; as root a small file system is filled too.
"""

import contextlib
import json
import resource
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.dispatcher.centre import Centre
from integration.dispatcher.site import Site
from integration.dispatcher.work import work
from landbridge.schema.wire.report_v1 import AttemptOutcome, AttemptState
from landbridge_dispatch.executors.local.client import LauncherClient
from landbridge_embedded.nats import NatsServer
from support.wait import wait_until

_MIB = 2**20


async def processes(site: Site) -> list[int]:
    """Return the dispatcher, the launcher and all guardians."""
    assert site.process is not None
    client = LauncherClient(site.home)
    launcher = int((await client.ask({"do": "ping"}))["pid"])
    await client.close()
    listed = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return [site.process.pid, launcher, *map(int, listed)]


@contextlib.contextmanager
def no_file_may_grow(pids: list[int]) -> Iterator[None]:
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids}
    for pid, (_, hard) in before.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def starts(site: Site) -> list[str]:
    audit = site.home / "audit.jsonl"
    entries = [json.loads(line) for line in audit.read_text().splitlines()] if audit.exists() else []
    return [entry["operation"] for entry in entries if entry["event"] == "start"]


async def told(site: Site) -> None:
    """Wait until the site says that it has no room: it looks from time to time."""

    async def said() -> bool:
        found = await site.ask(do="doctor")
        return any("make room" in str(check["message"]) for check in found["checks"] if check["name"] == "storage")

    await wait_until(said, "the site says that it has no room", timeout_s=20, every_s=0.2)


async def test_without_room_nothing_is_taken_and_what_ends_is_told_later(centre: Centre, process_site: Site) -> None:
    site = process_site
    await site.start()
    await centre.until_connected()
    running = await centre.offer(work(site, seconds=3))
    await centre.until(running, AttemptState.STARTED)

    with no_file_may_grow(await processes(site)):
        await told(site)
        offered = await centre.offer(work(site))
        await wait_until(lambda: ended(site, running.operation), "the work that ran has ended", timeout_s=20)
        assert starts(site) == [running.operation]
        assert [key for key, _ in centre.claims if key == offered.operation] == []
        assert [report.state for report in centre.of(running)] == [AttemptState.STARTED]

    finished = await centre.until(running, AttemptState.FINISHED, timeout_s=40)
    assert finished.outcome is AttemptOutcome.COMPLETED
    taken = await centre.until(offered, AttemptState.FINISHED, timeout_s=40)
    assert taken.outcome is AttemptOutcome.COMPLETED
    assert starts(site) == [running.operation, offered.operation]
    assert await site.terminate() == 0  # it has not been restarted by anybody


def ended(site: Site, operation: str) -> bool:
    """Whether no process of an operation is left."""
    marker = f"LANDBRIDGE_OPERATION={operation}".encode()
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if place.name.isdecimal() and marker in (place / "environ").read_bytes().split(b"\0"):
                return False
    return True


@pytest.fixture
async def small_site(nats_server: NatsServer, centre: Centre, tmp_path: Path) -> AsyncIterator[Site]:
    """A site whose directory is a file system of 24 MiB."""
    home = tmp_path / "small"
    home.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(home)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    try:
        made = Site(home / "site", nats_server.url)
        yield made
        await made.close()
    finally:
        subprocess.run(["umount", "--lazy", str(home)], check=True)


@pytest.mark.root
async def test_a_full_file_system_takes_nothing_and_recovers_by_itself(centre: Centre, small_site: Site) -> None:
    site = small_site
    await site.start()
    await centre.until_connected()
    running = await centre.offer(work(site, seconds=2))
    await centre.until(running, AttemptState.STARTED)
    filler = site.home.parent / "filler"
    fill(filler)
    await told(site)
    offered = await centre.offer(work(site))
    await wait_until(lambda: ended(site, running.operation), "the work that ran has ended", timeout_s=20)
    assert starts(site) == [running.operation]
    assert centre.claims == [(running.operation, "1.1")]

    filler.unlink()

    for offer in (running, offered):
        finished: Any = await centre.until(offer, AttemptState.FINISHED, timeout_s=40)
        assert finished.outcome is AttemptOutcome.COMPLETED
    assert starts(site) == [running.operation, offered.operation]
    assert await site.terminate() == 0


def fill(file: Path) -> None:
    """Leave no byte free."""
    with file.open("wb", buffering=0) as out, contextlib.suppress(OSError):
        for size in (_MIB, 4096, 1):
            with contextlib.suppress(OSError):
                while out.write(b"\0" * size):
                    pass
