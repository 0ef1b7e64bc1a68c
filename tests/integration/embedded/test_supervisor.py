"""The supervisor with real servers and stand-ins for the services: start, restart, crash loop, every way to end."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from landbridge_embedded import environments
from landbridge_embedded.control import ask
from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.layout import DataDirectory
from landbridge_embedded.process import lives
from landbridge_embedded.services import SERVICES
from support.processes import processes_of
from support.wait import wait_until

TESTS = Path(__file__).parents[2]


class Up:
    """One supervisor in a process of its own."""

    def __init__(self, root: Path, **environ: str) -> None:
        self.data = DataDirectory(root)
        self.output = root.with_name(f"{root.name}-{len(list(root.parent.glob('*.out')))}.out")
        with self.output.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "support.stand_in_up", str(root)],
                cwd=TESTS,
                env={**os.environ, "PYTHONPATH": str(TESTS), **environ},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def text(self) -> str:
        return self.output.read_text()

    async def ready(self) -> dict[str, Any]:
        await wait_until(
            lambda: "READY" in self.text or self.process.poll() is not None, "ready or ended", timeout_s=40
        )
        assert "READY" in self.text, self.text
        return ask(self.data, "status")

    async def ended(self) -> int:
        await wait_until(self.has_ended, "the supervisor ended", timeout_s=30)
        return self.process.wait()

    def has_ended(self) -> bool:
        return self.process.poll() is not None


@pytest.fixture
async def up(tmp_path: Path) -> AsyncIterator[Callable[..., Up]]:
    started: list[Up] = []

    def start(**environ: str) -> Up:
        started.append(Up(tmp_path / "data", **environ))
        return started[-1]

    yield start
    for item in started:
        if item.process.poll() is None:
            item.process.kill()
        item.process.wait(timeout=10)
    await wait_until(lambda: not processes_of(tmp_path / "data"), "no process left")


async def test_each_service_is_a_process_with_its_own_name_and_down_leaves_none(up: Callable[..., Up]) -> None:
    run = up()
    state = await run.ready()
    commands = processes_of(run.data.root)
    for spec in SERVICES:
        row = state["services"][spec.name]
        assert row["ready"]
        assert commands[row["pid"]] == f"landbridge-{spec.name} [{run.data.root}]"
        assert Path(f"/proc/{row['pid']}/comm").read_text().startswith("lb-")
    assert run.data.state.stat().st_mode & 0o777 == 0o600
    assert run.data.control_socket.stat().st_mode & 0o777 == 0o600
    assert "/sign-in?token=" in run.text

    ask(run.data, "down")
    assert await run.ended() == 0
    assert processes_of(run.data.root) == {}
    assert run.data.read_state() is None


@pytest.mark.parametrize("prefork", ["1", "0"], ids=["forked", "started by themselves"])
async def test_kill_9_of_the_supervisor_leaves_no_process(up: Callable[..., Up], prefork: str) -> None:
    run = up(LANDBRIDGE_PREFORK=prefork)
    await run.ready()
    pids = processes_of(run.data.root)
    assert len(pids) >= len(SERVICES) + 3
    run.process.kill()
    await wait_until(lambda: not processes_of(run.data.root), "no process left")

    # What it left behind does not disturb the next one, which comes up on the same ports.
    state = run.data.read_state()
    assert state is not None
    again = up()
    assert (await again.ready())["urls"] == state["urls"]


async def test_ctrl_c_ends_everything(up: Callable[..., Up]) -> None:
    run = up()
    await run.ready()
    run.process.send_signal(signal.SIGINT)
    assert await run.ended() == 0
    assert processes_of(run.data.root) == {}


async def test_ctrl_c_while_starting_ends_everything(up: Callable[..., Up]) -> None:
    run = up()
    await wait_until(lambda: run.data.read_state() is not None, "the first state")
    run.process.send_signal(signal.SIGINT)
    assert await run.ended() == 0
    assert "READY" not in run.text
    assert processes_of(run.data.root) == {}


async def test_a_second_one_on_the_same_directory_is_refused(up: Callable[..., Up]) -> None:
    run = up()
    await run.ready()
    second = up()
    assert await second.ended() == 1
    assert f"ERROR Landbridge already runs on {run.data.root} (process {run.process.pid}" in second.text
    assert "landbridge down" in second.text
    assert (await run.ready())["ready"]


@pytest.mark.parametrize("name", ["ranking", "nats", "redis", "postgres"])
async def test_a_process_that_dies_is_started_again_at_the_same_port(up: Callable[..., Up], name: str) -> None:
    run = up()
    before = (await run.ready())["services"][name]
    os.kill(before["pid"], signal.SIGKILL)

    def restarted() -> dict[str, Any] | None:
        row: dict[str, Any] = ask(run.data, "status")["services"][name]
        return row if row["restarts"] == 1 and row["ready"] and row["pid"] else None

    after = await wait_until(restarted, f"{name} runs again", timeout_s=30)
    assert after["pid"] != before["pid"]
    assert after["port"] == before["port"]
    assert after["lastExit"] == -9
    assert f"{name} ended (killed by SIGKILL)" in run.text


async def test_when_the_common_parent_of_the_services_dies_all_of_them_return(up: Callable[..., Up]) -> None:
    run = up()
    state = await run.ready()
    pid = state["services"]["intake"]["pid"]
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert parent != run.process.pid
    os.kill(parent, signal.SIGKILL)

    def back() -> bool:
        rows = ask(run.data, "status")["services"]
        return all(rows[spec.name]["ready"] and rows[spec.name]["restarts"] for spec in SERVICES)

    await wait_until(back, "all services are ready again", timeout_s=30)
    assert not lives(pid)


async def test_a_service_that_cannot_start_fails_the_start_with_its_log(up: Callable[..., Up], tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("")
    run = up(LANDBRIDGE_TEST_FAIL_WHILE=str(tmp_path / "broken"))
    assert await run.ended() == 1
    assert "ends again and again (last: exit code 7" in run.text
    assert "cannot work: a file says so" in run.text
    assert processes_of(run.data.root) == {}


async def test_a_joined_environment_is_started_on_request_and_by_the_next_start(up: Callable[..., Up]) -> None:
    run = up()
    await run.ready()
    with pytest.raises(EmbeddedError, match="onprem-a: has not joined on this machine"):
        ask(run.data, "start-environment", name="onprem-a")
    environments.write(run.data, "onprem-a", creds="x", bindings="executor: process\n")
    ask(run.data, "start-environment", name="onprem-a")
    row = ask(run.data, "status")["services"]["dispatcher-onprem-a"]
    assert row["ready"]

    ask(run.data, "down")
    assert await run.ended() == 0
    again = up()
    assert (await again.ready())["services"]["dispatcher-onprem-a"]["port"] == row["port"]


async def test_an_environment_that_does_not_work_keeps_nothing_else_from_starting(up: Callable[..., Up]) -> None:
    run = up()
    await run.ready()
    environments.write(run.data, "edge-c", creds="x", bindings="executor: process\n")
    ask(run.data, "down")
    assert await run.ended() == 0
    again = up(LANDBRIDGE_TEST_FAIL_ENVIRONMENT="edge-c")
    state = await again.ready()
    assert state["services"]["intake"]["ready"]
    await wait_until(lambda: "dispatcher-edge-c ends again and again" in again.text, "the complaint")
    assert "this environment cannot work" in again.text


async def test_a_removed_environment_is_stopped_and_what_it_holds_is_kept(up: Callable[..., Up]) -> None:
    run = up()
    await run.ready()
    place = environments.write(run.data, "edge-c", creds="x", bindings="executor: process\n")
    (place.directory / "launcher.log").write_text("something to keep")
    ask(run.data, "start-environment", name="edge-c")
    kept = Path(ask(run.data, "remove-environment", name="edge-c")["kept"])
    assert (kept / "launcher.log").read_text() == "something to keep"
    assert environments.joined(run.data) == []
    assert "dispatcher-edge-c" not in ask(run.data, "status")["services"]


async def test_asking_where_nothing_runs_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match=r"no Landbridge runs on .* start it with `landbridge up`"):
        ask(DataDirectory(tmp_path), "status")


async def test_what_the_socket_does_not_understand_is_answered(up: Callable[..., Up]) -> None:
    run = up()
    await run.ready()
    with pytest.raises(EmbeddedError, match="unknown command 'dance'"):
        ask(run.data, "dance")
