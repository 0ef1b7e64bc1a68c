"""One connection to the broker that never gives up: it reconnects, and rebuilds itself when the client gave up.

nats-py closes for good when its user expired or was revoked; the credentials file may have been renewed since, so the
bus then opens a new client with the same subscriptions. Everything that must be done again after a cut (pull requests,
snapshots) registers with `on_reconnect`.
"""

import asyncio
import logging
import re
import secrets
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import nats
import nats.errors
from nats.aio.client import RawCredentials
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from landbridge.bus.client import FastClient, Receiver
from landbridge.bus.credentials import inbox_prefix_of
from landbridge.bus.errors import BusError, NoResponder, NotPermitted, Unavailable
from landbridge.bus.replies import Replies, is_no_responders

log = logging.getLogger("landbridge.bus")

Callback = Callable[[Msg], Awaitable[None]]
Hook = Callable[[], None]
ProblemHook = Callable[[str, BusError], None]

_DENIED = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"')
_TELL_EVERY_S: Final = 10.0
_PENDING_BYTES_MAX: Final = 32 * 1024 * 1024
_CANCEL_AGAIN_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class BusSettings:
    """Where the broker is and who we are. Times in seconds."""

    url: str = "nats://127.0.0.1:4222"
    creds: Path | None = None
    creds_text: str = field(default="", repr=False)  # the same as text, where a process made them itself
    nkey: Path | None = None  # file of a seed, where the server knows users by their public keys
    source: str = ""  # ce-source of what we publish; default /services/<name>
    inbox_prefix: str = ""  # default: what the credentials allow, else _INBOX_<name>
    connect_within_s: float = 30.0
    reconnect_wait_s: float = 0.25
    ping_interval_s: float = 10.0
    drain_timeout_s: float = 5.0
    tls_ca: Path | None = None
    domain: str = ""  # JetStream domain, only where a leaf node stands between

    @property
    def api_prefix(self) -> str:
        return f"$JS.{self.domain}.API" if self.domain else "$JS.API"


@dataclass(eq=False, slots=True)
class BusSubscription:
    """A subscription that survives a rebuilt client."""

    bus: "Bus"
    subject: str
    queue: str
    callback: Callback | None
    receiver: Receiver | None = None
    inner: Subscription | None = field(default=None)

    async def close(self) -> None:
        """Stop receiving; never raises, whatever the state of the connection."""
        self.bus.forget(self)
        if self.inner is not None:
            with suppress(nats.errors.Error, OSError):
                await self.inner.unsubscribe()
            self.bus.detach(self.inner)

    async def finish(self) -> None:
        """Stop receiving, but first take what the broker had sent already. Of direct subscriptions; never raises."""
        self.bus.forget(self)
        if self.inner is not None:
            with suppress(nats.errors.Error, OSError):
                await self.inner.unsubscribe()
            await self.bus.settle()
            self.bus.detach(self.inner)


