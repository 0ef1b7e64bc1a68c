"""What only real processes can show: nothing is left behind, whoever is killed, and nothing leaks in."""

import shutil
from typing import Any

from contract.executors.conftest import strays
from contract.executors.harness import (
    Behaviour,
    Harness,
    Watcher,
    a_lease,
    a_work,
    boot_ms,
    run,
    stop,
)
from contract.executors.probes import slot_directory, work_directory
from contract.executors.processes import DAEMON, audit, daemon_of, guardian_pid, is_gone, kill, launcher_pid, python
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.schema.wire.report_v1 import AttemptOutcome
from landbridge_dispatch.executors.local import slots
from landbridge_dispatch.executors.local.executor import LocalExecutor
from landbridge_dispatch.executors.protocol import SlotView
from support.wait import wait_until


async def test_a_daemon_that_outlives_its_parent_is_ended_with_the_work(
    process: Harness, process_watcher: Watcher
) -> None:
    work = a_work(python(DAEMON))
    await run(process.executor, work)
    daemon = await daemon_of(process, work.key)

    await process_watcher.end(work.key)

    assert is_gone(daemon)


async def test_stopping_ends_daemons_too(process: Harness, process_watcher: Watcher) -> None:
    work = a_work(python(DAEMON + "time.sleep(600)"))
    await run(process.executor, work)
    daemon = await daemon_of(process, work.key)
    await stop(process.executor, work, grace_ms=200)

    view = await process_watcher.end(work.key)

    assert view.reason == "cancelled"
    assert is_gone(daemon)


async def test_work_goes_on_when_its_launcher_dies_and_can_still_be_stopped(
    process: Harness, process_watcher: Watcher
) -> None:
    work = a_work(process.command(Behaviour(seconds=60)), lifecycle={"disconnection": {"policy": "continue"}})
    await run(process.executor, work)
    await process_watcher.until(work.key, SlotPhase.RUNNING)
    kill(await launcher_pid(process))
    await wait_until(lambda: any(entry["event"] == "launcher-lost" for entry in audit(process)), "it was noticed")
    assert process_watcher.phases(work.key) == [SlotPhase.RUNNING]

    await stop(process.executor, work)

    assert (await process_watcher.end(work.key)).reason == "cancelled"


async def test_a_new_launcher_starts_other_work_beside_what_it_took_over(
    process: Harness, process_watcher: Watcher
) -> None:
    long, short = a_work(process.command(Behaviour(seconds=60))), a_work(process.command(Behaviour()))
    await run(process.executor, long)
    await process_watcher.until(long.key, SlotPhase.RUNNING)
    kill(await launcher_pid(process))

    await run(process.executor, short)

    assert (await process_watcher.end(short.key)).phase is SlotPhase.FINISHED
    assert process_watcher.phases(long.key) == [SlotPhase.RUNNING]


async def test_work_stops_itself_in_time_although_launcher_and_dispatcher_are_dead(
    process: Harness, process_watcher: Watcher
) -> None:
    work = a_work(
        process.command(Behaviour(seconds=60, ignore_term=True)),
        lifecycle={"disconnection": {"policy": "stop-after-grace", "grace": "700ms"}},
    )
    lease = a_lease(seconds=2)
    process.executor.hold_lease(lease)
    await run(process.executor, work)
    await process_watcher.until(work.key, SlotPhase.RUNNING)
    await wait_until((work_directory(process, work.key) / "ready").exists, "it ignores the polite signal")
    kill(await launcher_pid(process))
    await process_watcher.close()  # from here on the dispatcher sees and does nothing

    await wait_until(lambda: any(entry["event"] == "stop" for entry in audit(process)), "it has stopped")

    late_ms = boot_ms() - (lease.valid_until + work.policy.grace_ms)
    assert -50 <= late_ms <= 1000
    view = await wait_until(lambda: ended(process, work.key), "the end is in the slot")
    assert view.reason == "self-stopped"


async def ended(process: Harness, key: Any) -> SlotView | None:
    view = await process.executor.look(key)
    return view if view is not None and view.ended else None


async def test_checkpoint_then_stop_asks_for_a_checkpoint_first(process: Harness, process_watcher: Watcher) -> None:
    program = """
import os, time
request, place = os.environ['LANDBRIDGE_CHECKPOINT_REQUEST'], os.environ['LANDBRIDGE_CHECKPOINT_DIR']
while not os.path.exists(request):
    time.sleep(0.02)
os.mkdir(place + '/.sealing-7')
open(place + '/.sealing-7/manifest.json', 'w').write('{"files": {}}')
os.rename(place + '/.sealing-7', place + '/sealed-7')
time.sleep(600)
"""
    work = a_work(
        python(program),
        checkpoints={"connection": "checkpoints"},
        lifecycle={"disconnection": {"policy": "checkpoint-then-stop", "checkpointWithin": "20s", "grace": "5s"}},
    )
    lease = a_lease(seconds=1)
    process.executor.hold_lease(lease)
    await run(process.executor, work)

    view = await process_watcher.end(work.key)

    assert view.reason == "self-stopped"
    assert view.report is not None
    assert view.report.checkpoint is not None
    assert view.report.checkpoint.manifest.endswith("/sealed-7/manifest.json")
    assert boot_ms() - lease.valid_until < 10_000  # once sealed, it does not wait for the rest of the 20 s


