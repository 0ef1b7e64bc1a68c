"""Offers that nobody claimed, queues that took too long, waits that are over: durable rows."""

import asyncio

from landbridge.bus.envelope import Outbound
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import Timer
from landbridge.runtime import logs
from landbridge.store import StoreError, Tx
from landbridge_dispatch.coordinator.core import Core

log = logs.get(__name__)

_LOOK_SECONDS = 0.5
_ROWS = 16
_POP = """
delete from timer where id in (
    select id from timer where due_at <= $1 order by due_at limit $2 for update skip locked
) returning operations
"""
_MESSAGES: dict[Timer, model.Message] = {
    Timer.OFFER: model.OfferTimeout(),
    Timer.QUEUE: model.QueueTimeout(),
    Timer.RETRY: model.RetryDue(),
    Timer.START: model.StartDue(),
}


class Timers:
    """Runs in every replica; a row is taken by one of them."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def run(self) -> None:
        """Look until cancelled. Postgres being away only delays."""
        while True:
            try:
                taken = await self._core.run(self._sweep, "timer")
            except StoreError as error:
                log.warning("timers_wait", error=str(error))
                taken = 0
            if taken < _ROWS:
                await asyncio.sleep(_LOOK_SECONDS)

    async def _sweep(self, tx: Tx) -> tuple[int, list[Outbound]]:
        session = self._core.session(tx)
        taken = await tx.fetch(_POP, session.now, _ROWS)
        if not taken:
            return 0, []
        due = await session.load_due(name for row in taken for name in row[0].split(","))
        for operation in due:
            state = session.state(operation)
            if state is not None and state.timer is not Timer.NONE:
                session.decide(operation, _MESSAGES[state.timer])
        return len(taken), await session.finish()
