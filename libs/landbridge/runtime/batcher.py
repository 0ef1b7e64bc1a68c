"""Requests that share transactions: whoever asks while a transaction runs is served by the next one, together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Req = TypeVar("Req")
Rep = TypeVar("Rep")


class RequestBatcher(Generic[Req, Rep]):
    """Collects single requests into batches for `handle`, which returns one reply per request, in order.

    A lone request is handled at once; under load batches grow by themselves. A reply may be an exception: it is raised
    to that asker only. An exception raised by `handle` is raised to every asker of the batch.
    """

    def __init__(
        self,
        handle: Callable[[Sequence[Req]], Awaitable[Sequence[Rep | Exception]]],
        *,
        limit: int = 1000,
        waiting_limit: int = 20_000,
    ) -> None:
        """`limit` is the largest batch; more than `waiting_limit` requests in wait are refused with QueueFullError."""
        self._handle = handle
        self._limit = limit
        self._waiting_limit = waiting_limit
        self._waiting: list[tuple[Req, asyncio.Future[Rep]]] = []
        self._worker: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, request: Req) -> Rep:
        """Return the reply to `request`. Raises QueueFullError, or what `handle` raised or returned for it."""
        if self._closed or len(self._waiting) >= self._waiting_limit:
            raise QueueFullError("too many requests wait" if not self._closed else "shutting down")
        future: asyncio.Future[Rep] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(), name="request-batcher")
        return await future

    def depth(self) -> int:
        """Return how many requests wait for the next batch."""
        return len(self._waiting)

    async def close(self) -> None:
        """Refuse new requests, finish those that wait."""
        self._closed = True
        if self._worker is not None:
            await asyncio.wait({self._worker})

    async def _work(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[: self._limit], self._waiting[self._limit :]
            batch = [entry for entry in batch if not entry[1].done()]  # askers that gave up meanwhile
            if batch:
                await self._serve(batch)

    async def _serve(self, batch: "list[tuple[Req, asyncio.Future[Rep]]]") -> None:
        replies: Sequence[Rep | Exception]
        try:
            replies = await self._handle([request for request, _ in batch])
            if len(replies) != len(batch):
                raise RuntimeError(f"{len(replies)} replies to {len(batch)} requests")
        except asyncio.CancelledError:
            for _, future in batch:
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the askers are the ones to know
            replies = [error] * len(batch)
        for (_, future), reply in zip(batch, replies, strict=True):
            if future.done():
                continue
            if isinstance(reply, Exception):
                future.set_exception(reply)
            else:
                future.set_result(reply)


class QueueFullError(Exception):
    """Too many requests wait; the asker should come back later."""
