"""Talking to an environment's dispatcher on its own machine, without the centre.

One JSON object a line each way over the Unix socket `site.sock` in the environment's directory; only its owner may
connect. Requests name what to `do`; answers hold `ok`, or `error` with a sentence for people.
"""

import json
import os
import socket
from pathlib import Path
from typing import Any

SOCKET_FILE = "site.sock"
ANSWER_BYTES_MAX = 16 * 2**20
_SUN_PATH_MAX = 100  # bytes; the kernel takes 107


class SiteError(Exception):
    """The dispatcher of this environment does not answer, or refused; the text says what to do."""


def ask_site(home: Path, request: dict[str, Any], *, timeout_s: float = 15.0) -> dict[str, Any]:
    """Ask the dispatcher whose directory is `home`. Raises SiteError.

    Requests: `status`; `operations` (`all`: with ended ones); `logs` (`operation`, `offset`, `limit`, `tail`);
    `stop` (`operation`, `reason`, `graceSeconds`, `force`); `doctor`. `operation` may be the beginning of an id.
    """
    path = home / SOCKET_FILE
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(short_path(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = _read_line(connection)
    except (OSError, ValueError) as error:
        raise SiteError(
            f"{home.name}: its dispatcher does not answer at {path} ({error}); is it running, and are you its user?"
        ) from error
    if "error" in answer:
        raise SiteError(f"{home.name}: {answer['error']}")
    return answer


def _read_line(connection: socket.socket) -> dict[str, Any]:
    received = bytearray()
    while not received.endswith(b"\n"):
        chunk = connection.recv(1 << 16)
        if not chunk or len(received) > ANSWER_BYTES_MAX:
            raise ValueError("the answer ended early")
        received += chunk
    answer: dict[str, Any] = json.loads(received)
    return answer


def short_path(path: Path) -> str:
    """Return a name for a Unix socket that fits the kernel's limit, however deep its directory lies.

    Where the path is too long, a descriptor of the directory stands in for it; one stays open per directory.
    """
    if len(os.fsencode(path)) <= _SUN_PATH_MAX:
        return str(path)
    if path.parent not in _directory_fds:
        _directory_fds[path.parent] = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    return f"/proc/self/fd/{_directory_fds[path.parent]}/{path.name}"


_directory_fds: dict[Path, int] = {}
