"""TCP ports of one machine: fixed by the user, else those of the last run when still free, else any."""

import contextlib
import json
import secrets
import socket
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path

from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.port_claims import claim, claimed, give_back
from landbridge_embedded.process import write_private

# Both below what Linux takes for outgoing connections (ip_local_port_range); apart, so that what is chosen for the
# moment never takes what an instance that is down remembers.
_RANGE = range(20_000, 32_000)
_MOMENTARY = range(10_000, 20_000)
_ATTEMPTS = 50
_MOMENTS = 100
_momentary: deque[int] = deque()


def pick_ports(names: Iterable[str], *, fixed: Mapping[str, int], memory: Path) -> dict[str, int]:
    """Choose a port for every name and remember it in the file `memory`.

    A remembered port that is taken now, or spoken for by another instance, is replaced; a fixed one that is taken is an
    error.
    """
    remembered = _read(memory)
    chosen: dict[str, int] = {}
    with contextlib.ExitStack() as held:  # all are held until all are chosen, so that no two get the same
        for name in names:
            wanted = fixed.get(name, 0)
            before = remembered.get(name, 0)
            port = _hold(held, wanted) if wanted else _hold_claimed(held, before) or _hold_any(held, _RANGE)
            if not port:
                raise EmbeddedError(
                    f"port {wanted} for {name}: already in use; stop what listens there, or choose another"
                )
            chosen[name] = port
    write_private(memory, json.dumps({**remembered, **chosen}, indent=2, sort_keys=True) + "\n")
    return chosen


def free_port() -> int:
    """Find a TCP port on loopback that nobody listens on now.

    No other process of this user is given it until this one has ended, or asked for a hundred more: time to bind it.
    """
    while len(_momentary) >= _MOMENTS:
        give_back(_momentary.popleft())
    with contextlib.ExitStack() as held:
        port = _hold_any(held, _MOMENTARY)
    _momentary.append(port)
    return port


def _hold_any(held: contextlib.ExitStack, among: range) -> int:
    """Bind a port that outgoing connections of others do not use, so that it is still free at the next start."""
    for _ in range(_ATTEMPTS):
        port = secrets.choice(among)
        if not claimed(port) and _hold_claimed(held, port):
            return port
    return _hold(held, 0)


def _hold_claimed(held: contextlib.ExitStack, port: int) -> int:
    """Bind a port that no other instance speaks for; 0 when it is taken, or there is none."""
    return _hold(held, port) if port and claim(port) else 0


def _hold(held: contextlib.ExitStack, port: int) -> int:
    """Bind the port while choosing; 0 when it is taken."""
    sock = held.enter_context(socket.socket())
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", port))
        sock.listen(1)
    except (OSError, OverflowError):
        return 0
    return int(sock.getsockname()[1])


def _read(memory: Path) -> dict[str, int]:
    try:
        found = json.loads(memory.read_text())
        return {str(name): int(port) for name, port in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
