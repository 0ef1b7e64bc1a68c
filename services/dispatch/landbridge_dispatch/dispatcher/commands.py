"""Commands from the centre: understood completely, or refused.

A field or a value that this dispatcher does not know may mean "only if" or "not unless": acting on the rest of such a
command would be acting on another one. So it is refused, with the placements that it names.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.consume import Consumer
from landbridge.bus.envelope import Inbound
from landbridge.domain.ownership import environment_model as own
from landbridge.runtime import logs
from landbridge.runtime.telemetry import Telemetry
from landbridge.schema.wire import command_v1 as wire
from landbridge_dispatch.dispatcher.desk import Desk, Item
from landbridge_dispatch.dispatcher.offers import OfferDoor
from landbridge_dispatch.dispatcher.wire import from_wire
from landbridge_dispatch.executors.protocol import RefusalCode, SlotKey

log = logs.get(__name__)

DEFAULT_GRACE_MS: Final = 30_000
_DECODERS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    "offer": msgspec.json.Decoder(wire.Offers),
    "withdraw": msgspec.json.Decoder(wire.Withdrawals),
    "stop": msgspec.json.Decoder(wire.Stops),
    "settle": msgspec.json.Decoder(wire.Settlements),
    "probe-plan": msgspec.json.Decoder(wire.ProbePlan),
    "verify": msgspec.json.Decoder(wire.VerifyNow),
}


class _Named(msgspec.Struct, frozen=True):
    operation: str
    epoch: wire.Epoch


class _Anything(msgspec.Struct, frozen=True):
    """The placements of a command that is otherwise not understood."""

    offers: tuple[_Named, ...] = ()
    items: tuple[_Named, ...] = ()


_anything: Final = msgspec.json.Decoder(_Anything)


class Commands:
    """Reads the environment's durable and brings what it says to the desk, the offers' door and the prober."""

    def __init__(
        self,
        consumer: Consumer,
        desk: Desk,
        door: OfferDoor,
        *,
        reconciled: asyncio.Event,
        plan: Callable[[wire.ProbePlan], Awaitable[None]],
        verify: Callable[[Sequence[str]], None],
        telemetry: Telemetry,
    ) -> None:
        self._reconciled = reconciled
        self._telemetry = telemetry
        self._consumer = consumer
        self._desk = desk
        self._door = door
        self._plan = plan
        self._verify = verify

    async def run(self) -> None:
        """Take, carry out, acknowledge, until cancelled; after a hello not before the centre has seen what is here."""
        while True:
            batch = await self._consumer.take()
            await self._reconciled.wait()
            spans, inside = self._telemetry.begin(batch, self._consumer.durable)
            for message in inside:
                # Fed one by one, in their order; carried out together.
                self._desk.feed(await self._read(message))
            await self._desk.done([])
            if spans is not None:
                spans.end()
            await self._consumer.ack(batch)

    async def _read(self, message: Inbound) -> list[Item]:
        kind = subjects.token(message.subject, 4)
        decoder = _DECODERS.get(kind)
        try:
            if message.problem or decoder is None:
                raise msgspec.ValidationError(message.problem or f"a command of unknown kind {kind!r}")
            command = decoder.decode(message.body)
        except msgspec.MsgspecError as error:
            return self._not_understood(message, error)
        match command:
            case wire.Offers():
                return await self._door.admit(command.offers, message.traceparent)
            case wire.Withdrawals():
                return [self._withdraw(item) for item in command.items]
            case wire.Stops():
                return [self._stop(item) for item in command.items]
            case wire.Settlements():
                return [(item.operation, own.Settled(from_wire(item.epoch))) for item in command.items]
            case wire.ProbePlan():
                await self._plan(command)
            case wire.VerifyNow():
                self._verify(command.probes)
        return []

    def _withdraw(self, item: wire.PlacementRef) -> Item:
        epoch = from_wire(item.epoch)
        self._door.forget(SlotKey(item.operation, epoch))
        return item.operation, own.Withdraw(epoch)

    def _stop(self, item: wire.Stop) -> Item:
        epoch = from_wire(item.epoch)
        self._door.forget(SlotKey(item.operation, epoch))
        grace_ms = 0 if item.force else item.grace_seconds * 1000 or DEFAULT_GRACE_MS
        return item.operation, own.Stop(epoch, item.reason or "cancelled", grace_ms, item.force)

    def _not_understood(self, message: Inbound, error: Exception) -> list[Item]:
        """Refuse every placement that the command names; it is acknowledged, for it will not change."""
        log.error("command_not_understood", subject=subjects.template(message.subject), id=message.id, error=str(error))
        try:
            found = _anything.decode(message.body)
        except msgspec.MsgspecError:
            return []
        words = f"this dispatcher does not understand the command: {_without_values(str(error))}; update the dispatcher"
        for named in (*found.offers, *found.items):
            self._desk.refuse(SlotKey(named.operation, from_wire(named.epoch)), RefusalCode.DISPATCHER_TOO_OLD, words)
        return []


def _without_values(text: str) -> str:
    return re.sub(r"\s+", " ", text)[:300]
