"""Claims go out in batches, several requests at a time; each reply is the grant."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.connection import Bus
from landbridge.bus.errors import BusError
from landbridge.domain.ownership import environment_model as own
from landbridge.domain.ownership.leases import PASSING_REFUSALS, HeldLease
from landbridge.runtime import logs
from landbridge.runtime.failpoints import failpoint
from landbridge.schema.wire.request_v1 import ClaimReply, ClaimRequest
from landbridge_dispatch.dispatcher.clocks import boot_ms
from landbridge_dispatch.dispatcher.desk import Item
from landbridge_dispatch.dispatcher.reporting import FEW, LINGER_S
from landbridge_dispatch.dispatcher.wire import from_wire, placement
from landbridge_dispatch.executors.protocol import SlotKey

log = logs.get(__name__)

BATCH_MAX: Final = 500
IN_FLIGHT_MAX: Final = 8
REPLY_WITHIN_S: Final = 5.0
RETRY_S: Final = (0.05, 0.2, 0.5, 1.0, 2.0)
ASK_AGAIN_S: Final = 2.0
# Refusals that say nothing about the placement, only about this moment.
PASSING: Final = frozenset({*PASSING_REFUSALS, "displaced"})
_reply: Final = msgspec.json.Decoder(ClaimReply)


class Claimer:
    """Asks the centre for placements, and feeds what it answers."""

    def __init__(self, environment: str, incarnation: str, lease: Callable[[], HeldLease]) -> None:
        self.feed: Callable[[list[Item]], None]
        """Where the answers go."""
        self._subject = subjects.claim(environment)
        self._incarnation = incarnation
        self._lease = lease
        self._bus: Bus
        self._waiting: dict[SlotKey, int] = {}
        self._arrived = asyncio.Event()
        self._room = asyncio.Semaphore(IN_FLIGHT_MAX)

    def add(self, key: SlotKey, term: int) -> None:
        """Claim a placement in this term."""
        self._waiting[key] = term
        self._arrived.set()

    async def run(self, bus: Bus) -> None:
        """Send what is there as soon as there is room: one by one when idle, by hundreds under load."""
        self._bus = bus
        last = 0
        async with asyncio.TaskGroup() as group:
            while True:
                await self._arrived.wait()
                if last > FEW:
                    # Under load a short pause makes requests larger; a lone claim is never held up.
                    await asyncio.sleep(LINGER_S)
                await self._room.acquire()
                batch = [key for key, _ in zip(self._waiting, range(BATCH_MAX), strict=False)]
                last = len(batch)
                terms = {self._waiting.pop(key) for key in batch}
                if not self._waiting:
                    self._arrived.clear()
                if batch:
                    group.create_task(self._claim(batch, max(terms)), name="claim")
                else:
                    self._room.release()

    async def _claim(self, batch: list[SlotKey], term: int) -> None:
        """Claim until answered, or until the term is over: a newer one claims again by itself."""
        body = msgspec.json.encode(
            ClaimRequest(incarnation=self._incarnation, term=term, items=tuple(placement(key) for key in batch))
        )
        attempt = 0
        try:
            while True:
                lease = self._lease()
                if lease.term != term or not lease.allows_start(boot_ms()):
                    return
                try:
                    answer = _reply.decode(await self._bus.request(self._subject, body, REPLY_WITHIN_S))
                except (BusError, msgspec.MsgspecError) as error:
                    log.warning("claim_failed", placements=len(batch), error=str(error))
                    await asyncio.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
                    attempt += 1
                else:
                    failpoint("dispatcher.after-grant")
                    self._take(batch, answer)
                    return
        finally:
            self._room.release()

    def _take(self, batch: list[SlotKey], answer: ClaimReply) -> None:
        items: list[Item] = [
            (granted.operation, own.Granted(from_wire(granted.epoch), answer.term)) for granted in answer.granted
        ]
        passing: list[str] = []
        for refused in answer.refused:
            retry = refused.reason in PASSING
            items.append((refused.operation, own.ClaimRefused(from_wire(refused.epoch), refused.reason, retry)))
            if retry:
                passing.append(refused.operation)
        self.feed(items)
        answered = {operation for operation, _ in items}
        passing += [key.operation for key in batch if key.operation not in answered]
        if passing:
            again: list[Item] = [(operation, own.LeaseGranted()) for operation in passing]
            asyncio.get_running_loop().call_later(ASK_AGAIN_S, self.feed, again)
