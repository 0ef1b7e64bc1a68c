"""Turns of the admitter that no message asks for: the view changed, a pass was cut short, or a time has come."""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from landbridge.bus.envelope import Outbound
from landbridge.runtime import logs
from landbridge.runtime.clock import Clock
from landbridge.runtime.failures import TransientFailure
from landbridge.runtime.outbox import Outbox
from landbridge.store import StoreError, Tx
from landbridge_ranking import store
from landbridge_ranking.desk import Desk
from landbridge_ranking.handlers import RankingHandler

log = logs.get(__name__)

SETTLE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 60.0
PURGE_EVERY: Final = timedelta(hours=1)
# Longer than any stream or inbox keeps a message.
KEEP_FOR: Final = timedelta(days=22)
_RETRY_S: Final = 1.0


class Nudge:
    """Runs the handler without messages when there may be something to admit or to tell."""

    def __init__(self, desk: Desk, handler: RankingHandler, outbox: Outbox, clock: Clock) -> None:
        self._desk = desk
        self._handler = handler
        self._outbox = outbox
        self._clock = clock
        self._purged_at: datetime | None = None

    async def run(self) -> None:
        """Take turns until cancelled or deposed; the first at once."""
        while not self._desk.deposed.is_set():
            self._desk.wanted.clear()
            try:
                await self._outbox.commit(self._work)
                await self._purge()
            except TransientFailure:
                return
            except StoreError as error:
                log.info("a turn waits for Postgres", error=str(error))
                self._desk.soil()
                await asyncio.sleep(_RETRY_S)
                with contextlib.suppress(StoreError):
                    await self._outbox.republish()
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._desk.wanted.wait(), self._pause_s())
                if not self._desk.admission.has_more:
                    await asyncio.sleep(SETTLE_S)

    async def _work(self, tx: Tx) -> Sequence[Outbound]:
        return await self._handler(tx, ())

    def _pause_s(self) -> float:
        """Return how long nothing can change by time alone, and note it: a turn that finds a sooner time breaks it."""
        desk, now = self._desk, self._clock.wall()
        if desk.admission.has_more:
            return 0.0
        soonest = desk.soonest
        longest = now + timedelta(seconds=LONGEST_PAUSE_S)
        desk.rests_until = longest if soonest is None else min(soonest, longest)
        return max((desk.rests_until - now).total_seconds(), 0.0) + 0.001

    async def _purge(self) -> None:
        now = self._clock.wall()
        if self._purged_at is None or now - self._purged_at >= PURGE_EVERY:
            self._purged_at = now
            await self._outbox.commit(self._drop_old)

    async def _drop_old(self, tx: Tx) -> Sequence[Outbound]:
        await store.purge(tx, self._clock.wall() - KEEP_FOR)
        return ()
