"""The data directory of one machine: which file lies where, and the state that others may read."""

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.process import write_private

DEFAULT_DIRECTORY = ".landbridge"
VARIABLE = "LANDBRIDGE_DATA"
_SOCKET_PATH_MAX = 100  # sockaddr_un holds 107 characters on Linux, 103 on macOS


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """Paths below DIR. Everything in it is private to its owner."""

    root: Path

    @classmethod
    def locate(cls, given: str | Path | None = None) -> "DataDirectory":
        """From the option, LANDBRIDGE_DATA, or `.landbridge` here."""
        chosen = given or os.environ.get(VARIABLE) or DEFAULT_DIRECTORY
        return cls(Path(chosen).expanduser().resolve())

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    @property
    def keys(self) -> Path:
        return self.root / "keys"

    @property
    def creds(self) -> Path:
        return self.root / "creds"

    @property
    def admin_token(self) -> Path:
        return self.root / "tokens" / "admin"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def environments(self) -> Path:
        return self.root / "environments"

    @property
    def broker_accounts(self) -> Path:
        """The broker's configuration of accounts; it holds no secret."""
        return self.root / "nats" / "accounts.conf"

    @property
    def ports(self) -> Path:
        return self.root / "ports.json"

    @property
    def control_socket(self) -> Path:
        return socket_path(self.root, "control.sock")

    def log_of(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def create(self) -> None:
        """Make the directories, private. EmbeddedError when the place cannot be used."""
        try:
            for place in (self.root, self.keys, self.creds, self.admin_token.parent, self.logs, self.environments):
                place.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise EmbeddedError(
                f"data directory {self.root}: cannot be created ({error.strerror}: {error.filename}); "
                "choose another with --data DIR"
            ) from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise EmbeddedError(
                f"data directory {self.root}: not writable for this user; choose another with --data DIR"
            )

    def read_state(self) -> dict[str, Any] | None:
        """Return what the last supervisor wrote, whether or not it still runs; None when there is nothing readable."""
        try:
            found = json.loads(self.state.read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def write_state(self, state: dict[str, Any]) -> None:
        write_private(self.state, json.dumps(state, indent=2) + "\n")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the directory: one supervisor at a time, released by the kernel however the process ends."""
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise AlreadyRunningError(self) from error
            yield
        finally:
            os.close(descriptor)

    def is_held(self) -> bool:
        """Whether a supervisor runs on this directory now."""
        try:
            descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False


class AlreadyRunningError(EmbeddedError):
    """Another supervisor holds the data directory."""

    def __init__(self, directory: DataDirectory) -> None:
        state = directory.read_state() or {}
        where = state.get("urls", {}).get("dashboard")
        super().__init__(
            f"Landbridge already runs on {directory.root}"
            f" (process {state.get('pid', 'unknown')}{f', {where}' if where else ', still starting'}).\n"
            "See it with `landbridge status`, stop it with `landbridge down`, or start another one with --data DIR."
        )


def socket_path(directory: Path, name: str) -> Path:
    """Place of a unix socket: in the directory, or below the temporary one when that path is too long."""
    place = directory / name
    if len(str(place)) <= _SOCKET_PATH_MAX:
        return place
    digest = hashlib.sha256(str(directory).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"landbridge-{os.getuid()}-{digest}" / name
