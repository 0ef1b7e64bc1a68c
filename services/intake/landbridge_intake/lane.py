"""Publishing behind the answer: a caller is told as soon as the commit is durable, the stream follows at once.

What waits here is in the event log with its mark, so a crash loses nothing: the next start publishes it.
"""

import asyncio
from collections import deque

from landbridge.bus import subjects
from landbridge.runtime.failpoints import failpoint
from landbridge.runtime.outbox import Outbox, Written

_TOGETHER = 8


class PublishLane:
    """Publishes committed batches in the background, a few at a time."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._waiting: deque[Written] = deque()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.events = 0  # committed here and not yet in the stream

    def put(self, written: Written) -> None:
        """Take over what a transaction committed."""
        if written.events:
            self._waiting.append(written)
            self.events += len(written.events)
            self._idle.clear()
            self._arrived.set()

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                failpoint("intake.before-publish")
                part = self._next()
                async with asyncio.TaskGroup() as group:
                    for written in part:
                        group.create_task(self._outbox.publish_written(written), name="publish")
                self.events -= sum(len(written.events) for written in part)
            self._idle.set()

    def _next(self) -> list[Written]:
        """Take batches that may go at the same time: of documents the last one of a subject counts, so they queue."""
        part = [self._waiting.popleft()]
        while self._waiting and len(part) < _TOGETHER and not (_is_ordered(part[-1]) or _is_ordered(self._waiting[0])):
            part.append(self._waiting.popleft())
        return part

    async def flush(self, timeout_s: float) -> bool:
        """Wait until all is published; tell whether it was in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True


def _is_ordered(written: Written) -> bool:
    return any(subjects.family(event.subject) == "catalogue" for event in written.events[:1])
