"""The environment's lease: the right to start work, renewed link by link.

First contact, and every contact after a loss, is in this order: hello, the buffered reports, a full inventory, wait
until starting is allowed. Everything is counted from the moment a request was *sent*, on the boot clock.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.connection import Bus
from landbridge.bus.errors import BusError
from landbridge.domain.ownership.leases import HeldLease, clock_jumped, lease_granted, lease_voided
from landbridge.domain.ownership.policy import DEFAULT_TIMING, Timing
from landbridge.runtime import logs
from landbridge.schema.wire.request_v1 import LeaseGrant, LeaseKind, LeaseRequest
from landbridge_dispatch.dispatcher.clocks import CentreClock, boot_ms, reading, wall
from landbridge_dispatch.executors.local import files

log = logs.get(__name__)

CHAIN_FILE: Final = "chain.json"
REPLY_WITHIN_S: Final = 3.0
POLL_S: Final = (0.05, 0.05, 0.1, 0.2, 0.5, 1.0)
TICK_S: Final = 1.0
REFUSED_WAIT_S: Final = {"say-hello": 0.05, "displaced": 30.0}
_grant: Final = msgspec.json.Decoder(LeaseGrant)


class LeaseKeeper:
    """Holds the lease and keeps it alive. `held` is what every decision reads."""

    def __init__(
        self,
        environment: str,
        incarnation: str,
        home: Path,
        boot_id: str,
        *,
        features: Callable[[], tuple[str, ...]],
        executor: str,
        timing: Timing = DEFAULT_TIMING,
    ) -> None:
        self.clock = CentreClock()
        self.problem = "not heard of the centre yet"
        self.answered = False
        """Whether the centre answered the last request."""
        self.publish: Callable[[HeldLease], None]
        """Hands the lease to the executor, at every change."""
        self.free_slots: Callable[[], int] = lambda: 0
        self.on_usable: Callable[[], Awaitable[None]]
        """Called when a newer term is in force, or starting has become possible again."""
        self.send_inventory: Callable[[int], Awaitable[None]]
        """Called with the term, after a hello: flush reports, then show everything."""
        self._bus: Bus
        self._subject = subjects.lease(environment)
        self._features = features
        self._request: dict[str, Any] = {
            "incarnation": incarnation,
            "boot_id": boot_id,
            "executor": executor,
        }
        self._chain = home / CHAIN_FILE
        self._timing = timing
        self.reconciled = asyncio.Event()
        """Set once the centre has compared what this environment holds, from the last hello on. Commands wait for it:
        those of before a loss are about a state that the centre has yet to see."""
        self._kick = asyncio.Event()
        self._group: asyncio.TaskGroup
        self._hello = True
        self._inventory_term = 0
        chain = files.read_json(self._chain) or {}
        self.held = HeldLease(term=int(chain.get("term", 0)), n=int(chain.get("n", 0)))

    def current(self) -> HeldLease:
        return self.held

    def usable(self) -> bool:
        """Tell whether new work may start now."""
        return self.held.allows_start(boot_ms())

    def kick(self) -> None:
        """Renew now: the connection has come back, or the lease was voided."""
        self._kick.set()

    async def run(self, bus: Bus) -> None:
        """Renew until cancelled."""
        self._bus = bus
        polls = 0
        self._bus.on_reconnect(self.kick)
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._watch_clocks(), name="lease-clocks")
            while True:
                wait_s = await self._exchange()
                if self.problem or self.held.may_start:
                    polls = 0
                else:
                    wait_s = POLL_S[min(polls, len(POLL_S) - 1)]
                    polls += 1
                await self._sleep(wait_s)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._kick.wait()
        except TimeoutError:
            return
        self._kick.clear()

    async def _exchange(self) -> float:
        """Ask for the next link. Return how long to wait before the one after."""
        request = LeaseRequest(
            kind=LeaseKind.HELLO if self._hello else LeaseKind.RENEW,
            term=self.held.term,
            n=self.held.n + 1,
            wall_clock=wall(),
            free_slots=self.free_slots(),
            features=self._features(),
            **self._request,
        )
        sent_at, sent_wall = boot_ms(), wall()
        try:
            reply = _grant.decode(await self._bus.request(self._subject, msgspec.json.encode(request), REPLY_WITHIN_S))
        except (BusError, msgspec.MsgspecError) as error:
            self.answered = False
            return self._unanswered(error)
        self.answered = True
        received_wall = wall()
        hiccup = abs((received_wall - sent_wall).total_seconds() * 1000 - (boot_ms() - sent_at))
        if reply.at is not None and hiccup < self._timing.clock_jump_ms:  # else the clock jumped meanwhile
            self.clock.note(sent_wall, received_wall, reply.at)
        if reply.refused:
            return self._refused(reply.refused)
        try:
            await self._granted(reply, sent_at)
        except OSError as error:
            return self._not_kept(error)
        # Three tries fit into one time to live, whatever the centre grants.
        return min(self._timing.renewal_ms, reply.ttl_ms / 3) / 1000

    def _unanswered(self, error: Exception) -> float:
        """Note it; the same link is asked for again, so that a lost reply does not break the chain."""
        valid = self.held.is_valid(boot_ms())
        if not self.problem or not valid:
            log.warning("lease_not_renewed", term=self.held.term, valid=valid, error=str(error))
        self.problem = f"the centre does not answer: {error}"
        return 1.0 if valid else 2.0

    def _not_kept(self, error: OSError) -> float:
        """Do without a lease that a restart, or a guardian, would not know of. Raises what no room on disk explains."""
        if error.errno not in files.FULL:
            raise error
        log.warning("lease_not_kept", term=self.held.term, error=str(error))
        self.problem = f"the lease cannot be written down: {error.strerror}; make room"
        return 1.0

    def _refused(self, reason: str) -> float:
        log.warning("lease_refused", reason=reason, term=self.held.term, n=self.held.n)
        self._hello = True
        self.reconciled.clear()
        self._set(lease_voided(self.held))
        self.problem = f"the centre refuses the lease: {reason}"
        return REFUSED_WAIT_S.get(reason, 5.0)

    async def _granted(self, reply: LeaseGrant, sent_at: int) -> None:
        before = self.held
        after = lease_granted(
            before,
            term=reply.term,
            n=reply.n,
            ttl_ms=reply.ttl_ms,
            may_start=reply.may_start,
            sent_at=sent_at,
            received_at=boot_ms(),
        )
        if (after.term, after.n) != (before.term, before.n):
            chain = {"term": after.term, "n": after.n}
            await asyncio.to_thread(files.write_json, self._chain, chain)
        if self._hello or after.term != before.term:
            log.info("lease_granted", term=after.term, n=after.n, may_start=after.may_start)
        self._hello, self.problem = False, ""
        # A lease that had run out and is renewed in the same term counts as well: offers of that time were not claimed.
        became_usable = after.may_start and not before.allows_start(boot_ms())
        self._set(after)
        if after.may_start:
            self.reconciled.set()
        if after.term != before.term or became_usable:
            await self.on_usable()
        if reply.want_inventory and self._inventory_term != after.term:
            self._inventory_term = after.term
            # Beside the renewals: an inventory may take longer than a link lives.
            self._group.create_task(self._show_inventory(after.term), name="inventory")

    async def _show_inventory(self, term: int) -> None:
        await self.send_inventory(term)
        self.kick()

    def _set(self, lease: HeldLease) -> None:
        self.held = lease
        self.publish(lease)

    async def _watch_clocks(self) -> None:
        """Void the lease when a clock jumped or this process stood still: then renew before anything starts."""
        before = reading()
        while True:
            await asyncio.sleep(TICK_S)
            now = reading()
            jump = clock_jumped(before, now, self._timing)
            if jump:
                log.warning("lease_voided", reason=jump)
                self.clock.forget()
                self._set(lease_voided(self.held))
                self.kick()
            before = now
