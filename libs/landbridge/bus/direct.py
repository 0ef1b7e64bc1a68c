"""Reading a stream by position, without a consumer: nothing in the broker has to be made for it, or survive."""

import asyncio
from typing import Any, Final

import msgspec
from nats.aio.msg import Msg

from landbridge.bus.connection import Bus, frame
from landbridge.bus.envelope import Inbound, decode
from landbridge.bus.errors import BusError, StreamMissing, Unavailable
from landbridge.bus.replies import is_no_responders

REPLY_TIMEOUT_S: Final = 5.0


class TooManyError(BusError):
    """More subjects than one request may have."""


async def direct_get(bus: Bus, stream: str, ask: dict[str, Any]) -> tuple[list[Inbound], dict[str, str]]:
    """One direct-get request: its messages and the headers of its end. Empty and {} if there are none.

    Raises StreamMissing, TooManyError, NotPermitted or Unavailable.
    """
    arrived: asyncio.Queue[Msg | BusError] = asyncio.Queue()
    subject = f"{bus.settings.api_prefix}.DIRECT.GET.{stream}"
    reply = bus.replies.open(arrived.put_nowait, subject)
    found: list[Inbound] = []
    try:
        await bus.write(frame(subject, reply, "", msgspec.json.encode(ask)))
        while True:
            async with asyncio.timeout(REPLY_TIMEOUT_S):
                outcome = await arrived.get()
            if isinstance(outcome, BusError):
                raise outcome
            headers = outcome.headers or {}
            if "Nats-Sequence" in headers:
                found.append(_inbound(outcome, headers))
                continue
            _check_end(stream, outcome, headers)
            return found, headers
    except TimeoutError:
        raise Unavailable(f"stream {stream} does not answer within {REPLY_TIMEOUT_S:g} s") from None
    finally:
        bus.replies.close(reply)


def _check_end(stream: str, end: Msg, headers: dict[str, str]) -> None:
    status = headers.get("Status", "")
    if is_no_responders(end):
        raise StreamMissing(f"stream {stream} does not exist, or allows no direct reads")
    if status == "413":
        raise TooManyError(stream)
    if status not in {"204", "404"}:
        raise Unavailable(f"stream {stream} answered {status} {headers.get('Description', '')}")


def _inbound(msg: Msg, headers: dict[str, str]) -> Inbound:
    message = decode(headers["Nats-Subject"], headers, msg.data)
    return msgspec.structs.replace(message, stream_sequence=int(headers["Nats-Sequence"]))
