"""One admitter at a time: an advisory lock elects it, a fencing number makes sure.

The lock is held by an open transaction that is touched every second. Postgres ends a session that is silent for longer
(a paused or cut-off process), so a standby takes over within seconds. The one that was replaced may not know it yet:
each of its transactions compares its number with the one in force, and holds that while it charges.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from landbridge.runtime import logs
from landbridge.store import Database, StoreError
from landbridge_ranking import store

log = logs.get(__name__)

TRY_EVERY_S: Final = 0.5
TOUCH_EVERY_S: Final = 1.0
SILENCE_S: Final = 10
_LOCK: Final = "hashtextextended('landbridge ranking admitter', 0)"


class Election:
    """Runs `serve(fence, deposed)` while this process is the admitter; `deposed` is set when it has to stop."""

    def __init__(
        self,
        database: Database,
        holder: str,
        serve: Callable[[int, asyncio.Event], Awaitable[None]],
        stopping: Callable[[], bool],
    ) -> None:
        self._database = database
        self._holder = holder
        self._serve = serve
        self._stopping = stopping
        self.active = False

    async def run(self) -> None:
        """Stand by, serve, stand by again, until the service stops."""
        while not self._stopping():
            try:
                await self._term()
            except StoreError as error:
                log.info("the election waits for Postgres", error=str(error))
            await asyncio.sleep(TRY_EVERY_S)

    async def _term(self) -> None:
        """Try for the lock once; if it is won, serve until it is lost."""
        async with self._database.transaction() as tx:
            await tx.execute(f"set local idle_in_transaction_session_timeout = '{SILENCE_S}s'")
            if not await tx.fetchval(f"select pg_try_advisory_xact_lock({_LOCK})"):
                return
            deposed = asyncio.Event()
            touch = asyncio.create_task(self._touch(tx.fetchval, deposed), name="hold-admitter-lock")
            try:
                async with self._database.transaction() as own:
                    fence = await store.raise_fence(own, self._holder)
                log.info("elected admitter", fence=fence)
                self.active = True
                await self._serve(fence, deposed)
            finally:
                self.active = False
                touch.cancel()
                await asyncio.wait({touch})
            log.info("no longer admitter", fence=fence)

    async def _touch(self, ask: Callable[[str], Awaitable[object]], deposed: asyncio.Event) -> None:
        """Show Postgres that this process lives; notice when the lock is gone."""
        try:
            while not deposed.is_set():
                await asyncio.sleep(TOUCH_EVERY_S)
                await ask("select 1")
        except Exception as error:  # noqa: BLE001 - whatever broke the session, the lock went with it
            log.warning("the admitter's lock is lost", error=str(error))
            deposed.set()
