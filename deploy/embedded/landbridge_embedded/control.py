"""The supervisor's socket: one JSON line asks, one JSON line answers. Only its owner can open it."""

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.layout import DataDirectory

Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
_LINE_BYTES_MAX = 1 << 20


class ControlServer:
    """Answers on DIR/control.sock while the supervisor runs."""

    def __init__(self, path: Path, handler: Handler) -> None:
        self._path, self._handler = path, handler
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listen; a socket left by an earlier run is replaced, which is safe while the directory is held."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, self._path, limit=_LINE_BYTES_MAX)
        finally:
            os.umask(before)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in list(self._open):
                writer.close()
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            return  # the caller went away or sent a line without end
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                return {"error": "expected a JSON object"}
            return await self._handler(request)
        except ValueError as error:
            return {"error": f"not JSON: {error}"}
        except EmbeddedError as error:
            return {"error": str(error)}


def ask(data: DataDirectory, command: str, *, timeout_s: float = 10.0, **arguments: Any) -> dict[str, Any]:
    """Ask the supervisor of a data directory. EmbeddedError when none answers or it refuses."""
    state = data.read_state() or {}
    path = str(state.get("control") or data.control_socket)
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(timeout_s)
            sock.connect(path)
            sock.sendall(json.dumps({"command": command, **arguments}).encode() + b"\n")
            with sock.makefile("rb") as answer:
                line = answer.readline()
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise EmbeddedError(f"no Landbridge runs on {data.root}; start it with `landbridge up`") from error
    except OSError as error:
        raise EmbeddedError(f"the supervisor of {data.root} does not answer on {path}: {error}") from error
    found: dict[str, Any] = json.loads(line) if line else {}
    if "error" in found:
        raise EmbeddedError(str(found["error"]))
    return found
