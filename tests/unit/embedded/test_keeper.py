"""Restarting a process: growing pauses, a crash loop told once, a clean stop."""

import asyncio
import signal
from pathlib import Path

import pytest

from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.keeper import Keeper, KeptState, RestartPolicy, describe_exit
from landbridge_embedded.spawn import Running
from support.wait import wait_until


def quick_policy() -> RestartPolicy:
    return RestartPolicy(pauses_s=(0.001,), calm_s=60.0, loop_after=3)


def test_pauses_grow_while_a_process_keeps_ending() -> None:
    policy = RestartPolicy(pauses_s=(0.1, 1.0, 5.0), calm_s=60.0, loop_after=3)
    assert [policy.ended(0.0, now) for now in (1.0, 2.0, 3.0, 4.0)] == [0.1, 1.0, 5.0, 5.0]
    assert policy.loops


def test_a_process_that_lived_long_starts_over_with_the_shortest_pause() -> None:
    policy = RestartPolicy(pauses_s=(0.1, 1.0), calm_s=60.0, loop_after=2)
    policy.ended(0.0, 1.0)
    policy.ended(1.0, 2.0)
    assert policy.loops
    assert policy.ended(2.0, 100.0) == 0.1
    assert not policy.loops


async def test_a_crash_loop_is_told_once_with_the_end_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "intake.log"
    log.write_text("no database\n")
    notes: list[str] = []

    async def start() -> Running:
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        ended.set_result(3)
        return Running(1, ended)

    keeper = Keeper("intake", start, log, notes.append, quick_policy())
    task = asyncio.create_task(keeper.run())
    await wait_until(lambda: keeper.restarts >= 6, "six restarts")
    assert keeper.state is KeptState.CRASH_LOOP
    await keeper.stop(1.0)
    await task
    told = [note for note in notes if "again and again" in note]
    assert len(told) == 1
    assert "exit code 3" in told[0]
    assert "no database" in told[0]


async def test_a_start_that_fails_is_tried_again(tmp_path: Path) -> None:
    starts = 0

    async def start() -> Running:
        nonlocal starts
        starts += 1
        if starts == 1:
            raise EmbeddedError("not yet")
        return Running(7, asyncio.get_running_loop().create_future())

    keeper = Keeper("ranking", start, tmp_path / "log", lambda _note: None, quick_policy())
    task = asyncio.create_task(keeper.run())
    await wait_until(lambda: keeper.pid == 7, "the second start")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_stopping_between_two_starts_ends_at_once(tmp_path: Path) -> None:
    async def start() -> Running:
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        ended.set_result(1)
        return Running(1, ended)

    policy = RestartPolicy(pauses_s=(3600.0,))
    keeper = Keeper("alerting", start, tmp_path / "log", lambda _note: None, policy)
    task = asyncio.create_task(keeper.run())
    await wait_until(lambda: keeper.state is KeptState.WAITING, "the pause")
    await keeper.stop(1.0)
    await asyncio.wait_for(task, 1.0)
    assert str(keeper.state) == "stopped"


async def test_a_held_process_stays_down_until_it_is_released(tmp_path: Path) -> None:
    running: list[Running] = []

    async def start() -> Running:
        running.append(Running(2**22 + 7, asyncio.get_running_loop().create_future()))
        return running[-1]

    keeper = Keeper("nats", start, tmp_path / "log", lambda _note: None, quick_policy())
    task = asyncio.create_task(keeper.run())
    await wait_until(lambda: running, "the start")
    keeper.hold(signal.SIGTERM)
    running[0].ended.set_result(-15)
    await wait_until(lambda: keeper.state is KeptState.HELD, "it is held")
    assert len(running) == 1
    assert keeper.pid == 0
    keeper.release()
    await wait_until(lambda: len(running) == 2, "the second start")
    keeper.leave()
    running[1].ended.set_result(0)
    await asyncio.wait_for(task, 1.0)


def test_exit_codes_are_named() -> None:
    assert describe_exit(-9) == "killed by SIGKILL"
    assert describe_exit(2) == "exit code 2"
    assert describe_exit(None) == "it did not start"