async def test_a_guardian_that_is_killed_takes_its_work_along_and_is_told_apart(
    process: Harness, process_watcher: Watcher
) -> None:
    work = a_work(python(DAEMON + "time.sleep(600)"))
    await run(process.executor, work)
    daemon = await daemon_of(process, work.key)
    kill(guardian_pid(process, work.key))

    view = await process_watcher.end(work.key)

    assert (view.phase, view.reason) == (SlotPhase.FINISHED, "guardian-lost")
    await wait_until(lambda: is_gone(daemon), "the daemon is gone")
    await wait_until(lambda: len(strays(process.home)) == 1, "only the launcher is left")


async def test_launcher_and_guardian_killed_together_leave_nothing_running(
    process: Harness, process_watcher: Watcher
) -> None:
    work = a_work(process.command(Behaviour(seconds=600)))
    await run(process.executor, work)
    await process_watcher.until(work.key, SlotPhase.RUNNING)
    kill(await launcher_pid(process))
    kill(guardian_pid(process, work.key))

    view = await process_watcher.end(work.key)

    assert (view.phase, view.reason) == (SlotPhase.FINISHED, "guardian-lost")
    assert strays(process.home) == []


async def test_going_down_stops_everything_unless_told_to_keep_it(process: Harness, process_watcher: Watcher) -> None:
    work = a_work(process.command(Behaviour(seconds=600)))
    await run(process.executor, work)
    await process_watcher.until(work.key, SlotPhase.RUNNING)
    assert isinstance(process.executor, LocalExecutor)

    await process.executor.shut_down(keep_workloads=True)
    assert not is_gone(guardian_pid(process, work.key))
    left = await process.executor.shut_down(keep_workloads=False)

    assert left == 0
    view = await process_watcher.end(work.key)
    assert view.reason == "environment-shut-down"
    await wait_until(lambda: not strays(process.home), "the launcher is gone, too")


async def test_the_audit_tells_what_ran_whatever_was_reported(process: Harness, process_watcher: Watcher) -> None:
    work = a_work(process.command(Behaviour()))
    await run(process.executor, work)
    await process_watcher.end(work.key)

    entries = [(entry["event"], entry["operation"], entry["epoch"]) for entry in audit(process)]

    assert entries == [("start", work.operation, "1.1"), ("stop", work.operation, "1.1")]


async def test_work_ends_with_ordinary_outcome_when_it_ends_before_the_stop_reaches_it(
    process: Harness, process_watcher: Watcher
) -> None:
    work = a_work(process.command(Behaviour()))
    await run(process.executor, work)
    await process_watcher.end(work.key)
    await stop(process.executor, work)

    view = await process.executor.look(work.key)

    assert view is not None
    assert view.report is not None
    assert view.report.outcome is AttemptOutcome.COMPLETED


async def test_a_slot_removed_by_hand_is_told_and_nothing_of_it_runs_on(
    process: Harness, process_watcher: Watcher
) -> None:
    work = a_work(python(DAEMON.replace("os.environ.clear()", "pass") + "time.sleep(600)"))
    await run(process.executor, work)
    daemon = await daemon_of(process, work.key)
    guardian = guardian_pid(process, work.key)

    shutil.rmtree(slot_directory(process, work.key))

    await process_watcher.until(work.key, SlotPhase.EMPTY)
    assert is_gone(daemon)
    await wait_until(lambda: is_gone(guardian), "its guardian is gone")


async def test_after_a_restart_of_the_machine_what_ran_is_over_and_says_so(process: Harness) -> None:
    work = a_work(process.command(Behaviour()))
    await process.executor.occupy([work])
    slot = slot_directory(process, work.key)
    slots.claim_guardian(slot, slots.GuardianId(pid=1, ticks=1, boot="another-boot"))
    slots.append_state(slot, {"state": "running", "pid": 2, "startedAt": 1764500000.0})

    [view] = await process.executor.inventory()

    assert (view.phase, view.reason) == (SlotPhase.FINISHED, "host-restarted")


async def test_the_first_end_that_was_recorded_counts(process: Harness, process_watcher: Watcher) -> None:
    work = a_work(process.command(Behaviour(exit_code=3)))
    await run(process.executor, work)
    await process_watcher.end(work.key)
    slot = slot_directory(process, work.key)
    slots.append_state(slot, {"state": "finished", "outcome": "completed", "reason": ""})
    with (slot / "state.jsonl").open("ab") as torn:
        torn.write(b'{"state":"fin')

    view = await process.executor.look(work.key)

    assert view is not None
    assert view.reason == "exit-code"
