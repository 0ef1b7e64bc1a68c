"""The one active expirer: notices silence, and frees what silence may free.

One replica holds the role, by a row that it refreshes; every transaction of its work checks the row's fence under a
lock. What it knows of time lives in its memory, on its own boot clock: a new holder counts every lease as granted now.
"""

import asyncio
import uuid

from landbridge.bus.envelope import Outbound
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import PlacementState
from landbridge.domain.ownership.expiry import Watch, lift_hold, look, release_wait_ms, silent_ms
from landbridge.domain.ownership.leases_centre import EnvironmentLease, Link, RaiseTerm, Silent
from landbridge.domain.ownership.policy import Timing
from landbridge.runtime import logs
from landbridge.store import StoreError, Tx
from landbridge_dispatch.coordinator import environments, rows
from landbridge_dispatch.coordinator.core import Core
from landbridge_dispatch.coordinator.measures import held

log = logs.get(__name__)

_LOOK_SECONDS = 1.0
_STALE_SECONDS = 10
_PIECE = 500
_TAKE = """
update centre set expirer = $1, seen = now(), fence = fence + (expirer <> $1)::int
where expirer in ('', $1) or seen < now() - make_interval(secs => $2)
returning fence, lifted
"""


class Deposed(Exception):  # noqa: N818 - it is what happened
    """Another replica times leases now."""


