"""Publishing into streams: written in one piece, answered by the broker's disk, retried with bounds.

Many messages go as an atomic batch: stored whole or not at all, with one disk synchronisation for all of them. Staging
a batch has a price of its own, though (the broker makes and removes a store on disk for each), so a few messages are
written one behind the other without waiting and answered one by one: a prefix of them may then be stored when the link
breaks, and what was not answered is sent again in order.

After an unanswered attempt the same events are sent again, a batch under a new batch id: they keep their ids, and
consumers drop what they have seen. Batch ids are random, because they are stream-wide and whoever guessed one could
join a foreign batch.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from nats.aio.msg import Msg

from landbridge.bus import streams
from landbridge.bus.connection import Bus, frame
from landbridge.bus.envelope import Outbound, encode_headers
from landbridge.bus.errors import (
    BusError,
    Conflict,
    NotPermitted,
    PublishRefused,
    StreamFull,
    StreamMissing,
    TooLarge,
    Unavailable,
)
from landbridge.bus.replies import is_no_responders

BATCH_MAX: Final = 1000  # the broker's limit
SINGLES_MAX: Final = 8  # so many are stored sooner, and with less of the broker's time, than a batch of them
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024  # staged in the broker's memory until the commit
DEADLINE_S: Final = 30.0
REPLY_TIMEOUT_S: Final = 5.0
MISSING_AFTER_S: Final = 3.0  # a broker that has just started says "nobody there" for a moment
_BACKOFF_S: Final = (0.02, 0.1, 0.3, 1.0, 2.0)

_FULL: Final = frozenset({10047, 10028, 10023, 10077, 10122, 10026})
_CONFLICT: Final = frozenset({10071, 10164, 10070, 10201})
_MISSING: Final = frozenset({10059, 10060})
_TOO_LARGE: Final = frozenset({10054, 10199})
_AGAIN: Final = frozenset({10008, 10009, 10039, 10074, 10176, 10210, 10211})  # not ready, no leader, too many


class _Error(msgspec.Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _Ack(msgspec.Struct):
    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    batch: str = ""
    count: int = 0
    error: _Error | None = None


_ACK: Final = msgspec.json.Decoder(_Ack)
_Sized = tuple[Outbound, str]  # a message and its header block


class Publisher:
    """Publishes events of any streams: grouped by stream, streams concurrently, the order within a stream kept."""

    def __init__(self, bus: Bus, *, deadline_s: float = DEADLINE_S) -> None:
        self._bus = bus
        self._deadline_s = deadline_s

    async def publish(self, messages: Sequence[Outbound]) -> None:
        """Store all messages. Raises BusError if any stream failed for good; others may have been stored."""
        groups: dict[str, list[Outbound]] = {}
        for message in messages:
            groups.setdefault(streams.stream_of(message.subject), []).append(message)
        if len(groups) == 1:
            [(stream, only)] = groups.items()
            await publish_batch(self._bus, stream, only, deadline_s=self._deadline_s)
            return
        outcomes = await asyncio.gather(
            *(publish_batch(self._bus, stream, group, deadline_s=self._deadline_s) for stream, group in groups.items()),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome


async def publish_batch(bus: Bus, stream: str, messages: Sequence[Outbound], *, deadline_s: float = DEADLINE_S) -> None:
    """Store messages of one stream: one atomic batch per 1,000; few messages, if none is guarded, one by one.

    Raises StreamFull, StreamMissing, Conflict, TooLarge, NotPermitted, PublishRefused, or Unavailable after
    `deadline_s` seconds of retries. With several chunks, earlier ones may be stored when a later one fails.
    """
    sized = [(message, encode_headers(message, bus.source)) for message in messages]
    for message, headers in sized:
        size = len(headers) + len(message.body) + 200
        if size > bus.max_payload:
            raise TooLarge(f"an event for {message.subject} has {size} bytes; the broker takes {bus.max_payload}")
    for chunk in _chunks(sized):
        await _publish_chunk(bus, stream, chunk, deadline_s)


def _chunks(sized: Sequence[_Sized]) -> Iterator[Sequence[_Sized]]:
    start = size = 0
    for i, (message, headers) in enumerate(sized):
        length = len(message.body) + len(headers)
        if i > start and (i - start >= BATCH_MAX or size + length > BATCH_BYTES_MAX):
            yield sized[start:i]
            start, size = i, 0
        size += length
    if start < len(sized):
        yield sized[start:]


async def _publish_chunk(bus: Bus, stream: str, chunk: Sequence[_Sized], deadline_s: float) -> None:
    """Try until stored, refused for good, or out of time."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    attempt = 0
    left = list(chunk)
    singly = len(chunk) <= SINGLES_MAX and not any(message.extra for message, _ in chunk)
    while True:
        try:
            await bus.wait_connected(max(0.01, started + deadline_s - loop.time()))
            await (_one_behind_the_other(bus, stream, left) if singly else _together(bus, stream, left))
            return
        except (Unavailable, StreamMissing) as error:
            limit_s = MISSING_AFTER_S if isinstance(error, StreamMissing) else deadline_s
            wait_s = _BACKOFF_S[min(attempt, len(_BACKOFF_S) - 1)]
            if loop.time() + wait_s - started > limit_s:
                raise
            attempt += 1
            await asyncio.sleep(wait_s)


