"""What a workload sees of its machine, what it may not see, and what is kept of it."""

import json
import tempfile
from pathlib import Path

import pytest
import yaml

from contract.executors.conftest import opened
from contract.executors.harness import (
    Behaviour,
    Harness,
    ProcessHarness,
    Watcher,
    a_work,
    make_executor,
    run,
)
from contract.executors.processes import python
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError


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