class Expirer:
    """Runs in every replica; works in the one that holds the row."""

    def __init__(self, core: Core, *, look_seconds: float = _LOOK_SECONDS) -> None:
        self._core = core
        self._me = uuid.uuid4().hex
        self._look_seconds = look_seconds
        self._fence = 0
        self._lifted = 0
        self._watch = Watch()
        self._told: set[str] = set()
        """Lost environments whose operations all have been told."""

    async def run(self) -> None:
        """Look until cancelled. Postgres being away costs nobody a lease: then nothing is seen, and nothing expires."""
        while True:
            try:
                if await self._hold_role():
                    await self._round()
            except (StoreError, Deposed) as error:
                log.warning("expirer_waits", error=str(error))
            await asyncio.sleep(self._look_seconds)

    async def _hold_role(self) -> bool:
        async with self._core.database.transaction() as tx:
            row = await tx.fetchrow(_TAKE, self._me, _STALE_SECONDS)
        if row is None:
            self._fence = 0
            return False
        if row[0] != self._fence:
            log.info("expirer_began", fence=row[0])
            self._fence, self._lifted, self._watch = row[0], row[1], Watch()
            self._told = set()
        if row[1] != self._lifted:
            self._lifted = row[1]
            self._watch = lift_hold(self._watch)
            log.warning("expiry_hold_lifted")
        return True

    async def _check_fence(self, tx: Tx) -> None:
        fence = await tx.fetchval("select fence from centre for share")
        if fence != self._fence:
            raise Deposed("another replica times leases")

    # -- a round ------------------------------------------------------------------------------------------------------

    async def _round(self) -> None:
        async with self._core.database.transaction(readonly=True) as tx:
            leases = await environments.all_leases(tx)
        heard = {name: lease.grants for name, lease in leases.items() if self._counts(lease)}
        before = self._watch.held
        self._watch = look(self._watch, heard, self._boot(), self._core.timing)
        if self._watch.held is not before:
            await self._tell_hold(self._watch.held)
        self._told &= set(self._watch.silent_since)
        for name in sorted(self._watch.silent_since):
            await self._lost(name, leases[name])
            await self._release(name)

    def _counts(self, lease: EnvironmentLease) -> bool:
        """Whether an environment's silence means anything: it was heard once and is still registered."""
        verdicts = self._core.verdicts
        removed = any(True for _ in verdicts.names()) and not verdicts.is_registered(lease.environment)
        return lease.link is not Link.NEVER and lease.grants > 0 and not (removed and lease.link is Link.LOST)

    def _boot(self) -> int:
        return int(self._core.clock.boottime() * 1000)

    async def _tell_hold(self, holds: bool) -> None:
        held.set(1 if holds else 0)
        log.warning("expiry_hold", held=holds, silent=sorted(self._watch.silent_since))
        async with self._core.database.transaction() as tx:
            await self._check_fence(tx)
            await tx.execute("update centre set held_since = case when $1 then now() end", holds)

    async def _lost(self, name: str, lease: EnvironmentLease) -> None:
        """Mark the link as lost, take offers back at once, and tell all that runs there that control is lost."""
        silent = Silent(lease.grants)

        async def mark(tx: Tx) -> tuple[None, list[Outbound]]:
            await self._check_fence(tx)
            events: list[Outbound] = []
            found = await environments.lock(tx, [name])
            await self._core.tell_lease(tx, found[name], silent, events)
            return None, events

        if lease.link is not Link.LOST:
            await self._core.run(mark, "lost")
        if name in self._told:
            await self._core.run(lambda tx: self._take_offers_back(tx, name), "lost")
            return
        after = rows.FIRST_ID
        while after:
            after = await self._core.run(lambda tx, after=after: self._tell_piece(tx, name, after), "lost")  # type: ignore[misc]
        self._told.add(name)

    async def _still_lost(self, tx: Tx, name: str) -> bool:
        """Check under a lock that the environment has not come back meanwhile."""
        await self._check_fence(tx)
        found = await environments.share(tx, [name])
        return name in found and found[name].link is Link.LOST

    async def _tell_piece(self, tx: Tx, name: str, after: str) -> tuple[str, list[Outbound]]:
        if not await self._still_lost(tx, name):
            return "", []
        session = self._core.session(tx)
        read = await session.load_active(name, after=after, limit=_PIECE)
        for operation in read:
            session.decide(operation, model.LinkLost(name))
        return (read[-1] if len(read) == _PIECE else ""), await session.finish()

    async def _take_offers_back(self, tx: Tx, name: str) -> tuple[None, list[Outbound]]:
        """Offers made to a lost environment by a decision that did not know yet."""
        session = self._core.session(tx)
        found = await tx.fetch(
            "select id::text from operation where environment = $1 and active and placement = 'offered' limit $2",
            name,
            _PIECE,
        )
        if not found or not await self._still_lost(tx, name):
            return None, []
        await session.load(row[0] for row in found)
        for operation, state in session.states().items():
            if state.placement is PlacementState.OFFERED:
                session.decide(operation, model.LinkLost(name))
        return None, await session.finish()

    async def _release(self, name: str) -> None:
        silence = silent_ms(self._watch, name, self._boot())
        longest = _longest_stop(silence, self._core.timing)
        verified = self._core.verdicts.self_stop_verified(name, self._core.clock.wall())
        if self._watch.held or longest < 0 or not verified:
            return
        while await self._core.run(lambda tx: self._release_piece(tx, name, silence, longest), "expire"):
            pass

    async def _release_piece(self, tx: Tx, name: str, silence: int, longest: int) -> tuple[bool, list[Outbound]]:
        due = await tx.fetch(
            """select id::text from operation where environment = $1 and active and stop_ms <= $2
               and placement in ('claimed', 'running') order by id limit $3""",
            name,
            longest,
            _PIECE,
        )
        if not due:
            return False, []
        await self._check_fence(tx)
        locked = await environments.lock(tx, [name])
        if locked[name].link is not Link.LOST:
            return False, []
        session = self._core.session(tx)
        await session.load(row[0] for row in due)
        for operation, state in session.states().items():
            wait = release_wait_ms(state.policy.stop_ms, self._core.timing)
            expired = model.EnvironmentExpired(
                environment=name, silent_ms=silence, wait_ms=wait, self_stop_verified=True, held=False
            )
            session.decide(operation, expired)
        events = await session.finish()
        for environment in sorted(session.raised):
            await self._core.tell_lease(tx, locked[environment], RaiseTerm(), events)
        log.warning("placements_expired", environment=name, operations=len(due), silent_ms=silence)
        return len(due) == _PIECE, events


def _longest_stop(silence_ms: int, timing: Timing) -> int:
    """Return the longest stopping time that a silence covers, the expiry rule solved for T_stop; negative if none."""
    covered = (silence_ms - timing.delta_ms) * (1000 - timing.rho_permille) // (1000 + timing.rho_permille)
    return covered - timing.ttl_ms
