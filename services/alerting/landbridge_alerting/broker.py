"""What the contract-verifier has found of the broker's servers; it alone may ask them."""

import asyncio
from typing import Final

import msgspec

from landbridge.bus.connection import Bus
from landbridge.bus.errors import BusError
from landbridge.runtime import logs
from landbridge.runtime.asking import ask
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.request_v1 import BrokerRequest

log = logs.get(__name__)

RETRY_S: Final = 5.0
_names: Final = msgspec.json.Decoder(frozenset[str])


class LateServers:
    """The servers that acknowledge before data is on disk, as told last: without an answer, what was known stands."""

    def __init__(self, bus: Bus, *, every_s: float) -> None:
        self._bus = bus
        self._every_s = every_s
        self.names: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            pause_s = self._every_s if await self._ask() else min(RETRY_S, self._every_s)
            await asyncio.sleep(pause_s)

    async def _ask(self) -> bool:
        try:
            reply = await ask(self._bus, "contract-verifier", "broker", BrokerRequest())
            if reply.found:
                self.names = _names.decode(reply.json)
        except (ProblemError, BusError, msgspec.MsgspecError) as error:
            log.debug("the contract-verifier did not say how the broker stores", error=str(error))
            return False
        return bool(reply.found)
