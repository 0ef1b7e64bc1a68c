"""The load and what is observed of it: submissions by NATS and HTTP, lifecycle events as an application hears them."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from nats.aio.msg import Msg

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.publish import publish_batch
from landbridge.domain.ids import cloud_event_key, operation_id

from .instance import APPLICATION, PROJECT

TERMINAL = ("completed", "failed", "cancelled")
HEARD = ("accepted", "refused", "running", *TERMINAL)
_SUBMISSION = event_type("submission", "Operation")
_BATCH = 500


class Observer:
    """Notes when each operation was first heard to be accepted, running and ended, on this process' clock."""

    def __init__(self) -> None:
        self.heard: dict[str, dict[str, float]] = {event: {} for event in HEARD}
        self._changed = asyncio.Event()

    async def on_message(self, msg: Msg) -> None:
        headers = msg.headers or {}
        event = msg.subject.split(".")[3]
        self.heard[event].setdefault(headers.get("ce-subject", "") or headers.get("ce-id", ""), time.perf_counter())
        self._changed.set()

    def count(self, *events: str) -> int:
        return sum(len(self.heard[event]) for event in events)

    @property
    def ended(self) -> int:
        return self.count(*TERMINAL)

    def end_of(self, operation: str) -> float | None:
        return next((self.heard[e][operation] for e in TERMINAL if operation in self.heard[e]), None)

    async def until(self, reached: Callable[[], bool], *, what: str, timeout_s: float) -> None:
        """Wait until `reached`; RuntimeError if nothing changed for `timeout_s` seconds."""
        while not reached():
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), timeout_s)
            except TimeoutError:
                counts = {event: len(found) for event, found in self.heard.items()}
                raise RuntimeError(f"{what}: nothing happened for {timeout_s:g} s; heard {counts}") from None


class Load:
    """One application's connection. Operation ids are known when submitting."""

    def __init__(self, bus: Bus, observer: Observer) -> None:
        self.bus = bus
        self.observer = observer
        self.source = f"/applications/{PROJECT}/{APPLICATION}"
        self._run = f"{time.time_ns():x}"
        self._next = 0

    @classmethod
    async def open(cls, url: str, creds: Path) -> "Load":
        observer = Observer()
        bus = await connect(BusSettings(url=url, creds=creds), name="application")
        for event in HEARD:
            await bus.subscribe(subjects.operation(event, PROJECT), observer.on_message)
        return cls(bus, observer)

    async def close(self) -> None:
        await self.bus.drain()

    def keys(self, count: int) -> list[str]:
        """Return fresh idempotency keys."""
        first, self._next = self._next, self._next + count
        return [f"{self._run}-{number}" for number in range(first, first + count)]

    def id_of(self, key: str, *, event: bool) -> str:
        """Return the operation's id for a key given over HTTP, or as the id of an event."""
        return operation_id(PROJECT, cloud_event_key(self.source, key) if event else key)

    async def submit(self, documents: Sequence[bytes]) -> tuple[list[str], float]:
        """Publish submissions in atomic batches; return the operations' ids and the time before the first write."""
        keys = self.keys(len(documents))
        subject = subjects.submit(PROJECT)
        started = time.perf_counter()
        for start in range(0, len(documents), _BATCH):
            part = zip(keys[start : start + _BATCH], documents[start : start + _BATCH], strict=True)
            messages = [Outbound(subject, _SUBMISSION, body, id=key, source=self.source) for key, body in part]
            await publish_batch(self.bus, streams.SUBMISSIONS, messages)
        return [self.id_of(key, event=True) for key in keys], started
