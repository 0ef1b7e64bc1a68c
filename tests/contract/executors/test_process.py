"""What only real processes can show: nothing is left behind, whoever is killed, and nothing leaks in."""

import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from contract.executors.conftest import opened, strays
from contract.executors.harness import (
    Behaviour,
    Harness,
    ProcessHarness,
    Watcher,
    a_lease,
    a_work,
    boot_ms,
    make_executor,
    run,
    stop,
)
from contract.executors.probes import slot_directory, work_directory
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.schema.wire.report_v1 import AttemptOutcome
from landbridge_dispatch.executors.local import procfs, slots
from landbridge_dispatch.executors.local.client import LauncherClient
from landbridge_dispatch.executors.local.executor import LocalExecutor
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError, SlotView
from support.wait import wait_until

DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.environ.clear()
        open('daemon', 'w').write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists('daemon') or not open('daemon').read():
    time.sleep(0.01)
open('ready', 'w').close()
"""


def python(program: str, *args: str) -> list[str]:
    return [sys.executable, "-S", "-c", program, *args]


async def daemon_of(process: Harness, key: Any) -> int:
    work = work_directory(process, key)
    await wait_until((work / "ready").exists, "the daemon runs")
    return int((work / "daemon").read_text())


def is_gone(pid: int) -> bool:
    return procfs.start_ticks(pid) is None


async def launcher_pid(process: Harness) -> int:
    client = LauncherClient(process.home)
    answer = await client.ask({"do": "ping"})
    await client.close()
    return int(answer["pid"])


def guardian_pid(process: Harness, key: Any) -> int:
    guardian = slots.guardian_of(slot_directory(process, key))
    assert guardian is not None
    return guardian.pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def audit(process: Harness) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (process.home / "audit.jsonl").read_text().splitlines()]


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


async def test_the_workload_sees_its_interface_and_nothing_of_ours(
    process: Harness, process_watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDBRIDGE_NATS_CREDS", "secret of the dispatcher")
    monkeypatch.setenv("SITE_PASSWORD", "secret of the site")
    work = a_work(
        python("import json, os; print(json.dumps([dict(os.environ), os.getcwd(), os.listdir('/proc/self/fd')]))"),
        args=["$(WHO) $(LANDBRIDGE_ATTEMPT) $(UNKNOWN) $$(WHO)"],
        env={"WHO": "me", "LANDBRIDGE_OPERATION": "forged"},
        inputs={"raw-events": {"connection": "events", "path": "part.csv"}},
        outputs={"model": {"connection": "models"}},
        checkpoints={"connection": "checkpoints"},
    )
    await run(process.executor, work)
    await process_watcher.end(work.key)

    log = await process.executor.logs(work.key)
    assert log is not None
    environ, directory, descriptors = json.loads(log.data)
    data = process.home / "data"
    assert environ["LANDBRIDGE_INPUT_RAW_EVENTS"] == str(data / "events/part.csv")
    assert environ["LANDBRIDGE_OUTPUT_MODEL"] == str(data / f"models/{work.operation}/e1-1/model")
    assert environ["LANDBRIDGE_CHECKPOINT_DIR"] == str(data / f"checkpoints/{work.operation}/e1-1")
    assert environ["LANDBRIDGE_OPERATION"] == work.operation
    assert environ["LANDBRIDGE_ATTEMPT"] == "1"
    assert environ["WHO"] == "me"
    assert "LANDBRIDGE_NATS_CREDS" not in environ
    assert "SITE_PASSWORD" not in environ
    assert directory == environ["HOME"]
    assert len(descriptors) == 4  # three, and the one that lists them


async def test_arguments_are_expanded_as_kubernetes_does_and_no_shell_reads_them(
    process: Harness, process_watcher: Watcher
) -> None:
    words = ["$(WHO)-$(LANDBRIDGE_ATTEMPT)", "$(UNKNOWN)", "$$(WHO)", "; rm -rf * && $(WHO) `id`"]
    work = a_work(python("import sys; print(sys.argv[1:])", *words), env={"WHO": "me"})
    await run(process.executor, work)
    await process_watcher.end(work.key)

    log = await process.executor.logs(work.key)

    assert log is not None
    assert log.data.decode() == f"{['me-1', '$(UNKNOWN)', '$(WHO)', '; rm -rf * && me `id`']}\n"


async def test_a_program_that_is_not_there_failed_to_start(process: Harness, process_watcher: Watcher) -> None:
    work = a_work(["no-such-program"])
    await run(process.executor, work)

    view = await process_watcher.end(work.key)

    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "failed-to-start", False)
    assert view.report is not None
    assert view.report.message == "no-such-program: No such file or directory"


async def test_a_gang_gets_its_ranks_and_ends_as_one(process: Harness, process_watcher: Watcher) -> None:
    program = """
import os, sys, time
print(os.environ['LANDBRIDGE_RANK'], os.environ['LANDBRIDGE_WORLD_SIZE'], os.environ['RANK'], flush=True)
if os.environ['RANK'] == '1':
    while not all(os.path.exists(name) for name in ('0', '2')):
        time.sleep(0.01)
    sys.exit(5)
