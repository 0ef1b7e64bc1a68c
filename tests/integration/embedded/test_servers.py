"""The embedded servers: they start, keep their data, explain what is wrong, and never outlive their parent."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from landbridge_embedded import binaries, postgres_user
from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.nats import NatsServer
from landbridge_embedded.postgres import PostgresServer
from landbridge_embedded.process import http_ok, lives
from landbridge_embedded.redis import RedisServer
from support.processes import processes_of
from support.wait import wait_until

PARENT = textwrap.dedent(
    """
    import asyncio, sys, time
    from pathlib import Path
    from landbridge_embedded.nats import NatsServer
    from landbridge_embedded.postgres import PostgresServer
    from landbridge_embedded.redis import RedisServer

    async def main():
        root = Path(sys.argv[1])
        servers = [PostgresServer(root, durable=False, shared_buffers="16MB"), NatsServer(root), RedisServer(root)]
        for server in servers:
            await server.start()
        print(*(server.child.pid for server in servers), flush=True)

    asyncio.run(main())
    time.sleep(60)
    """
)


@pytest.fixture
def public_root(tmp_path: Path) -> Iterator[Path]:
    """A directory that another user can reach, which pytest's own are not."""
    root = Path(f"/tmp/landbridge-test-{os.getpid()}-{tmp_path.name[:20]}")
    root.mkdir(mode=0o700)
    yield root
    shutil.rmtree(root, ignore_errors=True)


async def test_postgres_keeps_its_data_over_a_restart(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path, shared_buffers="16MB", durable=False)
    await server.start()
    connection = await asyncpg.connect(server.dsn)
    await connection.execute("create table kept as select 7 as value")
    await connection.close()
    await server.stop()

    again = PostgresServer(tmp_path, shared_buffers="16MB", durable=False)
    await again.start()
    try:
        connection = await asyncpg.connect(again.socket_dsn)
        assert await connection.fetchval("select value from kept") == 7
        assert await connection.fetchval("show jit") == "off"
        await connection.close()
    finally:
        await again.stop()
    assert processes_of(tmp_path) == {}


async def test_postgres_asks_for_the_password_also_on_its_socket(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path, shared_buffers="16MB", durable=False)
    await server.start()
    try:
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(server.dsn, password="wrong")
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(server.socket_dsn, password="wrong")
    finally:
        await server.stop()
    assert (tmp_path / "postgres" / "password").stat().st_mode & 0o777 == 0o600


async def test_an_interrupted_creation_of_the_cluster_is_repeated(tmp_path: Path) -> None:
    half = tmp_path / "postgres" / "new" / "data"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    server = PostgresServer(tmp_path, shared_buffers="16MB", durable=False)
    await server.start()
    await server.stop()
    assert not (tmp_path / "postgres" / "new").exists()


async def test_data_of_another_postgres_version_is_refused_with_a_way_out(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path)
    server.data.mkdir(parents=True)
    (server.data / "PG_VERSION").write_text("9\n")
    (server.directory / "password").write_text("x")
    with pytest.raises(EmbeddedError, match=r"made by PostgreSQL 9, the one found is \d+ .*pg_dump"):
        await server.start()


async def test_ports_stay_the_same_when_a_server_is_started_again(tmp_path: Path) -> None:
    nats, redis = NatsServer(tmp_path), RedisServer(tmp_path)
    await nats.start()
    await redis.start()
    before = (nats.url, nats.monitor_port, redis.url)
    os.kill(nats.child.pid, signal.SIGKILL)
    os.kill(redis.child.pid, signal.SIGKILL)
    await nats.child.stop()
    await redis.child.stop()
    await nats.start()
    await redis.start()
    try:
        assert (nats.url, nats.monitor_port, redis.url) == before
        assert await http_ok(nats.monitor_port, "/healthz")
    finally:
        await nats.stop()
        await redis.stop()


async def test_a_broken_configuration_is_reported_with_the_end_of_the_log(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match=r"nats-server ended with code 1(?s:.*)unknown_thing"):
        await NatsServer(tmp_path, accounts="unknown_thing: 1").start()


async def test_a_fixed_port_in_use_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(EmbeddedError, match="in use"):
        await RedisServer(tmp_path, port=taken.getsockname()[1]).start()


def test_a_set_path_without_an_executable_is_an_error_that_names_it() -> None:
    with pytest.raises(EmbeddedError, match=r"LANDBRIDGE_NATS_SERVER=/nowhere: expected nats-server there"):
        binaries.find_nats({"LANDBRIDGE_NATS_SERVER": "/nowhere"})


@pytest.mark.root
def test_root_without_a_way_to_run_postgres_is_told_everything_that_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executables = binaries.find_postgres()
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(EmbeddedError) as caught:
        postgres_user.choose_user(executables, tmp_path, tmp_path / "data")
    assert "user namespace: `unshare`" in str(caught.value)
    assert "user nobody" in str(caught.value)
    assert "LANDBRIDGE_POSTGRES_DSN" in str(caught.value)


@pytest.mark.root
async def test_without_user_namespaces_root_falls_back_to_another_user_and_keeps_it(
    public_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_user, "_namespace", lambda _binaries, _tried: None)
    server = PostgresServer(public_root, shared_buffers="16MB", durable=False)
    await server.start()
    await server.stop()
    owner = server.data.stat().st_uid
    assert owner != 0

    monkeypatch.undo()
    again = PostgresServer(public_root, shared_buffers="16MB", durable=False)
    await again.start()
    try:
        connection = await asyncpg.connect(again.socket_dsn)
        await connection.close()
        assert Path(f"/proc/{again.child.pid}").stat().st_uid == owner
    finally:
        await again.stop()


@pytest.mark.parametrize(
    "as_user",
    [pytest.param(False, id="same user"), pytest.param(True, id="ordinary user", marks=pytest.mark.root)],
)
async def test_killing_the_parent_leaves_no_server(public_root: Path, as_user: bool) -> None:
    prefix: list[str] = []
    if as_user:
        os.chown(public_root, 65534, 65534)
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    command = [*prefix, sys.executable, "-c", PARENT, str(public_root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/") as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 3
        assert all(lives(pid) for pid in pids)
        parent.kill()
    await wait_until(lambda: not any(lives(pid) for pid in pids), "the servers are gone")
    await wait_until(lambda: processes_of(public_root) == {}, "nothing is left")