class Bus:
    """The connection. Made by `connect`; used through publish, consume, state and requests."""

    def __init__(self, settings: BusSettings, name: str) -> None:
        self.settings = settings
        self.name = name
        self.source = settings.source or f"/services/{name}"
        text = settings.creds_text or (settings.creds.read_text() if settings.creds else "")
        prefix = settings.inbox_prefix or (inbox_prefix_of(text, str(settings.creds or "credentials")) if text else "")
        self.inbox_prefix = prefix or f"_INBOX_{name}"
        self.replies = Replies(self.inbox_prefix)
        self.reconnects = 0
        self.stored: dict[str, int] = {}  # by stream: the number of the last message that the broker said it has stored
        self.denied: list[str] = []  # the latest refusals of the broker, for health and tests
        self._client = FastClient()
        self._subscriptions: list[BusSubscription] = []
        self._reconnect_hooks: list[Hook] = []
        self._problem_hooks: list[ProblemHook] = []
        self._closing = False
        self._told_at = 0.0
        self._rebuilding: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()

    # -- life -----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect for the first time. Raises Unavailable after `connect_within_s`, with the broker's last answer."""
        dialling = asyncio.create_task(self._dial())
        try:
            await asyncio.wait({dialling}, timeout=self.settings.connect_within_s)
            connected = dialling.done()
        finally:
            await _cancelled(dialling)
        if not connected:
            error = self._client.last_error
            self._closing = True
            with suppress(Exception):  # half-open clients may fail in any way while they close
                await self._client.close()
            raise Unavailable(
                f"no connection to NATS at {self.settings.url} as {self.name} within "
                f"{self.settings.connect_within_s:g} s: {error or 'no answer'}; is the server running, is the "
                "credentials file valid?"
            )
        dialling.result()
        await self.subscribe(self.replies.subscription, self.replies.on_message)

    async def _dial(self) -> None:
        settings = self.settings
        client = FastClient()
        self._client = client
        tls = ssl.create_default_context(cafile=settings.tls_ca) if settings.tls_ca else None
        await client.connect(
            servers=settings.url.split(","),
            name=self.name,
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnected,
            reconnected_cb=self._on_reconnected,
            closed_cb=self._on_closed,
            reconnect_time_wait=settings.reconnect_wait_s,  # type: ignore[arg-type]  # seconds, a float is fine
            max_reconnect_attempts=-1,
            ping_interval=settings.ping_interval_s,  # type: ignore[arg-type]
            max_outstanding_pings=2,
            drain_timeout=settings.drain_timeout_s,  # type: ignore[arg-type]
            user_credentials=RawCredentials(settings.creds_text) if settings.creds_text else settings.creds,
            nkeys_seed=str(settings.nkey) if settings.nkey else None,
            inbox_prefix=self.inbox_prefix,
            pending_size=_PENDING_BYTES_MAX,
            flush_timeout=10.0,
            tls=tls,
        )
        self._connected.set()

    async def drain(self) -> None:
        """Close: send what is buffered, then end. Bounded by `drain_timeout_s`; safe to call twice."""
        if self._closing:
            return
        self._closing = True
        if self._rebuilding is not None:
            self._rebuilding.cancel()
        self.replies.fail_all(Unavailable("the bus is closing"))
        if self._client.is_connected:
            await self.settle(self.settings.drain_timeout_s)
        with suppress(nats.errors.Error, OSError):
            await self._client.close()
        self._connected.clear()

    def healthy(self) -> bool:
        """Whether the broker can be talked to now."""
        return self._client.is_connected and not self._closing

    @property
    def max_payload(self) -> int:
        """The broker's limit for one message, headers included, in bytes."""
        return self._client.max_payload

    async def wait_connected(self, timeout_s: float) -> None:
        """Return once connected. Raises Unavailable after `timeout_s`."""
        if self.healthy():
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._connected.wait()
        except TimeoutError:
            raise Unavailable(f"not connected to NATS at {self.settings.url} for {timeout_s:g} s") from None

    # -- sending and receiving ------------------------------------------------------------------------------------

    async def write(self, frames: bytes) -> None:
        """Send ready protocol frames in one piece. Raises Unavailable if not connected (nothing is then sent)."""
        if not self.healthy():
            raise Unavailable("not connected to NATS")
        # One join and one write for a whole batch; the client's public publish() costs 10 us a message.
        await self._client._send_command(frames)  # noqa: SLF001
        await self._client._flush_pending()  # noqa: SLF001

    async def subscribe(self, subject: str, callback: Callback, queue: str = "") -> BusSubscription:
        """Core subscription, kept over reconnects and rebuilt clients."""
        subscription = BusSubscription(self, subject, queue, callback)
        self._subscriptions.append(subscription)
        await self._attach(subscription)
        return subscription

    async def subscribe_directly(self, subject: str, receiver: Receiver) -> BusSubscription:
        """Core subscription for masses: `receiver` gets the raw parts of each message; see `client.FastClient`."""
        subscription = BusSubscription(self, subject, "", None, receiver)
        self._subscriptions.append(subscription)
        await self._attach(subscription)
        return subscription

    async def _attach(self, subscription: BusSubscription) -> None:
        client = self._client
        with suppress(nats.errors.ConnectionClosedError):  # a rebuild follows and attaches it
            inner = await client.subscribe(subscription.subject, queue=subscription.queue, cb=subscription.callback)
            if subscription.receiver is not None:
                client.receive_directly(inner._id, subscription.receiver)  # noqa: SLF001 - the only name it has
            subscription.inner = inner

    def detach(self, inner: Subscription) -> None:
        self._client.receive_no_more(inner._id)  # noqa: SLF001

    def new_inbox(self) -> str:
        """Return a subject that only this connection reads; add one token for each use."""
        return f"{self.inbox_prefix}.{secrets.token_hex(11)}"

    def forget(self, subscription: BusSubscription) -> None:
        with suppress(ValueError):
            self._subscriptions.remove(subscription)

    async def settle(self, timeout_s: float = 5.0) -> None:
        """Return when the broker has seen all that was sent; does nothing if it is away."""
        with suppress(nats.errors.Error, OSError, TimeoutError):
            async with asyncio.timeout(timeout_s):
                # The client's flush() may send its PING ahead of what is still buffered; that has to go first.
                await self._client._flush_pending(force_flush=True)  # noqa: SLF001
                await self._client.flush()

    async def request(self, subject: str, body: bytes, timeout_s: float = 5.0) -> bytes:
        """One question, one answer. Raises NoResponder, NotPermitted, or Unavailable after `timeout_s`."""
        message = await self.request_message(subject, body, timeout_s)
        return bytes(message.data)

    async def request_message(self, subject: str, body: bytes, timeout_s: float = 5.0, headers: str = "") -> Msg:
        with self.replies.expect(subject) as expected:
            await self.write(frame(subject, expected.reply, headers, body))
            message = await expected.result(timeout_s)
        if is_no_responders(message):
            raise NoResponder(f"nobody answers on {subject}")
        return message

    async def respond(
        self, subject: str, handler: Callable[[str, bytes], Awaitable[bytes]], queue: str | None = None
    ) -> BusSubscription:
        """Answer requests on `subject`; see `landbridge.bus.requests`, which this calls."""
        from landbridge.bus.requests import respond

        return await respond(self, subject, handler, queue=queue)

    # -- hooks ----------------------------------------------------------------------------------------------------

    def on_reconnect(self, hook: Hook) -> None:
        self._reconnect_hooks.append(hook)

    def off_reconnect(self, hook: Hook) -> None:
        with suppress(ValueError):
            self._reconnect_hooks.remove(hook)

    def on_problem(self, hook: ProblemHook) -> None:
        """`hook(where, error)` is called for what nobody awaits: a missing consumer, a refused subscription."""
        self._problem_hooks.append(hook)

    def report_problem(self, where: str, error: BusError) -> None:
        log.warning("problem with %s: %s", where, error)
        for hook in self._problem_hooks:
            hook(where, error)

    async def _on_error(self, error: Exception) -> None:
        text = str(error)
        denied = _DENIED.search(text)
        if denied:
            refusal = NotPermitted(f"{self.name} may not {_VERB[denied[1]]} {denied[2]}")
            self.denied = [*self.denied[-99:], f"{denied[1]} {denied[2]}"]
            self.replies.fail_subject(denied[2], refusal)
            self.report_problem(denied[2], refusal)
            return
        if not self._client.is_connected and self._client._transport is not None:  # noqa: SLF001
            # A connection that was refused after it was made (authorisation) is otherwise left open by the client.
            self._client._transport.close()  # type: ignore[no-untyped-call]  # noqa: SLF001
        now = time.monotonic()
        if now - self._told_at >= _TELL_EVERY_S:  # while the broker is away there are several a second
            self._told_at = now
            log.info("connection %s to NATS: %s", self.name, text or type(error).__name__)

    async def _on_disconnected(self) -> None:
        self._connected.clear()
        self.replies.fail_all(Unavailable("the connection to NATS was cut"))
        if not self._closing:
            log.warning("connection %s to NATS was cut", self.name)

    async def _on_reconnected(self) -> None:
        self.reconnects += 1
        self._connected.set()
        log.info("connection %s to NATS is back", self.name)
        for hook in list(self._reconnect_hooks):
            hook()

    async def _on_closed(self) -> None:
        self._connected.clear()
        if self._closing or (self._rebuilding is not None and not self._rebuilding.done()):
            return
        reason = self._client.last_error
        log.error("connection %s to NATS was given up (%s); a new one is made", self.name, reason or "no reason told")
        self._rebuilding = asyncio.create_task(self._rebuild(), name=f"bus-rebuild-{self.name}")

    async def _rebuild(self) -> None:
        wait_s = 0.2
        while not self._closing:
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, 10.0)
            try:
                async with asyncio.timeout(10.0):
                    await self._dial()
            except (OSError, nats.errors.Error, TimeoutError) as error:
                log.warning("no new connection %s to NATS yet: %s", self.name, error)
                with suppress(Exception):  # half-open clients may fail in any way while they close
                    await self._client.close()
                continue
            for subscription in list(self._subscriptions):
                await self._attach(subscription)
            await self._on_reconnected()
            return


_VERB: Final = {"publish": "publish to", "subscription": "subscribe to"}


def frame(subject: str, reply: str, headers: str, body: bytes) -> bytes:
    """One PUB or HPUB frame. `headers` is a block without its final empty line, or empty."""
    if not headers:
        return f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n"
    block = f"{headers}\r\n".encode()
    return f"HPUB {subject} {reply} {len(block)} {len(block) + len(body)}\r\n".encode() + block + body + b"\r\n"


async def _cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task until it has ended; one that has ended stays as it is.

    Once is not enough: closing a connection that failed, the client swallows a cancellation, and then tries for ever.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=_CANCEL_AGAIN_S)
    if not task.cancelled():
        task.exception()  # now it has been asked for, as asyncio wants it


async def connect(settings: BusSettings, *, name: str) -> Bus:
    """Open a bus as `name`; it reconnects for ever afterwards."""
    bus = Bus(settings, name)
    await bus.open()
    return bus
