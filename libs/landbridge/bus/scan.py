"""Reading a whole stream once, from its first message to the one that was the last when the reading began.

For audits and rebuilding, with the rights of the `streams` user: it makes a consumer in the broker's memory, which the
broker forgets by itself. Services never read like this; they have durables.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec
from nats.aio.msg import Msg

from landbridge.bus.connection import Bus, frame
from landbridge.bus.declare import api
from landbridge.bus.envelope import Inbound, decode
from landbridge.bus.errors import NoResponder, Unavailable
from landbridge.bus.replies import is_no_responders

PAGE: Final = 500
_PAGE_NS: Final = 10 * 1_000_000_000
_BACKOFF_S: Final = (0.05, 0.1, 0.3, 1.0, 2.0, 2.0)
_FORGOTTEN_AFTER_NS: Final = 60 * 1_000_000_000


async def scan(bus: Bus, stream: str, filters: Sequence[str] = (), *, first: int = 0) -> AsyncIterator[Inbound]:
    """Yield the stream's messages in order, those on `filters` only, from sequence `first` on. Raises BusError."""
    name = f"scan-{secrets.token_hex(8)}"
    config = {
        "name": name,
        "deliver_policy": "by_start_sequence" if first else "all",
        **({"opt_start_seq": first} if first else {}),
        "ack_policy": "none",
        "mem_storage": True,
        "num_replicas": 1,
        "inactive_threshold": _FORGOTTEN_AFTER_NS,
        "filter_subjects": list(filters),
    }
    made = await api(bus, f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": config})
    left = int(made["num_pending"])
    arrived: asyncio.Queue[Msg] = asyncio.Queue()
    inbox = bus.new_inbox()
    subscription = await bus.subscribe(inbox, arrived.put)
    ask = f"{bus.settings.api_prefix}.CONSUMER.MSG.NEXT.{stream}.{name}"
    try:
        while left > 0:
            count = min(PAGE, left)
            request = frame(ask, inbox, "", msgspec.json.encode({"batch": count, "expires": _PAGE_NS}))
            for msg in await _patiently(bus, request, stream, arrived, count):
                yield decode(msg.subject, msg.headers, msg.data, msg.reply)
            left -= count
    finally:
        await subscription.close()


async def _patiently(bus: Bus, request: bytes, stream: str, arrived: "asyncio.Queue[Msg]", count: int) -> list[Msg]:
    """Ask for the next `count` messages. A cluster needs a moment until all its servers know a new consumer."""
    for wait_s in _BACKOFF_S:
        await bus.write(request)
        try:
            return await _page(stream, arrived, count)
        except NoResponder:
            await asyncio.sleep(wait_s)
    raise Unavailable(f"{stream}: the reading consumer does not answer")


async def _page(stream: str, arrived: "asyncio.Queue[Msg]", count: int) -> list[Msg]:
    """Return the next `count` messages. Raises NoResponder if nobody knows the consumer, Unavailable if they stop."""
    found: list[Msg] = []
    try:
        async with asyncio.timeout(_PAGE_NS / 1e9 + 1.0):
            while len(found) < count:
                message = await arrived.get()
                if not found and is_no_responders(message):
                    raise NoResponder(stream)
                if not message.reply:  # a status: the request ended early
                    raise Unavailable(f"{stream}: {(message.headers or {}).get('Description', 'no answer')}")
                found.append(message)
    except TimeoutError as error:
        raise Unavailable(f"{stream}: {len(found)} of {count} messages came in time") from error
    return found
