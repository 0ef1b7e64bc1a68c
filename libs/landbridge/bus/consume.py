"""Consuming a durable: a pull pump that keeps four batches asked for, and acknowledges in bulk and explicitly.

Small pulls starve a consumer silently, so requests for `prefetch` times the batch are outstanding; what is buffered
counts. A pull request dies with the connection or the server: idle heartbeats show that it lives, two missed beats or
a reconnect ask again. What is held (buffered, or taken and not yet acknowledged) is prolonged, so that the broker may
hand the messages of a dead consumer to others after seconds although a transaction may take longer.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from landbridge.bus import streams
from landbridge.bus.client import parse_status
from landbridge.bus.connection import Bus, BusSubscription
from landbridge.bus.envelope import Inbound, decode_raw, pending_of
from landbridge.bus.errors import ConsumerMissing, Unavailable
from landbridge.bus.pacing import Pace

log = logging.getLogger("landbridge.bus")

PREFETCH: Final = 4
EXPIRES_S: Final = 5.0
HEARTBEAT_S: Final = 1.0
MISSING_AFTER_S: Final = 3.0  # a broker that has just started says "nobody there" for a moment
_BACKOFF_S: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
_ACK: Final = b"$JS.ACK."
_GONE: Final = ("consumer deleted", "consumer not found", "consumer is push based")

Raw = tuple[bytes, bytes, bytes, bytes]  # subject, acknowledgement subject, body, header block


class Consumer:
    """One subscriber of a durable. Not for concurrent `take` calls: one loop owns one consumer."""

    def __init__(
        self,
        bus: Bus,
        stream: str,
        durable: str,
        filters: Sequence[str] = (),
        *,
        batch: int = 1000,
        prefetch: int = PREFETCH,
        ack_wait_s: float | None = None,
        gather_s: float = 0.0,
        unhurried: Callable[[bytes], bool] | None = None,
    ) -> None:
        """`gather_s` and `unhurried`: when batches are taken, see `Pace`."""
        self.bus = bus
        self.stream = stream
        self.durable = durable
        self.filters = tuple(filters)  # for telemetry and documents; the durable itself was declared by the centre
        self.batch = batch
        self.problem: ConsumerMissing | None = None
        self.pulls = 0
        self._window = batch * prefetch
        self._keepalive_s = (ack_wait_s or streams.ack_wait_of(stream, durable)) / 3
        self._buffer: deque[Raw] = deque()
        self._held: dict[bytes, float] = {}  # acknowledgement subject -> when received or last prolonged
        self._arrived = asyncio.Event()
        self._outstanding = 0
        self._generation = 0
        self._heard_at = 0.0
        self._pending = 0
        self._pace = Pace(self._buffer, gather_s=gather_s, unhurried=unhurried)
        self._failures = 0
        self._failing_since = 0.0
        self._retry_at = 0.0
        self._inbox = ""
        self._subscription: BusSubscription | None = None
        self._watch: asyncio.Task[None] | None = None
        self._kick = asyncio.Event()
        self._ask = msgspec.json.encode(
            {"batch": batch, "expires": int(EXPIRES_S * 1e9), "idle_heartbeat": int(HEARTBEAT_S * 1e9)}
        )
        self._stopped = False

    # -- what loops use -------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Subscribe and begin to pull. `take` does it by itself."""
        if self._subscription is not None:
            return
        self._inbox = self.bus.new_inbox()
        self._subscription = await self.bus.subscribe_directly(f"{self._inbox}.*", self._receive)
        self.bus.on_reconnect(self._on_reconnect)
        await self._pull()
        self._watch = asyncio.create_task(self._watchdog(), name=f"consumer-{self.stream}-{self.durable}")

    async def take(self, timeout_s: float | None = None) -> list[Inbound]:
        """Return what is there, up to `batch`, at least one message; empty only after `timeout_s` seconds."""
        await self.start()
        await self._pace.linger()
        if not self._buffer and not await self._wait(timeout_s):
            self._pace.took(0)
            return []
        await self._pace.settle()
        count = min(self.batch, len(self._buffer))
        pop = self._buffer.popleft
        taken = [pop() for _ in range(count)]
        self._pace.took(count)
        self._pending = pending_of(taken[-1][1].decode())
        await self._refill()
        return [decode_raw(*raw) for raw in taken]

    async def ack(self, batch: Sequence[Inbound]) -> None:
        """Done for good. One write for all; a lost acknowledgement means redelivery, which the inbox absorbs."""
        await self._answer([message.reply.encode() for message in batch], b"+ACK", release=True)

    async def nak(self, batch: Sequence[Inbound], delay_s: float = 0.0) -> None:
        """Deliver again, not before `delay_s` seconds from now."""
        body = b"-NAK" if delay_s <= 0 else b'-NAK {"delay":%d}' % int(delay_s * 1e9)
        await self._answer([message.reply.encode() for message in batch], body, release=True)

    async def term(self, message: Inbound) -> None:
        """Never deliver again. Only after the message is safe elsewhere (dead-lettered)."""
        await self._answer([message.reply.encode()], b"+TERM", release=True)

    def lag(self) -> int:
        """Return how many messages are not yet taken: buffered here and, as of the last delivery, in the stream."""
        if self._buffer:
            return pending_of(self._buffer[-1][1].decode()) + len(self._buffer)
        return self._pending

    def buffered(self) -> int:
        """Return how many messages are here and not yet taken."""
        return len(self._buffer)

    def healthy(self) -> bool:
        return self.problem is None and self.bus.healthy()

    async def stop(self) -> None:
        """Stop pulling and give back what was not taken, so that another replica gets it at once."""
        if self._stopped:
            return
        self._stopped = True
        self.bus.off_reconnect(self._on_reconnect)
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        if self._subscription is not None:
            await self._subscription.finish()
        waiting = [reply for _, reply, _, _ in self._buffer]
        self._buffer.clear()
        await self._answer(waiting, b"-NAK", release=True)

    # -- the pump -------------------------------------------------------------------------------------------------

    def _receive(self, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        """Take one message as it was parsed from the connection. The hottest lines of the project."""
        self._heard_at = now = time.monotonic()
        if not reply.startswith(_ACK):
            self._status(subject, headers)
            return
        self._outstanding -= 1
        self._failures = 0
        if self.problem is not None:
            self._recovered()
        self._held[reply] = now
        self._pace.received(subject, now)
        self._buffer.append((subject, reply, data, headers))
        self._arrived.set()

    def _status(self, subject: bytes, block: bytes) -> None:
        """Note that a pull request ended, or lives (100); those of an earlier connection do not count."""
        status, description, headers = parse_status(block)
        request = subject.rpartition(b".")[2]
        if status == "100" or request.partition(b"-")[0] != str(self._generation).encode():
            if status == "100" and self.problem is not None:
                self._recovered()
            return
        self._outstanding -= int(headers.get("Nats-Pending-Messages") or self.batch)
        reason = description.lower()
        if status in {"404", "408"} or "batch completed" in reason:
            self._failures = 0
            if self.problem is not None:
                self._recovered()
            self._kick.set()
            return
        self._failed(status, reason)

    def _failed(self, status: str, reason: str) -> None:
        """Nobody answers (503), the consumer is gone or refuses (409): back off, and alarm if it lasts."""
        now = time.monotonic()
        if self._failures == 0:
            self._failing_since = now
        if now >= self._retry_at:
            self._retry_at = now + _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)]
            self._failures += 1
        self._outstanding = 0
        lasts = now - self._failing_since >= MISSING_AFTER_S
        if self.problem is None and (lasts or any(word in reason for word in _GONE)):
            self.problem = ConsumerMissing(
                f"durable {self.durable} of stream {self.stream} delivers nothing "
                f"({status} {reason or 'no responders'}); declare the streams again (the centre's init step)"
            )
            self.bus.report_problem(f"{self.stream}/{self.durable}", self.problem)

    def _recovered(self) -> None:
        log.info("durable %s of %s delivers again", self.durable, self.stream)
        self.problem = None
        self._failures = 0

    def _on_reconnect(self) -> None:
        """All requests of the old connection are dead; the watchdog asks again at once."""
        self._generation += 1
        self._outstanding = 0
        self._failures = 0
        self._retry_at = 0.0
        self._kick.set()

    async def _refill(self) -> None:
        if self._outstanding + len(self._buffer) <= self._window - self.batch:
            await self._pull()

    async def _pull(self) -> None:
        """Ask until `prefetch` batches are outstanding or buffered."""
        if self._stopped or time.monotonic() < self._retry_at:
            return
        subject = f"{self.bus.settings.api_prefix}.CONSUMER.MSG.NEXT.{self.stream}.{self.durable}"
        frames = []
        while self._outstanding + len(self._buffer) + self.batch <= self._window:
            self._outstanding += self.batch
            self.pulls += 1
            reply = f"{self._inbox}.{self._generation}-{self.pulls}"
            frames.append(b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), reply.encode(), len(self._ask), self._ask))
        if frames:
            self._heard_at = time.monotonic()
            with contextlib.suppress(Unavailable):  # the reconnect hook asks again
                await self.bus.write(b"".join(frames))

    async def _watchdog(self) -> None:
        """Every half beat: ask again after silence, after a reconnect or a back-off; prolong what is held."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._kick.wait(), HEARTBEAT_S / 2)
            self._kick.clear()
            if not self.bus.healthy():
                continue
            now = time.monotonic()
            if self._outstanding > 0 and now - self._heard_at > 2.5 * HEARTBEAT_S:
                log.info("durable %s of %s is silent; asking again", self.durable, self.stream)
                if self._failures == 0:  # what follows, if it is a failure, began with the silence
                    self._failures, self._failing_since = 1, self._heard_at
                self._generation += 1
                self._outstanding = 0
            await self._refill()
            await self._prolong(now)

    async def _prolong(self, now: float) -> None:
        due = [reply for reply, since in self._held.items() if now - since >= self._keepalive_s]
        if due:
            for reply in due:
                self._held[reply] = now
            await self._answer(due, b"+WPI", release=False)

    async def _wait(self, timeout_s: float | None) -> bool:
        self._arrived.clear()
        if timeout_s is None:
            await self._arrived.wait()
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await self._arrived.wait()
        except TimeoutError:
            return False
        return True

    async def _answer(self, replies: Sequence[bytes], body: bytes, *, release: bool) -> None:
        if release:
            for reply in replies:
                self._held.pop(reply, None)
        size = len(body)
        frames = b"".join([b"PUB %b %d\r\n%b\r\n" % (reply, size, body) for reply in replies if reply])
        if frames:
            with contextlib.suppress(Unavailable):  # not sent: the broker delivers again, and the inbox absorbs it
                await self.bus.write(frames)
