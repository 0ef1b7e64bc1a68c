"""A minimal HTTP/1.1 client for load: kept connections, ready requests, no work that would compete with the server."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import cast


class _Protocol(asyncio.Protocol):
    """One connection with at most one request in flight. Understands answers with Content-Length."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.waiter: asyncio.Future[tuple[int, bytes]] | None = None
        self.buffer = b""
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's own class is no subclass

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result((int(head.split(b" ", 2)[1]), rest[:length]))

    def connection_lost(self, _: Exception | None) -> None:
        self.closed = True
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(ConnectionError("the server closed the connection"))


@dataclass
class HttpLoad:
    """A pool of connections to one service. `post` raises ConnectionError."""

    port: int
    token: str
    host: str = "127.0.0.1"
    _idle: list[_Protocol] = field(default_factory=list)
    _all: list[_Protocol] = field(default_factory=list)

    async def post(self, path: str, body: bytes, *, key: str = "") -> tuple[int, bytes]:
        """Send one request on an idle or a new connection; return status and body."""
        idempotency = f"Idempotency-Key: {key}\r\n" if key else ""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\n{idempotency}Content-Length: {len(body)}\r\n\r\n"
        )
        connection = await self._connection()
        loop = asyncio.get_running_loop()
        connection.waiter = loop.create_future()
        assert connection.transport is not None
        connection.transport.write(head.encode() + body)
        answer = await connection.waiter
        self._idle.append(connection)
        return answer

    async def _connection(self) -> _Protocol:
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(_Protocol, self.host, self.port)
        self._all.append(made)
        return made

    def close(self) -> None:
        for connection in self._all:
            if connection.transport is not None:
                with contextlib.suppress(OSError):
                    connection.transport.close()
