"""The site's own door: an operator on the machine can see and stop work without the centre.

A Unix socket that only the dispatcher's user may connect to; the requests are those of `landbridge.client.site`.
"""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from landbridge.client.site import SOCKET_FILE, short_path
from landbridge.domain.ownership import environment_model as own
from landbridge.runtime import logs
from landbridge_dispatch.dispatcher.desk import Desk
from landbridge_dispatch.dispatcher.queries import describe
from landbridge_dispatch.executors.protocol import Executor, SlotView

log = logs.get(__name__)

REQUEST_BYTES_MAX: Final = 65_536
STOPPED_ON_SITE: Final = "stopped-on-site"
GRACE_S: Final = 30
OPERATIONS_MAX: Final = 2000


class SiteDoor:
    """Serves `site.sock`."""

    def __init__(
        self,
        home: Path,
        executor: Executor,
        desk: Desk,
        *,
        status: Callable[[], dict[str, Any]],
        doctor: Callable[[], Awaitable[dict[str, Any]]],
    ) -> None:
        self._path = home / SOCKET_FILE
        self._executor = executor
        self._desk = desk
        self._status = status
        self._doctor = doctor
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Begin to answer."""
        self._path.unlink(missing_ok=True)
        previous = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, short_path(self._path), limit=REQUEST_BYTES_MAX)
        finally:
            os.umask(previous)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, EOFError):
            connection: socket.socket = writer.get_extra_info("socket")
            _, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if uid not in (os.getuid(), 0):
                log.warning("site_refused", uid=uid)
            else:
                line = await reader.readline()
                writer.write(msgspec.json.encode(await self._answer(line)) + b"\n")
                await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = msgspec.json.decode(line, type=dict[str, Any])
            return await self._do(request)
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            return {"error": f"the request cannot be understood: {error}"}

    async def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        match request.get("do"):
            case "status":
                return {"ok": True, **self._status()}
            case "operations":
                views = await self._executor.inventory()
                wanted = [view for view in views if request.get("all") or view.phase not in own.FINAL]
                shown = [describe(view) for view in wanted[:OPERATIONS_MAX]]
                return {"ok": True, "operations": shown, "more": len(wanted) - len(shown)}
            case "logs":
                return await self._logs(request)
            case "stop":
                return await self._stop(request)
            case "doctor":
                return {"ok": True, **await self._doctor()}
        return {"error": f"unknown request {request.get('do')!r}; expected status, operations, logs, stop or doctor"}

    async def find(self, operation: str) -> SlotView | None:
        """Return the newest slot of an operation."""
        views = [view for view in await self._executor.inventory() if view.operation == operation]
        return max(views, key=lambda view: view.epoch, default=None)

    async def _named(self, request: dict[str, Any]) -> SlotView | str:
        """Return the newest slot of the operation whose id begins as asked; else what is wrong."""
        text = str(request.get("operation") or "")
        views = [view for view in await self._executor.inventory() if text and view.operation.startswith(text)]
        operations = sorted({view.operation for view in views})
        if len(operations) > 1:
            return f"{text!r} begins several operations: {', '.join(operations[:5])}; give more of the id"
        if not views:
            return f"no operation {text!r} here; `operations` lists what there is"
        return max(views, key=lambda view: view.epoch)

    async def _logs(self, request: dict[str, Any]) -> dict[str, Any]:
        view = await self._named(request)
        if isinstance(view, str):
            return {"error": view}
        chunk = await self._executor.logs(
            view.key,
            offset=int(request.get("offset", 0)),
            limit=int(request.get("limit", 65_536)),
            tail=int(request.get("tail", 0)),
        )
        if chunk is None:
            return {"error": f"nothing is kept of operation {view.operation}"}
        text = chunk.data.decode(errors="replace")
        return {
            "ok": True,
            "operation": view.operation,
            "text": text,
            "nextOffset": chunk.next_offset,
            "end": chunk.end,
        }

    async def _stop(self, request: dict[str, Any]) -> dict[str, Any]:
        """Stop work here; the centre hears of it as soon as it can. `must-finish` work needs `force`."""
        view = await self._named(request)
        if isinstance(view, str):
            return {"error": view}
        if view.phase in own.FINAL:
            return {"error": f"operation {view.operation} has already ended here"}
        force = bool(request.get("force"))
        must_finish = view.policy.policy.value == "must-finish"
        if must_finish and not force:
            return {"error": f"operation {view.operation} is declared must-finish; stop it with force"}
        grace_ms = 0 if force and not must_finish else int(request.get("graceSeconds", GRACE_S)) * 1000
        log.warning("stopped_on_site", operation=view.operation, reason=str(request.get("reason", "")), force=force)
        await self._desk.done([(view.operation, own.Stop(view.epoch, STOPPED_ON_SITE, grace_ms, force))])
        return {"ok": True, "operation": view.operation, "stopping": True}
