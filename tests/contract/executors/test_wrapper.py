"""The wrapper alone, before a door that says what the test wants: every shell and every client, and its words."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes.remains import read_remains
from support.wait import wait_until

SHELLS = [path for path in ("/bin/dash", "/bin/bash", "/bin/busybox") if Path(path).exists()]
CLIENTS = [name for name in ("curl", "wget", "python3", "bash") if shutil.which(name)]
TOOLS = (
    "cat", "mkdir", "sleep", "sed", "tr", "sort", "find", "sha256sum", "wc", "head", "tail", "grep", "date", "setsid",
    "timeout", "sh", "rm", "mv", "touch", "true",
)  # fmt: skip


@dataclass
class Door:
    """What the keeper says, and what it was asked."""

    url: str = ""
    says: Callable[[dict[str, str]], str] = lambda asked: "start 60000"
    asked: list[tuple[dict[str, str], str]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append((dict(request.query), request.headers.get("Authorization", "")))
        return web.Response(text=self.says(dict(request.query)) + "\n")


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    found = Door()
    app = web.Application()
    app.router.add_get("/v1/start", found.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield found
    await runner.cleanup()


class Container:
    """A place like a pod's, with only some programs in it."""

    def __init__(self, home: Path, door: Door, clients: list[str], shell: str = "/bin/sh") -> None:
        self.home = home
        self.shell = shell
        tools = home / "bin"
        tools.mkdir(parents=True)
        for name in (*TOOLS, *clients):
            # Not what stands in front of the interpreter on a developer's machine.
            found = os.path.realpath(sys.executable) if name == "python3" else shutil.which(name)
            if found is not None:
                (tools / name).symlink_to(found)
        (home / "work").mkdir()
        (home / "token").write_text("a-token")
        (home / names.WRAPPER_FILE).write_text(names.wrapper_text())
        wrapper = {
            "KEEPER": door.url, "TOKEN": str(home / "token"), "MESSAGE": str(home / "message"), "START_WAIT": "1500",
            "TIMEOUT": "0", "GRACE": "3000", "POLICY": "continue", "WITHIN": "0", "LOSS_GRACE": "0", "OUTPUTS": "",
            "METRICS": "",
        }  # fmt: skip
        self.env = {
            "PATH": str(tools),
            "HOME": str(home / "work"),
            "TMPDIR": str(home / "work/tmp"),
            "LANDBRIDGE_METRICS": str(home / "work/metrics"),
            **{f"LANDBRIDGE_WRAPPER_{key}": value for key, value in wrapper.items()},
        }

    def told(self, **wrapper: str) -> None:
        self.env |= {f"LANDBRIDGE_WRAPPER_{key}": value for key, value in wrapper.items()}

    async def start(self, *command: str) -> asyncio.subprocess.Process:
        shell = [self.shell, "sh"] if self.shell.endswith("busybox") else [self.shell]
        return await asyncio.create_subprocess_exec(
            *shell, str(self.home / names.WRAPPER_FILE), *command, env=self.env, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, stdin=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    async def run(self, *command: str) -> tuple[int, str]:
        """Return exit code and output."""
        process = await self.start(*command)
        try:
            async with asyncio.timeout(60):
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode is not None
        return process.returncode, output.decode()

    @property
    def message(self) -> str:
        return (self.home / "message").read_text()

    def remains(self) -> Any:
        return read_remains(self.message)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("shell", SHELLS)
async def test_it_asks_with_whatever_the_image_has(tmp_path: Path, door: Door, shell: str, client: str) -> None:
    container = Container(tmp_path, door, [client], shell)

    code, output = await container.run("sh", "-c", "echo done; exit 3")

    assert (code, output) == (3, "done\n")
    assert door.asked[0] == ({"state": "waiting"}, "Bearer a-token")
    assert container.remains().status == 3


async def test_an_image_without_any_client_says_that_it_cannot_be_wrapped(tmp_path: Path, door: Door) -> None:
    code, output = await (container := Container(tmp_path, door, [])).run("sh", "-c", "echo ran")
    assert (code, output) == (78, "")
    assert container.remains().not_started[0] == "image-not-wrappable"


async def test_a_keeper_that_says_never_is_obeyed_at_once(tmp_path: Path, door: Door) -> None:
    door.says = lambda _: "never slot-taken another pod has taken this slot"
    code, output = await (container := Container(tmp_path, door, CLIENTS[:1])).run("sh", "-c", "echo ran")
    assert (code, output) == (78, "")
    assert container.remains().not_started == ("slot-taken", "another pod has taken this slot")


async def test_a_keeper_that_cannot_be_reached_means_not_started(tmp_path: Path, door: Door) -> None:
    container = Container(tmp_path, door, CLIENTS[:1])
    container.told(KEEPER="http://127.0.0.1:9", START_WAIT="100")
    code, output = await container.run("sh", "-c", "echo ran")
    assert (code, output) == (78, "")
    assert container.remains().not_started[0] == "no-lease"


async def test_a_lease_that_ended_while_the_answer_travelled_is_no_lease(tmp_path: Path, door: Door) -> None:
    answers = iter(["start 0", "start 0"])
    door.says = lambda _: next(answers, "start 60000")
    code, output = await Container(tmp_path, door, CLIENTS[:1]).run("sh", "-c", "echo ran")
    assert (code, output) == (0, "ran\n")
    assert len(door.asked) >= 3


async def test_the_workload_sees_nothing_of_the_wrapper(tmp_path: Path, door: Door) -> None:
    container = Container(tmp_path, door, CLIENTS[:1])
    (tmp_path / "bin/env").symlink_to(shutil.which("env") or "")
    _, output = await container.run("env")
    assert "LANDBRIDGE_WRAPPER" not in output
    assert "a-token" not in output


async def test_a_timeout_ends_it_and_says_so(tmp_path: Path, door: Door) -> None:
    container = Container(tmp_path, door, CLIENTS[:1])
    container.told(TIMEOUT="100")
    code, _ = await container.run("sleep", "60")
    assert code == 128 + signal.SIGTERM
    assert container.remains().cause == "timeout"


async def test_who_ignores_the_polite_signal_is_killed_after_the_grace(tmp_path: Path, door: Door) -> None:
    container = Container(tmp_path, door, CLIENTS[:1])
    container.told(TIMEOUT="100", GRACE="100")
    code, _ = await container.run("sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    assert code == 128 + signal.SIGKILL
    assert container.remains().cause == "timeout"


async def test_a_lost_lease_stops_by_the_policy_and_a_renewed_one_does_not(tmp_path: Path, door: Door) -> None:
    lost, kept = Container(tmp_path / "lost", door, CLIENTS[:1]), Container(tmp_path / "kept", door, CLIENTS[:1])
    for container in (lost, kept):
        container.told(POLICY="stop-after-grace", WITHIN="100", LOSS_GRACE="200")
    door.says = lambda asked: "start 2000" if asked["state"] == "waiting" else "lost"
    code, _ = await lost.run("sleep", "60")
    assert (code, lost.remains().cause) == (128 + signal.SIGTERM, "self-stopped")
    door.says = lambda asked: "start 2000" if asked["state"] == "waiting" else "lease 30000"
    code, _ = await kept.run("sleep", "5")
    assert (code, kept.remains().cause) == (0, "")


async def test_an_order_to_move_waits_for_the_checkpoint_that_it_asks_for(tmp_path: Path, door: Door) -> None:
    container = Container(tmp_path, door, CLIENTS[:1])
    container.env["LANDBRIDGE_CHECKPOINT_DIR"] = str(tmp_path / "checkpoints")
    door.says = lambda asked: "start 60000" if asked["state"] == "waiting" else "stop moved 20000 20000"
    seal = (
        "while ! [ -f .landbridge/checkpoint-requested ]; do sleep 1; done; sleep 1;"
        'mkdir "$LANDBRIDGE_CHECKPOINT_DIR/sealed-7"; echo "{}" >"$LANDBRIDGE_CHECKPOINT_DIR/sealed-7/manifest.json";'
        "sleep 60"
    )
    code, _ = await container.run("sh", "-c", seal)
    remains = container.remains()
    assert (code, remains.cause, remains.checkpoint) == (128 + signal.SIGTERM, "moved", "sealed-7")


async def test_a_stop_by_the_cluster_reaches_the_workload_and_is_reported(tmp_path: Path, door: Door) -> None:
    container = Container(tmp_path, door, CLIENTS[:1])
    process = await container.start("sh", "-c", "trap 'exit 7' TERM; touch ready; while :; do sleep 1; done")
    await wait_until((tmp_path / "work/ready").exists, "the workload is ready")
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(20):
        await process.communicate()
    assert process.returncode == 7
    assert container.remains().status == 7


async def test_a_stop_reaches_everything_that_the_workload_started(tmp_path: Path, door: Door) -> None:
    container = Container(tmp_path, door, CLIENTS[:1])
    container.told(TIMEOUT="200")
    code, output = await container.run("sh", "-c", "sh -c \"trap 'echo child' TERM; sleep 60; :\"; :")
    assert code == 128 + signal.SIGTERM
    assert "child" in output.split()


async def test_outputs_are_measured_as_everywhere_and_metrics_reported(tmp_path: Path, door: Door) -> None:
    from landbridge_dispatch.executors.local.evidence import measure_output

    container = Container(tmp_path, door, CLIENTS[:1])
    place = tmp_path / "out put"
    container.told(OUTPUTS=f"model {place}", METRICS="auc")
    write = (
        f'mkdir "{place}/a"; echo one >"{place}/a/b"; echo two >"{place}/a.txt"; echo three >"{place}/with space";'
        'echo \'{"name": "auc", "value": 0.5}\' >>"$LANDBRIDGE_METRICS";'
        'echo \'{"name": "auc", "value": 0.75}\' >>"$LANDBRIDGE_METRICS"'
    )
    code, output = await container.run("sh", "-c", write)
    remains = container.remains()

    assert (code, output) == (0, "")
    expected = measure_output(place)
    assert remains.outputs["model"] == (expected["bytes"], expected["sha256"])
    assert remains.metrics == {"auc": 0.75}
    assert len(container.message) < 4096


async def test_a_program_that_is_not_there_is_said_before_the_start(tmp_path: Path, door: Door) -> None:
    code, _ = await (container := Container(tmp_path, door, CLIENTS[:1])).run("no-such-program")
    assert code == 78
    assert container.remains().not_started == ("failed-to-start", "there is no program no-such-program in the image")
    assert door.asked == []


def _carried(tmp_path: Path, door: Door) -> Container:
    container = Container(tmp_path, door, CLIENTS[:1])
    (tmp_path / "carrier/sealed").mkdir(parents=True)
    container.told(CARRIER=str(tmp_path / "carrier"), CARRIER_WAIT="3000")
    return container


async def test_it_starts_when_the_carrier_is_ready_and_ends_when_all_is_stored(tmp_path: Path, door: Door) -> None:
    container = _carried(tmp_path, door)
    (tmp_path / "resumed").mkdir()
    (tmp_path / "resumed/manifest.json").write_text("{}")
    running = asyncio.create_task(container.run("sh", "-c", 'echo "$LANDBRIDGE_RESUME_FROM"'))
    await asyncio.sleep(0.3)
    assert door.asked == []
    (tmp_path / "carrier/ready").write_text(f"{tmp_path}/resumed\n")
    await wait_until((tmp_path / "carrier/over").exists, "the workload is over")
    (tmp_path / "carrier/stored").write_text("output model: the store answered 503\n")
    code, output = await running
    remains = container.remains()
    assert (code, output) == (0, f"{tmp_path}/resumed\n")
    assert remains.not_stored == "output model: the store answered 503"


async def test_what_the_carrier_refuses_does_not_start(tmp_path: Path, door: Door) -> None:
    container = _carried(tmp_path, door)
    (tmp_path / "carrier/refused").write_text("connection-not-accepted an object store of this work: no\n")
    code, output = await container.run("sh", "-c", "echo ran")
    assert (code, output, door.asked) == (78, "", [])
    assert container.remains().not_started == ("connection-not-accepted", "an object store of this work: no")


async def test_only_a_stored_checkpoint_is_told_of(tmp_path: Path, door: Door) -> None:
    container = _carried(tmp_path, door)
    (tmp_path / "carrier/ready").write_text("\n")
    (tmp_path / "carrier/stored").write_text("ok\n")
    for name in ("sealed-1", "sealed-2"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
        (tmp_path / "checkpoints" / name / "manifest.json").write_text("{}")
    os.utime(tmp_path / "checkpoints/sealed-1/manifest.json", (1, 1))
    (tmp_path / "carrier/sealed/sealed-1").touch()
    container.env["LANDBRIDGE_CHECKPOINT_DIR"] = str(tmp_path / "checkpoints")
    code, _ = await container.run("true")
    assert (code, container.remains().checkpoint) == (0, "sealed-1")
