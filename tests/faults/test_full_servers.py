"""No room in the broker, none for Postgres: what cannot be kept is refused, and all goes on once there is room."""

import asyncio
import contextlib
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from landbridge.client.errors import BusyError, ServerError, UnreachableError
from support.wait import wait_until

from . import directed
from .load import Diary
from .world import SERVICES, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.xdist_group("faults")]

SITE = "site-a"
_SMALL_BYTES = 1_500_000
_LARGE_BYTES = 400_000_000
_SUBMISSIONS_MAX = 600
_REFUSED = (BusyError, ServerError, UnreachableError)
_SETTINGS = {"LANDBRIDGE_OUTBOX_AGE_LIMIT_SECONDS": "2"}


def a_world(tmp_path: Path) -> World:
    return World(tmp_path / "run" / "data", ttl_s=6.0, sites=(SITE,), settings=_SETTINGS)


def budget(world: World) -> Path:
    return world.data.root / "nats" / "budget"


@pytest.fixture
async def small_broker(tmp_path: Path) -> AsyncIterator[World]:
    """An instance whose streams may hold little: the broker refuses what is more, as on a full disk."""
    made = a_world(tmp_path)
    budget(made).parent.mkdir(parents=True, mode=0o700)
    budget(made).write_text(f"{_SMALL_BYTES}\n")
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def small_database(tmp_path: Path) -> AsyncIterator[World]:
    """An instance whose Postgres has a file system of its own, which can be filled."""
    made = a_world(tmp_path)
    place = made.data.root / "postgres"
    place.mkdir(parents=True, mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=320m,mode=700", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    try:
        await made.open()
        yield made
        await made.close()
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


async def submit_until_refused(world: World, diary: Diary) -> tuple[list[str], str]:
    """Submit one after the other; return what was acknowledged, and the refusal."""
    taken: list[str] = []
    async with world.application() as client:
        for number in range(_SUBMISSIONS_MAX):
            key = f"fill-{time.monotonic_ns()}"
            try:
                answer = await client.submit(directed.operation(key, ["true"], sites=[SITE]), idempotency_key=key)
            except _REFUSED as refusal:
                return taken, str(refusal)
            diary.note("accepted", key, answer.id)
            taken.append(answer.id)
            if number > 100:
                await asyncio.sleep(0.02)
    raise AssertionError(f"{len(taken)} submissions were taken, and none refused")


async def all_goes_on(world: World, diary: Diary, taken: list[str]) -> None:
    """Everything that was acknowledged ends once, and new work is taken."""
    await directed.until_ready(world, world.parts)
    after = await directed.submit(world, diary, {"after": directed.operation("after", ["true"], sites=[SITE])})
    await directed.until_phase(world, [*taken, *after.values()], "completed", timeout_s=90)
    findings = await directed.audited(world, diary)
    assert findings.good, directed.told(findings)


async def test_a_full_broker_refuses_new_work_and_loses_none(small_broker: World, tmp_path: Path) -> None:
    world, diary = small_broker, Diary(tmp_path / "clients.jsonl")
    with contextlib.closing(diary):
        taken, refusal = await submit_until_refused(world, diary)
        assert taken
        assert "outbox" in refusal or "again" in refusal.lower(), refusal
        # Room again: a larger budget, declared by the init step that follows every return of the broker.
        async with directed.away(world, "nats"):
            budget(world).write_text(f"{_LARGE_BYTES}\n")
        await all_goes_on(world, diary, taken)


@pytest.mark.root
async def test_postgres_without_room_refuses_new_work_and_recovers_by_itself(
    small_database: World, tmp_path: Path
) -> None:
    world, diary = small_database, Diary(tmp_path / "clients.jsonl")
    pids = {name: world.pid(name) for name in SERVICES}
    filler = world.data.root / "postgres" / "filler"
    with contextlib.closing(diary):
        before = await directed.submit(world, diary, {"before": directed.operation("before", ["true"], sites=[SITE])})
        fill(filler)
        taken, _ = await submit_until_refused(world, diary)
        filler.unlink()

        def back() -> bool:
            return bool(world.state["services"]["postgres"]["state"] == "running")

        await wait_until(back, "Postgres is back", timeout_s=60, every_s=0.1)
        await all_goes_on(world, diary, [*before.values(), *taken])
    assert {name: world.pid(name) for name in SERVICES} == pids


def fill(file: Path) -> None:
    """Leave no byte free."""
    with file.open("wb", buffering=0) as out:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while out.write(b"\0" * size):
                    pass
