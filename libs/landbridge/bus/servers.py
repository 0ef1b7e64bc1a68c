"""What every server of the broker says of how it stores: asked through the system account, answered by each."""

import asyncio
from typing import Final

import msgspec
from nats.aio.msg import Msg

from landbridge.bus.connection import Bus, frame
from landbridge.bus.errors import BusError
from landbridge.bus.replies import is_no_responders

JETSTREAM_PING: Final = "$SYS.REQ.SERVER.PING.JSZ"
# Servers answer at once; how many there are nobody knows.
GATHER_S: Final = 1.0


class _Server(msgspec.Struct):
    name: str = ""
    id: str = ""


class _Config(msgspec.Struct):
    sync_always: bool = False


class _Data(msgspec.Struct):
    disabled: bool = False
    config: _Config | None = None


class _Answer(msgspec.Struct):
    server: _Server = msgspec.field(default_factory=_Server)
    data: _Data = msgspec.field(default_factory=_Data)


_read: Final = msgspec.json.Decoder(_Answer)


class StoringServer(msgspec.Struct, frozen=True):
    """A server that keeps streams. `syncs_always`: what it acknowledges is on its disk."""

    name: str
    syncs_always: bool


async def storing_servers(bus: Bus, *, gather_s: float = GATHER_S) -> list[StoringServer]:
    """Return the servers that keep streams, by name; `bus` is of the system account.

    Raises BusError if none can be asked. One without streams is left out, one whose answer cannot be read is taken
    not to sync.
    """
    answers: list[Msg | BusError] = []
    reply = bus.replies.open(answers.append, JETSTREAM_PING)
    try:
        await bus.write(frame(JETSTREAM_PING, reply, "", b""))
        await asyncio.sleep(gather_s)
    finally:
        bus.replies.close(reply)
    found: dict[str, StoringServer] = {}
    for answer in answers:
        if isinstance(answer, BusError):
            raise answer
        if not is_no_responders(answer):
            found |= _storing(bytes(answer.data))
    return [found[name] for name in sorted(found)]


def _storing(body: bytes) -> dict[str, StoringServer]:
    try:
        answer = _read.decode(body)
    except msgspec.MsgspecError:
        return {"": StoringServer("one that answers as no server of a known release does", syncs_always=False)}
    if answer.data.disabled or answer.data.config is None:
        return {}
    name = answer.server.name or answer.server.id
    return {answer.server.id or name: StoringServer(name, answer.data.config.sync_always)}