open(os.environ['RANK'], 'w').close()
time.sleep(600)
"""
    work = a_work(python(program), type="distributed-job", replicas=3)
    await run(process.executor, work)

    view = await process_watcher.end(work.key)

    assert view.report is not None
    assert (view.report.reason, view.report.exit_code) == ("exit-code", 5)
    log = await process.executor.logs(work.key)
    assert log is not None
    assert sorted(log.data.decode().splitlines()) == ["0 3 0", "1 3 1", "2 3 2"]


async def test_a_log_keeps_its_beginning_and_its_end_within_its_limit(tmp_path: Path) -> None:
    async for process in opened(ProcessHarness(tmp_path / "site", logLimit="200Ki")):
        watcher = Watcher(process.executor)
        work = a_work(python("print('first'); [print('x' * 999) for _ in range(3000)]; print('last')"))
        await run(process.executor, work)
        await watcher.end(work.key)

        log = await process.executor.logs(work.key, limit=1 << 20)

        assert log is not None
        assert len(log.data) < 300 * 1024
        assert log.data.startswith(b"first\n")
        assert log.data.endswith(b"\nlast\n")
        assert b"bytes left out here" in log.data
        await watcher.close()


async def test_a_secret_reaches_the_workload_and_no_file(process: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_TOKEN", "canary-from-environment")
    (process.home / "key").write_text("canary-from-file\n")
    bindings = yaml.safe_load((process.home / "bindings.yaml").read_text())
    bindings["connections"]["events"]["secrets"] = {"TOKEN": {"env": "SITE_TOKEN"}, "KEY": {"file": "key"}}
    (process.home / "bindings.yaml").write_text(yaml.safe_dump(bindings))
    executor = make_executor(process.home)
    await executor.open()
    watcher = Watcher(executor)
    program = "import os; print(os.environ['TOKEN'][7:], os.environ['KEY'][7:])"
    named = a_work(python(program), inputs={"events": {"connection": "events"}})
    unnamed = a_work(python("import os; print('TOKEN' in os.environ, 'KEY' in os.environ)"))
    await run(executor, named, unnamed)
    await watcher.end(named.key)
    await watcher.end(unnamed.key)

    logs = [await executor.logs(work.key) for work in (named, unnamed)]

    assert [log.data for log in logs if log] == [b"from-environment from-file\n", b"False False\n"]
    for path in process.home.rglob("*"):
        if path.is_file() and path.name not in ("key", "bindings.yaml"):
            assert b"canary-from" not in path.read_bytes(), path
    await watcher.close()
    await executor.close()


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


async def test_what_cannot_be_prepared_is_refused_and_hurts_nobody_else(
    process: Harness, process_watcher: Watcher
) -> None:
    bad = {
        RefusalCode.CONNECTION_UNAVAILABLE: a_work(
            ["true"], inputs={"a": {"connection": "events", "path": "x" * 5000}}
        ),
        RefusalCode.UNREADABLE: a_work(["true", "a\0b"]),
        RefusalCode.WORKLOAD: a_work([]),
    }
    good = a_work(process.command(Behaviour()))

    refusals = await process.executor.check([*bad.values(), good])
    occupied = await process.executor.occupy([*bad.values(), good])

    for found in (refusals, occupied):
        assert [each.code for each in found[:-1] if isinstance(each, RefusedError)] == list(bad)
        assert found[-1] is None
    await process.executor.start([good.key])
    assert (await process_watcher.end(good.key)).reason == ""


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


@pytest.mark.root
async def test_a_role_runs_as_its_own_user_and_owns_what_it_writes() -> None:
    # Below /tmp itself: the test's own directories cannot be entered by others.
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        harness = ProcessHarness(Path(place) / "site")
        bindings = yaml.safe_load((harness.home / "bindings.yaml").read_text())
        bindings["identities"] = {"trainer": {"user": "nobody"}}
        (harness.home / "bindings.yaml").write_text(yaml.safe_dump(bindings))
        program = (
            'id -un; echo x > "$LANDBRIDGE_OUTPUT_MODEL/f"; echo \'{"name":"m","value":1}\' >> "$LANDBRIDGE_METRICS"'
        )
        work = a_work(["sh", "-c", program], identity="trainer", outputs={"model": {"connection": "models"}})
        async for process in opened(harness):
            watcher = Watcher(process.executor)
            await run(process.executor, work)
            view = await watcher.end(work.key)

            log = await process.executor.logs(work.key)
            assert log is not None
            assert log.data == b"nobody\n"
            assert view.report is not None
            assert view.report.resolved is not None
            assert view.report.resolved.principal == "nobody"
            assert view.report.outputs["model"].bytes == 2
            assert view.report.metrics == {"m": 1.0}
            written = harness.home / f"data/models/{work.operation}/e1-1/model/f"
            assert written.owner() == "nobody"
            await watcher.close()
