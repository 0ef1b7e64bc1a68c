"""A TCP proxy that a test can make behave like a bad network. One target, any number of connections."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from enum import StrEnum
from typing import Self

_CHUNK = 65_536
_THROTTLED_BYTES_A_SECOND = 16_384


class Wire(StrEnum):
    """What happens to bytes. Cut connections stay open and silent, as after a lost route; new ones are not answered."""

    PASS = "pass"
    BLACK_HOLE = "black-hole"
    ONLY_OUT = "only-out"
    """What the client sends arrives, nothing comes back."""
    ONLY_IN = "only-in"
    """Nothing that the client sends arrives, what the server sends does."""
    DELAY = "delay"
    THROTTLE = "throttle"
    """A few kilobytes a second."""


class Proxy:
    """`async with Proxy(target) as wire`; `wire.set(Wire.BLACK_HOLE)`, `wire.heal()`, `wire.reset()`.

    `target` gives the port at every new connection, so that a server may come back on another one; `host`: where it is.
    """

    def __init__(self, target: Callable[[], int], *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._target = target
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._mode = Wire.PASS
        self._delay_s = 0.0
        self._changed = asyncio.Event()
        self._trip: tuple[bytes, Wire] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut_bytes = 0
        """Bytes that were swallowed: whether a cut cut anything."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.heal()
        self._abort()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)

    @property
    def port(self) -> int:
        return self._port

    @property
    def mode(self) -> Wire:
        return self._mode

    def set(self, mode: Wire, *, delay_s: float = 0.0) -> None:
        """Change what happens to bytes from now on; `delay_s` is for one direction and Wire.DELAY only."""
        self._mode, self._delay_s = mode, delay_s
        self._changed.set()
        self._changed = asyncio.Event()

    def trip(self, needle: bytes, mode: Wire) -> None:
        """Change to `mode` as soon as the client has sent something that holds `needle`; that still arrives."""
        self._trip = needle, mode

    def heal(self) -> None:
        """Let everything through. Connections that lost bytes are dead, as after a real outage: they are ended."""
        self._trip = None
        dead = self._mode in (Wire.BLACK_HOLE, Wire.ONLY_IN, Wire.ONLY_OUT)
        self.set(Wire.PASS)
        if dead:
            self._abort()

    def reset(self) -> None:
        """End every connection with RST."""
        self._abort()

    def _abort(self) -> None:
        for writer in self._writers:
            sock = writer.get_extra_info("socket")
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        ours = {writer}
        try:
            while self._mode is Wire.BLACK_HOLE:
                await self._changed.wait()
            there, back = await asyncio.open_connection(self._host, self._target())
            ours.add(back)
            self._writers.add(back)
            await asyncio.gather(self._copy(reader, back, out=True), self._copy(there, writer, out=False))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            for each in ours:
                self._writers.discard(each)
                each.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, out: bool) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                if self._swallows(out=out):
                    self.cut_bytes += len(chunk)
                    continue
                if self._mode is Wire.DELAY:
                    await asyncio.sleep(self._delay_s)
                elif self._mode is Wire.THROTTLE:
                    await asyncio.sleep(len(chunk) / _THROTTLED_BYTES_A_SECOND)
                writer.write(chunk)
                if out and self._trip is not None and self._trip[0] in chunk:
                    self.set(self._trip[1])
                    self._trip = None
                await writer.drain()
        writer.close()

    def _swallows(self, *, out: bool) -> bool:
        return self._mode is Wire.BLACK_HOLE or self._mode is (Wire.ONLY_IN if out else Wire.ONLY_OUT)