async def _together(bus: Bus, stream: str, chunk: Sequence[_Sized]) -> None:
    """One try as an atomic batch: everything in one write, the reply subject only on the message that commits."""
    last, last_headers = chunk[-1]
    with bus.replies.expect(last.subject) as expected:
        if len(chunk) == 1:
            frames = frame(last.subject, expected.reply, last_headers, last.body)
        else:
            frames = _batch_frames(chunk, expected.reply)
        await bus.write(frames)
        _check(bus, stream, last.subject, await expected.result(REPLY_TIMEOUT_S))


async def _one_behind_the_other(bus: Bus, stream: str, left: list[_Sized]) -> None:
    """One try message by message, in one write; takes from `left` what was stored before the first failure."""
    with contextlib.ExitStack() as stack:
        expected = [stack.enter_context(bus.replies.expect(message.subject)) for message, _ in left]
        await bus.write(
            b"".join(
                frame(message.subject, one.reply, headers, message.body)
                for (message, headers), one in zip(left, expected, strict=True)
            )
        )
        for one in expected:
            _check(bus, stream, left[0][0].subject, await one.result(REPLY_TIMEOUT_S))
            del left[0]


def _check(bus: Bus, stream: str, subject: str, reply: Msg) -> None:
    """Return if the broker says that `stream` has stored what was sent. Raises BusError."""
    if is_no_responders(reply):
        raise StreamMissing(f"no stream takes {subject}; expected {stream}: has the centre declared its streams?")
    ack = _ACK.decode(reply.data)
    if ack.error is not None:
        raise _refusal(stream, subject, ack.error)
    if ack.stream != stream:
        raise PublishRefused(f"{subject} was stored in {ack.stream!r}, expected {stream!r}: overlapping streams?")
    bus.stored[stream] = max(ack.seq, bus.stored.get(stream, 0))


def _batch_frames(chunk: Sequence[_Sized], reply: str) -> bytes:
    common = f"Nats-Batch-Id: {secrets.token_hex(16)}\r\nNats-Batch-Sequence: "
    final = len(chunk)
    parts: list[bytes] = []
    for number, (message, headers) in enumerate(chunk, 1):
        commit, to = ("Nats-Batch-Commit: 1\r\n", reply) if number == final else ("", "")
        block = f"{headers}{common}{number}\r\n{commit}\r\n".encode()
        body = message.body
        parts += (
            f"HPUB {message.subject} {to} {len(block)} {len(block) + len(body)}\r\n".encode(),
            block,
            body,
            b"\r\n",
        )
    return b"".join(parts)


def _refusal(stream: str, subject: str, error: _Error) -> BusError:
    text = f"stream {stream} refused {subject}: {error.description} ({error.err_code})"
    code = error.err_code
    if code in _AGAIN:
        return Unavailable(text)
    if code in _MISSING:
        return StreamMissing(text)
    if code in _FULL or "maximum" in error.description:
        return StreamFull(text)
    if code in _CONFLICT:
        return Conflict(text)
    if code in _TOO_LARGE:
        return TooLarge(text)
    return PublishRefused(text, code)


__all__ = ["BATCH_MAX", "NotPermitted", "Publisher", "publish_batch"]
