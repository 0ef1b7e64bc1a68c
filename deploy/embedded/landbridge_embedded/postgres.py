"""An embedded PostgreSQL: own directory, unix socket and loopback TCP behind a scram password, durable."""

import asyncio
import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

from landbridge_embedded.binaries import find_postgres
from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.ports import free_port
from landbridge_embedded.postgres_user import RunAs, choose_user
from landbridge_embedded.process import Child, end_leftover, start_ready, write_private

USER = "landbridge"
DATABASE = "landbridge"
_READY_S = 60.0  # recovery after a crash with a large write-ahead log
_INITDB_S = 120.0
_SOCKET_PATH_MAX = 100  # sockaddr_un holds 107 characters on Linux, 103 on macOS


class PostgresServer:
    """`async start()`, `async stop()`; data in ROOT/postgres, log in ROOT/logs/postgres.log.

    `durable=False` skips syncing, for tests that never cut the power. A port of 0 is picked once and kept.
    """

    def __init__(self, root: Path, *, port: int = 0, shared_buffers: str = "256MB", durable: bool = True) -> None:
        self.directory = root.resolve() / "postgres"
        self.data = self.directory / "data"
        self.port = port
        self._fixed = port
        self._shared_buffers, self._durable = shared_buffers, durable
        self._started = False
        self._password = ""
        self.child = Child("postgres", (), root.resolve() / "logs" / "postgres.log", signal.SIGINT)

    @property
    def dsn(self) -> str:
        """Over loopback TCP."""
        return self.dsn_for(DATABASE)

    def dsn_for(self, database: str) -> str:
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    @property
    def socket_dsn(self) -> str:
        """Over the unix socket."""
        host = quote(str(self.socket_directory), safe="")
        return f"postgresql://{USER}:{self._password}@/{DATABASE}?host={host}&port={self.port}"

    @property
    def socket_directory(self) -> Path:
        """Below the data, or in the system's temporary directory when that path is too long for a socket."""
        place = self.directory / "run"
        if len(str(place)) + len("/.s.PGSQL.65535") <= _SOCKET_PATH_MAX:
            return place
        digest = hashlib.sha256(str(self.directory).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"landbridge-postgres-{digest}"

    async def start(self) -> None:
        """Create the cluster if there is none, start, wait until it takes connections; EmbeddedError otherwise."""
        binaries = find_postgres()
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._password = self._load_password()
        run_as = await asyncio.to_thread(choose_user, binaries, self.directory.parent, self.data)
        if run_as.owner:
            # The other user must pass through our directory; it cannot list it, and secrets lie deeper in 0700.
            self.directory.parent.chmod(self.directory.parent.stat().st_mode | 0o011)
            os.chown(self.directory, *run_as.owner)
        if not self.data.exists():
            await asyncio.to_thread(self._create, binaries, run_as)
        _check_version(binaries, self.data)
        self._own_sockets(run_as)
        await end_leftover(self.data / "postmaster.pid", str(self.data), self.child.stop_signal)

        def prepare() -> None:
            if not self._started:
                self.port = self._fixed or free_port()
            self.child.command = self._command(binaries, run_as)

        await start_ready(
            self.child,
            prepare,
            self._accepts,
            timeout_s=_READY_S,
            ports_are_fixed=self._started or bool(self._fixed),
        )
        self._started = True

    async def stop(self) -> None:
        """Fast stop: open transactions are rolled back, everything is written."""
        await self.child.stop(timeout_s=30.0)

    def _command(self, binaries: Path, run_as: RunAs) -> tuple[str, ...]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.socket_directory),
            "unix_socket_permissions": "0700",
            "max_connections": "200",
            "shared_buffers": self._shared_buffers,
            "max_wal_size": "4GB",
            "min_wal_size": "128MB",
            "checkpoint_timeout": "15min",
            "checkpoint_completion_target": "0.9",
            "fsync": "on" if self._durable else "off",
            "synchronous_commit": "on",
            "full_page_writes": "on" if self._durable else "off",
            "password_encryption": "scram-sha-256",
            "jit": "off",  # our statements are short; compiling them costs more than running them
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_line_prefix": "%m [%p] ",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return (*run_as.prefix, str(binaries / "postgres"), "-D", str(self.data), *options)

    def _create(self, binaries: Path, run_as: RunAs) -> None:
        """Make the cluster beside its final place, so that an interrupted start leaves nothing half made."""
        scratch = self.directory / "new"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(mode=0o700)
        password = scratch / "password"
        write_private(password, self._password + "\n")
        if run_as.owner:
            os.chown(scratch, *run_as.owner)
            os.chown(password, *run_as.owner)
        target = scratch / "data"
        initdb = [str(binaries / "initdb"), "-D", str(target), "--username", USER, "--pwfile", str(password)]
        initdb += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--data-checksums"]
        _run([*run_as.prefix, *initdb, *([] if self._durable else ["--no-sync"])])
        single = [str(binaries / "postgres"), "--single", "-D", str(target), "postgres"]
        _run([*run_as.prefix, *single], f"create database {DATABASE};\n")
        target.replace(self.data)
        shutil.rmtree(scratch, ignore_errors=True)

    def _own_sockets(self, run_as: RunAs) -> None:
        place = self.socket_directory
        place.mkdir(exist_ok=True, mode=0o700)
        expected = run_as.owner[0] if run_as.owner else os.geteuid()
        if place.stat().st_uid not in {expected, os.geteuid()}:
            raise EmbeddedError(f"{place}: expected our own directory, it belongs to another user; remove it")
        if run_as.owner:
            os.chown(place, *run_as.owner)

    def _load_password(self) -> str:
        path = self.directory / "password"
        if not path.exists():
            if self.data.exists():
                raise EmbeddedError(
                    f"{path} is missing, but {self.data} exists; restore it, or remove {self.directory}"
                )
            write_private(path, secrets.token_hex(24))
        return path.read_text().strip()

    async def _accepts(self) -> bool:
        """Read the state that the server writes into its pid file, as `pg_ctl` does."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0].strip() == str(self.child.pid) and lines[7].strip() == "ready"


def _run(command: list[str], text: str = "") -> None:
    try:
        done = subprocess.run(  # noqa: S603 - the command is ours
            command, input=text, capture_output=True, text=True, timeout=_INITDB_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EmbeddedError(f"creating the PostgreSQL cluster: {error}") from error
    if done.returncode != 0 or " FATAL:" in done.stderr:
        tail = "\n".join(f"  {line}" for line in (done.stdout + done.stderr).splitlines()[-12:])
        raise EmbeddedError(f"creating the PostgreSQL cluster failed (code {done.returncode}):\n{tail}")


def _check_version(binaries: Path, data: Path) -> None:
    made_by = (data / "PG_VERSION").read_text().strip()
    output = subprocess.run(  # noqa: S603
        [str(binaries / "postgres"), "--version"], capture_output=True, text=True, timeout=10, check=True
    ).stdout
    found = output.split()[2].partition(".")[0] if len(output.split()) > 2 else ""
    if found != made_by:
        raise EmbeddedError(
            f"{data} was made by PostgreSQL {made_by}, the one found is {found or output.strip()} ({binaries}); "
            f"set LANDBRIDGE_POSTGRES_BIN to version {made_by}, or dump and load the data with pg_dump"
        )
