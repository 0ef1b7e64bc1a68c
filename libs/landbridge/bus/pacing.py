"""When a consumer takes what is there: at once, unless a moment's wait saves a transaction that nobody waits for."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sized
from typing import Final

LINGER_S: Final = 0.010
UNHURRIED_S: Final = 0.030
_MANY: Final = 200  # what is worth a batch of its own
_FEW: Final = 4


class Pace:
    """The pauses of one consumer before it takes a batch from `buffer`."""

    def __init__(
        self, buffer: Sized, *, gather_s: float = 0.0, unhurried: Callable[[bytes], bool] | None = None
    ) -> None:
        """`gather_s`: while messages keep coming, leave so many seconds between batches, unless there are many.

        `unhurried` tells of a subject, when its message arrives, that nobody waits for what comes of it. Such messages
        are left for up to `UNHURRIED_S` for an urgent one, and then taken with it, in the order of the stream.
        """
        self._buffer = buffer
        self._gather_s = gather_s
        self._unhurried = unhurried
        self._urgent = asyncio.Event()
        self._first_at = 0.0  # when the oldest message that is buffered came
        self._taken_at = 0.0
        self._last_size = 0

    def received(self, subject: bytes, now: float) -> None:
        """Note a message that is about to be buffered."""
        if self._unhurried is None:
            return
        if not self._buffer:
            self._first_at = now
        if not self._unhurried(subject):
            self._urgent.set()

    async def linger(self) -> None:
        """Before looking: under load a short pause makes batches larger; a lone message is never delayed."""
        if self._last_size > _FEW and len(self._buffer) < _MANY:
            await asyncio.sleep(LINGER_S)

    async def settle(self) -> None:
        """Before taking what is there."""
        if self._gather_s > 0:
            await self._sleep_until(self._taken_at + self._gather_s)
            self._taken_at = time.monotonic()
        if self._unhurried is not None and not self._urgent.is_set():
            rest = self._first_at + UNHURRIED_S - time.monotonic()
            if rest > 0 and len(self._buffer) < _MANY:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(rest):
                        await self._urgent.wait()

    async def _sleep_until(self, moment: float) -> None:
        rest = moment - time.monotonic()
        if rest > 0 and len(self._buffer) < _MANY:
            await asyncio.sleep(rest)

    def took(self, count: int) -> None:
        """Note that `count` messages were taken; what is still buffered is not left to wait again."""
        self._last_size = count
        if not self._buffer:
            self._urgent.clear()
