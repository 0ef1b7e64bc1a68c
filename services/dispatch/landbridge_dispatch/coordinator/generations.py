"""Handlers decide in the generation in force, however late this replica hears that one has begun."""

from collections.abc import Sequence

from landbridge.bus.envelope import Inbound, Outbound
from landbridge.runtime.loop import Handler
from landbridge.store import Tx
from landbridge_dispatch.coordinator.core import Core


class InGeneration:
    """A handler behind the lock under which a generation begins alone."""

    def __init__(self, core: Core, handler: Handler) -> None:
        self._core = core
        self._handler = handler

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        await self._core.stand(tx)
        return await self._handler(tx, batch)
