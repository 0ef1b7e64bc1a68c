"""One inbox for all replies of a connection: every request gets its own token, answered once or several times."""

import asyncio
import itertools
import secrets
from collections.abc import Callable
from typing import Final, Self

from nats.aio.msg import Msg

from landbridge.bus.errors import BusError, Unavailable

NO_RESPONDERS: Final = "503"


class Replies:
    """Hands out reply subjects and routes what arrives on them; a lost connection fails everything at once."""

    def __init__(self, inbox_prefix: str) -> None:
        self._prefix = f"{inbox_prefix}.{secrets.token_hex(11)}."
        self._skip = len(self._prefix)
        self._counter = itertools.count(1)
        self._waiting: dict[str, Callable[[Msg | BusError], None]] = {}
        self._subjects: dict[str, str] = {}

    @property
    def subscription(self) -> str:
        return f"{self._prefix}*"

    async def on_message(self, msg: Msg) -> None:
        receiver = self._waiting.get(msg.subject[self._skip :])
        if receiver is not None:
            receiver(msg)

    def open(self, receiver: Callable[[Msg | BusError], None], subject: str = "") -> str:
        """Register a receiver of any number of replies; returns the reply subject. `close` it in the end."""
        token = format(next(self._counter), "x")
        self._waiting[token] = receiver
        if subject:
            self._subjects[token] = subject.lower()
        return self._prefix + token

    def close(self, reply: str) -> None:
        token = reply[self._skip :]
        self._waiting.pop(token, None)
        self._subjects.pop(token, None)

    def expect(self, subject: str = "") -> "Expected":
        """One reply, awaited with a bound: `with replies.expect(subject) as one: …; await one.result(timeout_s)`."""
        return Expected(self, subject)

    def fail_all(self, error: BusError) -> None:
        """Whoever waits is told now and does not sit out a timeout (the connection is gone)."""
        for receiver in list(self._waiting.values()):
            receiver(error)

    def fail_subject(self, subject: str, error: BusError) -> None:
        """Tell who asked: the broker refused a publish on `subject` (reported in lower case, without a reply)."""
        for token, asked in list(self._subjects.items()):
            if asked == subject and token in self._waiting:
                self._waiting[token](error)


class Expected:
    """A single reply as a context manager, so that its token is always given back."""

    def __init__(self, replies: Replies, subject: str) -> None:
        self._replies = replies
        self._future: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self.reply = replies.open(self._receive, subject)

    def _receive(self, outcome: Msg | BusError) -> None:
        if self._future.done():
            return
        if isinstance(outcome, BusError):
            self._future.set_exception(outcome)
        else:
            self._future.set_result(outcome)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._replies.close(self.reply)
        if self._future.done() and not self._future.cancelled():
            self._future.exception()  # mark as seen: leaving early must not warn
        self._future.cancel()

    async def result(self, timeout_s: float) -> Msg:
        """Return the reply. Raises Unavailable after `timeout_s` seconds, or whatever the bus reported instead."""
        try:
            return await asyncio.wait_for(self._future, timeout_s)
        except TimeoutError:
            raise Unavailable(f"no reply within {timeout_s:g} s; the broker is slow or away") from None


def is_no_responders(msg: Msg) -> bool:
    return not msg.data and bool(msg.headers) and (msg.headers or {}).get("Status") == NO_RESPONDERS
