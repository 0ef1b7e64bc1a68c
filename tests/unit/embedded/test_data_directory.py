"""The data directory: private, held by one, readable state; and the choice of ports."""

import asyncio
import json
import socket
import sys
from pathlib import Path

import pytest

from landbridge_embedded import environments, port_claims
from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.layout import AlreadyRunningError, DataDirectory, socket_path
from landbridge_embedded.ports import free_port, pick_ports
from landbridge_embedded.services import inherited


def test_everything_in_it_is_private(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "deep" / "data")
    data.create()
    data.write_state({"pid": 1})
    assert {place.stat().st_mode & 0o777 for place in (data.root, data.keys, data.creds, data.logs)} == {0o700}
    assert data.state.stat().st_mode & 0o777 == 0o600


def test_a_place_that_cannot_be_made_is_named_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedError, match=r"file/data: cannot be created .*--data DIR"):
        DataDirectory(tmp_path / "file" / "data").create()


def test_only_one_holds_it_and_the_other_learns_who(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.create()
    data.write_state({"pid": 4711, "urls": {"dashboard": "http://127.0.0.1:1"}})
    assert not data.is_held()
    with data.held():
        assert data.is_held()
        with (
            pytest.raises(AlreadyRunningError, match=r"process 4711, http://127.0.0.1:1.*\n.*landbridge down"),
            data.held(),
        ):
            pass
    assert not data.is_held()


def test_a_state_file_that_is_not_json_counts_as_none(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.state.write_text("{half")
    assert data.read_state() is None


def test_a_socket_with_a_long_path_goes_to_the_temporary_directory() -> None:
    assert socket_path(Path("/short"), "control.sock") == Path("/short/control.sock")
    long = Path("/" + "x" * 120)
    assert len(str(socket_path(long, "control.sock"))) < 100
    assert socket_path(long, "control.sock") != socket_path(Path(f"{long}y"), "control.sock")


def test_ports_are_remembered_while_they_are_free(tmp_path: Path) -> None:
    memory = tmp_path / "ports.json"
    first = pick_ports(["a", "b"], fixed={}, memory=memory)
    assert first["a"] != first["b"]
    assert pick_ports(["a", "b"], fixed={}, memory=memory) == first
    with socket.create_server(("127.0.0.1", first["a"])):
        again = pick_ports(["a", "b"], fixed={}, memory=memory)
    assert again["a"] != first["a"]
    assert again["b"] == first["b"]


async def test_what_another_instance_chose_is_not_chosen_before_it_is_bound_either(tmp_path: Path) -> None:
    """Ports of a memory, as a copied data directory has it, and ports taken at random from what is left."""
    memory = tmp_path / "ports.json"
    asked = (
        "import sys; from pathlib import Path; from landbridge_embedded.ports import free_port, pick_ports;"
        "print(pick_ports(['a', 'b'], fixed={}, memory=Path(sys.argv[1]))['a'], flush=True); sys.stdin.read()"
    )
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", asked, str(memory), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert other.stdin is not None
    assert other.stdout is not None
    taken = int(await other.stdout.readline())
    copied = tmp_path / "copied.json"
    copied.write_text(memory.read_text())
    assert set(pick_ports(["a", "b"], fixed={}, memory=copied).values()).isdisjoint(read_ports(memory))

    other.kill()
    await other.wait()
    assert pick_ports(["a"], fixed={}, memory=memory)["a"] == taken, "it ends with the process that chose it"


def test_ports_for_the_moment_are_given_back_when_many_more_were_asked_for() -> None:
    """Else a process that starts many servers, one after the other, would leave none to others."""
    first = free_port()
    assert port_claims.claimed(first)
    later = [free_port() for _ in range(100)]
    assert not port_claims.claimed(first) or first in later
    assert len(set(later)) == 100
    assert all(port_claims.claimed(port) for port in later)


def test_without_the_file_of_locks_ports_are_chosen_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_claims, "_locks", lambda: None)
    assert pick_ports(["a"], fixed={}, memory=tmp_path / "ports.json")["a"] > 0


def read_ports(memory: Path) -> set[int]:
    return set(json.loads(memory.read_text()).values())


def test_a_fixed_port_in_use_is_an_error_that_names_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedError, match=f"port {port} for dashboard: already in use"):
            pick_ports(["dashboard"], fixed={"dashboard": port}, memory=tmp_path / "ports.json")


def test_damaged_memory_of_ports_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text('{"a": "many"}')
    assert pick_ports(["a"], fixed={}, memory=tmp_path / "ports.json")["a"] > 0


def test_an_environment_counts_as_joined_once_all_is_written(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.create()
    assert environments.joined(data) == []
    environments.write(data, "onprem-a", creds="secret", bindings="executor: process\n")
    (found,) = environments.joined(data)
    assert (found.name, found.service) == ("onprem-a", "dispatcher-onprem-a")
    assert found.creds.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["", "../up", "A", "a_b", "-a"])
def test_a_name_that_is_no_token_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmbeddedError, match="expected 1 to 63 lower-case"):
        environments.write(DataDirectory(tmp_path), name, creds="", bindings="")


def test_services_do_not_see_other_programs_secrets() -> None:
    shell = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "x", "LANDBRIDGE_LOG_LEVEL": "debug", "LC_ALL": "C"}
    assert inherited(shell) == {"PATH": "/bin", "LANDBRIDGE_LOG_LEVEL": "debug", "LC_ALL": "C"}


def test_chosen_ports_are_none_that_outgoing_connections_use(tmp_path: Path) -> None:
    names = [f"service-{number}" for number in range(20)]
    chosen = pick_ports(names, fixed={}, memory=tmp_path / "ports.json")
    assert len(set(chosen.values())) == 20
    assert all(20_000 <= port < 32_000 for port in chosen.values())
