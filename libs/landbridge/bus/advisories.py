"""What the broker itself reports: streams or consumers deleted, without a quorum, deliveries given up.

Advisories are plain messages without any guarantee, a few a day at most: FastStream carries them. It has a connection
of its own, which must never give up reconnecting (FastStream would then block the event loop).
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from faststream.nats import NatsBroker
from faststream.nats.annotations import NatsMessage
from nats.aio.client import RawCredentials

from landbridge.bus.connection import BusSettings
from landbridge.bus.credentials import inbox_prefix_of

SUBJECTS: Final = (
    "$JS.EVENT.ADVISORY.STREAM.DELETED.>",
    "$JS.EVENT.ADVISORY.STREAM.QUORUM_LOST.>",
    "$JS.EVENT.ADVISORY.CONSUMER.DELETED.>",
    "$JS.EVENT.ADVISORY.CONSUMER.QUORUM_LOST.>",
    "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>",
)
# Removing an environment deletes its durable: that is no cause for alarm.
_EXPECTED: Final = re.compile(r"consumer (deleted): COMMANDS/env-")
_WORDS: Final = {"DELETED": "deleted", "QUORUM_LOST": "without quorum", "MAX_DELIVERIES": "gave up delivering"}

Handler = Callable[[str, str], Awaitable[None]]


def describe(subject: str) -> tuple[str, str] | None:
    """Return what an advisory is about, and a sentence; None for one that means nothing bad."""
    parts = subject.split(".")
    if len(parts) < 6 or parts[4] not in _WORDS:
        return None
    about = "/".join(parts[5:7])
    text = f"{parts[3].lower()} {_WORDS[parts[4]]}: {about}"
    return None if _EXPECTED.match(text) else (about, text)


@asynccontextmanager
async def advisories(settings: BusSettings, name: str, handler: Handler) -> AsyncIterator[None]:
    """Call `handler(about, text)` for every bad advisory while the block runs."""
    text = settings.creds_text or (settings.creds.read_text() if settings.creds else "")
    options: dict[str, Any] = {"user_credentials": RawCredentials(text)} if text else {}
    broker = NatsBroker(
        settings.url.split(","),
        name=f"{name}-advisories",
        inbox_prefix=(inbox_prefix_of(text) if text else "") or f"_INBOX_{name}",
        max_reconnect_attempts=-1,
        reconnect_time_wait=1,
        logger=None,
        **options,
    )

    async def receive(message: NatsMessage) -> None:
        found = describe(message.raw_message.subject)
        if found is not None:
            await handler(*found)

    for subject in SUBJECTS:
        broker.subscriber(subject)(receive)
    await broker.start()
    try:
        yield
    finally:
        await broker.stop()
