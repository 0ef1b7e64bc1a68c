"""Reading the current value of every subject of a stream: a snapshot first, then each change, for ever.

This is how replicas keep their view of contracts, evidence, projects and policies. It uses the stream's direct-get
API and needs no consumer: nothing in the broker has to survive a restart, and its permission only reads. A core
subscription gives the hint that something changed; the messages themselves are then read by sequence, so that nothing
is missed; a slow poll covers lost hints. After a reconnect the snapshot is compared again, which also notices a stream
that was rebuilt. A message may be seen twice, in order; each is the whole value of its subject.

A hint travels ahead of whatever its publisher says after the change was stored. So who waits for `current` before it
handles a message decides by all that had been published before that message.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final

from landbridge.bus.connection import Bus
from landbridge.bus.direct import TooManyError, direct_get
from landbridge.bus.envelope import Inbound, LazyHeaders
from landbridge.bus.errors import StreamMissing, Unavailable

log = logging.getLogger("landbridge.bus")

PAGE: Final = 500
POLL_S: Final = 5.0
CURRENT_WITHIN_S: Final = 1.0  # what was announced and never stored is given up about then
_HINT_RETRY_S: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # a hint comes before the message is stored
_RECENT: Final = 1000
_RESYNC_EVERY: Final = 12  # waits; a stream that was rebuilt in silence is noticed within a minute
_BACKOFF_S: Final = (0.05, 0.2, 0.5, 1.0, 2.0)


class LastPerSubject:
    """`async for message in LastPerSubject(bus, stream, filter)`; `caught_up` is set once the snapshot was handled.

    "Handled" means that the reader came back for more after the snapshot's last message.
    """

    def __init__(self, bus: Bus, stream: str, subject_filter: str, *, poll_s: float = POLL_S) -> None:
        self.caught_up = asyncio.Event()
        self._bus = bus
        self._stream = stream
        self._filter = subject_filter
        self._poll_s = poll_s
        self._position = 0
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()  # nothing is announced that was not handled
        self._hinted: set[str] = set()  # ids that were announced and not yet read
        self._recent: deque[str] = deque(maxlen=_RECENT)  # ids that were read, perhaps before their announcement
        self._idle = 0
        self._resync = True

    async def current(self) -> None:
        """Return once all that was announced by now is handled; after a second in any case."""
        if not self._settled.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), CURRENT_WITHIN_S)

    async def __aiter__(self) -> AsyncIterator[Inbound]:
        subscription = await self._bus.subscribe_directly(self._filter, self._on_hint)
        self._bus.on_reconnect(self._on_reconnect)
        try:
            while True:
                for message in await self._persist(self._next):
                    yield message
                self.caught_up.set()
                if not self._hinted:
                    self._settled.set()
                await self._pause()
        finally:
            self._bus.off_reconnect(self._on_reconnect)
            await subscription.close()

    async def _next(self) -> list[Inbound]:
        if self._resync:
            found = await self._snapshot()
            self._resync = False
            self._note(found)
            return found
        return await self._changes()

    async def _persist(self, step: Any) -> list[Inbound]:
        """Repeat a step until the broker answers it; the cause is logged once."""
        tries = 0
        while True:
            try:
                found: list[Inbound] = await step()
                return found
            except (Unavailable, StreamMissing) as error:
                if tries == len(_BACKOFF_S):
                    self._bus.report_problem(f"{self._stream}/{self._filter}", error)
                await asyncio.sleep(_BACKOFF_S[min(tries, len(_BACKOFF_S) - 1)])
                tries += 1

    async def _pause(self) -> None:
        """Wait for a hint, a reconnect or the poll."""
        if not self._resync and not self._hinted:
            await self._sleep(self._poll_s)
            self._idle += 1
            if self._idle >= _RESYNC_EVERY:
                self._idle, self._resync = 0, True

    # -- snapshot -------------------------------------------------------------------------------------------------

    async def _snapshot(self) -> list[Inbound]:
        """Return the current values that are newer than what was seen; all of them if the stream was rebuilt."""
        try:
            latest, end = await self._snapshot_at_once()
        except TooManyError:  # more subjects than one request may have; the stream is then read from its start
            latest, end = await self._snapshot_by_scan()
        if end < self._position:
            log.warning("stream %s was rebuilt: it ends at %d, was read to %d", self._stream, end, self._position)
            self._position = 0
        fresh = [message for message in latest if message.stream_sequence > self._position]
        self._position = end
        return fresh

    async def _snapshot_at_once(self) -> tuple[list[Inbound], int]:
        found: list[Inbound] = []
        ask: dict[str, Any] = {"multi_last": [self._filter], "batch": PAGE}
        while True:
            page, end = await direct_get(self._bus, self._stream, ask)
            found += page
            up_to = int(end.get("Nats-UpTo-Sequence", "0"))
            if not page or int(end.get("Nats-Num-Pending", "0")) == 0:
                return found, up_to or (found[-1].stream_sequence if found else 0)
            ask = {**ask, "seq": page[-1].stream_sequence + 1, "up_to_seq": up_to}

    async def _snapshot_by_scan(self) -> tuple[list[Inbound], int]:
        latest: dict[str, Inbound] = {}
        position = 0
        while True:
            page, _ = await direct_get(self._bus, self._stream, self._after(position))
            if not page:
                return sorted(latest.values(), key=lambda message: message.stream_sequence), position
            latest.update((message.subject, message) for message in page)
            position = page[-1].stream_sequence

    # -- changes --------------------------------------------------------------------------------------------------

    async def _changes(self) -> list[Inbound]:
        """Return what came after the last message seen; with hints outstanding, look a few times."""
        for wait_s in (*_HINT_RETRY_S, 0.0):
            self._wake.clear()
            page, _ = await direct_get(self._bus, self._stream, self._after(self._position))
            if page:
                self._position = page[-1].stream_sequence
                self._note(page)
                return page
            if not self._hinted or not wait_s or self._resync:
                break
            await self._sleep(wait_s)
        # Announced and never stored: its publisher was refused, or the stream was rebuilt and counts from 1 again.
        self._resync = self._resync or bool(self._hinted)
        self._hinted.clear()
        return []

    def _note(self, read: list[Inbound]) -> None:
        ids = [message.id for message in read]
        self._hinted.difference_update(ids)
        self._recent.extend(ids)

    def _after(self, position: int) -> dict[str, Any]:
        return {"seq": position + 1, "next_by_subj": self._filter, "batch": PAGE}

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)

    def _on_hint(self, _subject: bytes, _reply: bytes, _body: bytes, headers: bytes) -> None:
        identifier = LazyHeaders(headers).get("ce-id", "")
        if identifier not in self._recent:
            if identifier:
                self._hinted.add(identifier)
                self._settled.clear()
            self._wake.set()

    def _on_reconnect(self) -> None:
        self._resync = True
        self._settled.clear()
        self._wake.set()
