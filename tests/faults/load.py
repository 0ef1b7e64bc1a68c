"""Clients: they submit, repeat, cancel, and note in a file of their own what they were told."""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.errors import BusError, PublishRefused
from landbridge.bus.publish import publish_batch
from landbridge.client import HttpClient, LandbridgeError
from landbridge.client.errors import BusyError, NotFoundError, RequestError, ServerError, UnreachableError
from landbridge.domain.ids import cloud_event_key, operation_id

from . import work
from .world import APPLICATION, PROJECT, World

_AGAIN = (UnreachableError, BusyError, ServerError)
_DOWN = frozenset({429, 502, 503, 504})
_SUBMISSION = event_type("submission", "Operation")
_SOURCE = f"/applications/{PROJECT}/{APPLICATION}"
_PATIENCE_S = 120.0
_CLIENTS = 12
_STORM = 60
CANARY = "canary"
T = TypeVar("T")


@dataclass
class Acknowledged:
    """What clients know: operation ids by key, cancels that were accepted, and answers that must not be."""

    operations: dict[str, str] = field(default_factory=dict)
    cancels: set[str] = field(default_factory=set)
    contradictions: list[str] = field(default_factory=list)


class Diary:
    """The clients' file: a line as soon as an answer has come, before anything else is done with it."""

    def __init__(self, file: Path) -> None:
        self.known = Acknowledged()
        if file.exists():
            for line in file.read_text().splitlines():
                with contextlib.suppress(ValueError):  # the last line of a killed run
                    self._take(json.loads(line))
        self._out = file.open("a", buffering=1)

    def close(self) -> None:
        self._out.close()

    def note(self, what: str, key: str, operation: str, **facts: Any) -> None:
        entry = {"what": what, "key": key, "operation": operation, "at": time.time(), **facts}
        self._out.write(json.dumps(entry) + "\n")
        self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        known, key, operation = self.known, entry["key"], entry["operation"]
        if entry["what"] == "cancel":
            known.cancels.add(operation)
            return
        before = known.operations.setdefault(key, operation)
        if before != operation:
            known.contradictions.append(f"key {key} was answered with {before}, later with {operation}")


class Load:
    """Submits operations by number, as fast as `upto` allows; the rest of what a client does follows by itself."""

    def __init__(self, world: World, seed: int, diary: Diary, processes: Path) -> None:
        self.world, self.seed, self.diary, self.processes = world, seed, diary, processes
        self._client: HttpClient | None = None
        self._bus: Bus | None = None
        self._later: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_CLIENTS)
        self.submitted = 0

    async def open(self) -> None:
        self._client = self.world.application()
        self._bus = await self.world.application_bus()

    async def close(self) -> None:
        assert self._client is not None
        assert self._bus is not None
        await self._client.close()
        await self._bus.drain()

    async def upto(self, number: int, *, seconds: float) -> None:
        """Submit all operations below `number`, spread over `seconds`."""
        count = number - self.submitted
        began = time.monotonic()
        for done in range(count):
            due = began + seconds * done / count
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self._slots.acquire()
            self._spawn(self._one(work.plan(self.seed, self.submitted, self.processes)))
            self.submitted += 1

    def again(self) -> None:
        """Submit once more what an earlier session submitted and got no answer for."""
        known = self.diary.known.operations
        for number in range(self.submitted):
            planned = work.plan(self.seed, number, self.processes)
            if planned.key not in known:
                self._spawn(self._one_more(planned))

    async def _one_more(self, planned: work.Planned) -> None:
        await self._slots.acquire()
        await self._one(planned)

    async def storm(self, draw: float) -> int:
        """Ask for the end of a third of the newest operations, all at once; return how many were asked for."""
        newest = list(self.diary.known.operations.items())[-_STORM:]
        asked = random.Random(draw).sample(newest, len(newest) // 3)
        asked = [(key, operation) for key, operation in asked if not key.startswith(CANARY)]
        for key, operation in asked:
            self._spawn(self._cancel(key, operation))
        return len(asked)

    async def settled(self) -> None:
        """Wait until all clients have their answers."""
        while self._later:
            await asyncio.wait(set(self._later))

    def _spawn(self, what: Awaitable[None]) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(what)
        self._later.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._later.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.diary.known.contradictions.append(f"client: {task.exception()!r}")

    async def _one(self, planned: work.Planned) -> None:
        try:
            operation = await self._submit(planned)
        finally:
            self._slots.release()
        for _ in range(planned.repeats):
            self._spawn(self._repeat(planned))
        if planned.cancel_after >= 0:
            await asyncio.sleep(planned.cancel_after)
            await self._cancel(planned.key, operation)

    async def _repeat(self, planned: work.Planned) -> None:
        """A client that is not sure whether it was heard, at once or some time later."""
        await asyncio.sleep(random.Random(planned.key).choice((0.0, 1.0, 10.0)))
        await self._submit(planned)

    async def _submit(self, planned: work.Planned) -> str:
        if planned.over_nats:
            return await self._over_nats(planned)
        client = self._client
        assert client is not None
        answer = await patiently(lambda: client.submit(planned.document, idempotency_key=planned.key))
        self.diary.note("accepted", planned.key, answer.id, existing=answer.existing)
        return answer.id

    async def _over_nats(self, planned: work.Planned) -> str:
        bus = self._bus
        assert bus is not None
        message = Outbound(subjects.submit(PROJECT), _SUBMISSION, planned.document, id=planned.key, source=_SOURCE)
        await patiently(lambda: publish_batch(bus, streams.SUBMISSIONS, [message]))
        operation = operation_id(PROJECT, cloud_event_key(_SOURCE, planned.key))
        self.diary.note("received", planned.key, operation)
        return operation

    async def _cancel(self, key: str, operation: str) -> None:
        client = self._client
        assert client is not None

        async def ask() -> bool:
            try:
                await client.cancel(operation, "no longer needed")
            except NotFoundError:
                return False  # received by the broker, not yet read by intake
            except RequestError as error:
                if isinstance(error, _AGAIN):
                    raise
                return False  # it had ended
            return True

        if await patiently(ask):
            self.diary.note("cancel", key, operation)


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again while the other side is away, as a client with a deadline of its own does."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return await ask()
        except (*_AGAIN, BusError, TimeoutError) as error:
            final = isinstance(error, PublishRefused) or (isinstance(error, RequestError) and error.status not in _DOWN)
            if final or time.monotonic() > deadline:
                raise
        except LandbridgeError:
            raise
        await asyncio.sleep(0.25)
