"""A wire between a dispatcher and the broker that a test can cut: bytes then vanish, and nobody is told."""

import asyncio
import contextlib


class Link:
    """A TCP proxy. Cut, it is a black hole: connections stay open and silent, new ones are not answered."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        self._open.clear()

    def restore(self) -> None:
        """Let new connections through; those of before the cut are dead, as after a real outage."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        self._open.set()

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.restore()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(OSError):
            await self._open.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(back)
            await asyncio.gather(self._copy(reader, back), self._copy(there, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65_536):
                if not self._open.is_set():
                    continue
                writer.write(chunk)
                await writer.drain()
        writer.close()
