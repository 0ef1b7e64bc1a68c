"""Asking again when something changed: waiting operations flow as soon as anything is eligible, changes are announced.

Every replica does this by itself, from its own view. Which of them tells is settled in Postgres: what waits is taken by
a delete, what is announced is claimed by an update, and both give each row to one transaction only.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from landbridge.bus.envelope import Outbound
from landbridge.domain.eligibility_index import MOST_CLASSES
from landbridge.domain.verdict import Assessment, Outlook
from landbridge.domain.waiting import announcement, reason
from landbridge.runtime import logs
from landbridge.runtime.clock import Clock
from landbridge.runtime.outbox import Outbox
from landbridge.store import StoreError, Tx
from landbridge_eligibility import messages, store
from landbridge_eligibility.deciding import ACTIVE_FOR, Deciding, KnownClass

log = logs.get(__name__)

# Changes come in bursts (an environment's contract, evidence, link); so long is waited for the rest of one.
SETTLE_S: Final = 0.02
# A pass costs time in proportion to the number of classes; never spend more than a fifth of the time on passes.
REST_FACTOR: Final = 4.0
DORMANT_EVERY: Final = timedelta(seconds=30)
LOOK_BACK: Final = timedelta(minutes=1)
LONGEST_PAUSE_S: Final = 60.0
PURGE_EVERY: Final = timedelta(hours=1)
MOST_ASKED: Final = MOST_CLASSES // 2
_RETRY_S: Final = 1.0


class Reassessment:
    """Runs a pass when told that something changed, and when the earliest verdict runs out."""

    def __init__(self, deciding: Deciding, outbox: Outbox, clock: Clock) -> None:
        self._deciding = deciding
        self._outbox = outbox
        self._clock = clock
        self._encoder = messages.AssessmentEncoder()
        self._wake = asyncio.Event()
        self._changed = True
        self._synced_at: datetime | None = None
        self._dormant_at = clock.wall()
        self._next: datetime | None = None  # when the first of the verdicts asked for runs out
        self._purged_at = clock.wall()
        self.passes = 0
        """Passes that ended, kept or not."""

    def tell(self) -> None:
        """Tell that something which deciding reads has changed."""
        self._changed = True
        self._wake.set()

    def expect(self, end: datetime | None) -> None:
        """Tell until when a verdict holds that was just given."""
        if end is not None and (self._next is None or end < self._next):
            self._next = end
            self._wake.set()

    async def run(self) -> None:
        """Run passes until cancelled; the first at once, because what waits was decided by another view."""
        loop = asyncio.get_running_loop()
        while True:
            self._changed = False
            started = loop.time()
            try:
                await self.run_pass()
            except StoreError as error:
                await self._recover(error)
                continue
            await asyncio.sleep(SETTLE_S + REST_FACTOR * (loop.time() - started))
            await self._rest()
            await asyncio.sleep(SETTLE_S)

    async def _rest(self) -> None:
        """Return when something has changed, or the first verdict has run out."""
        while not self._changed:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), self._pause_s())
            except TimeoutError:
                return

    async def run_pass(self) -> list[Outbound]:
        """Ask about all classes that may matter; tell what changed. Returns the events that were published."""
        try:
            return await self._outbox.commit(self._work)
        finally:
            self.passes += 1

    # -- a pass -------------------------------------------------------------------------------------------------------

    async def _work(self, tx: Tx) -> Sequence[Outbound]:
        now = self._clock.wall()
        await store.own_lock(tx)
        await self._sync(tx, now)
        with_waiting = await store.waiting_classes(tx)
        changed: list[tuple[KnownClass, Assessment, str]] = []
        open_keys: list[str] = []
        ends: list[datetime] = []
        for known in self._due(with_waiting, now):
            assessment = self._deciding.assess(known.requirement_class, now)
            if known.key in with_waiting and assessment.outlook is Outlook.ELIGIBLE:
                open_keys.append(known.key)
            if assessment.valid_until is not None:
                ends.append(assessment.valid_until)
            if assessment is not known.last:
                told = announcement(assessment)
                if told != known.announced:
                    changed.append((known, assessment, told))
                known.last = assessment
        # What was expected meanwhile of a class that this pass did not know yet is still ahead: keep it.
        if self._next is not None and self._next > now:
            ends.append(self._next)
        self._next = min(ends, default=None)
        events = await self._announce(tx, changed)
        if open_keys:
            events += await self._let_flow(tx, open_keys, now)
        events += await self._tell_reasons(tx, [known for known, _, _ in changed if known.key in with_waiting], now)
        return events

    def _due(self, with_waiting: set[str], now: datetime) -> list[KnownClass]:
        """Return the classes to ask about: those in use, and now and then all."""
        everything = now - self._dormant_at >= DORMANT_EVERY
        if everything:
            self._dormant_at = now
        active_since = now - ACTIVE_FOR
        due = [
            known
            for known in self._deciding.known.values()
            if everything or known.used_at >= active_since or known.key in with_waiting
        ]
        # Most recently used first, and no more than are remembered: asking about more would only push them out.
        due.sort(key=lambda known: (known.key not in with_waiting, -known.used_at.timestamp(), known.key))
        return due[:MOST_ASKED]

    async def _announce(self, tx: Tx, changed: Sequence[tuple[KnownClass, Assessment, str]]) -> list[Outbound]:
        """Announce verdicts that differ from what was told last; another replica may have been faster."""
        if not changed:
            return []
        claimed = await store.claim_announcements(tx, [(known.key, told) for known, _, told in changed])
        before = [(known, known.announced) for known, _, _ in changed]
        events: list[Outbound] = []
        for known, assessment, told in changed:
            known.announced = told
            if known.key in claimed:
                body = self._encoder.encode(known.requirement_class, assessment)
                events += messages.assessed(known.project, body, ())
        tx.after_rollback(lambda: _restore(before))
        return events

    async def _let_flow(self, tx: Tx, keys: Sequence[str], now: datetime) -> list[Outbound]:
        """Send operations on whose class has become eligible."""
        events: list[Outbound] = []
        for key, operations in (await store.take_waiting(tx, keys)).items():
            known = self._deciding.known[key]
            assessment = self._deciding.assess(known.requirement_class, now)
            body = self._encoder.encode(known.requirement_class, assessment)
            events += messages.assessed(known.project, body, operations)
            known.used_at = max(known.used_at, now)
            log.info("operations flow again", requirement_class=key[:12], operations=len(operations))
        return events

    async def _tell_reasons(self, tx: Tx, classes: Sequence[KnownClass], now: datetime) -> list[Outbound]:
        """Tell operations that go on waiting what they wait for now, where that has changed."""
        events: list[Outbound] = []
        for known in classes:
            assessment = self._deciding.assess(known.requirement_class, now)
            if assessment.outlook is Outlook.ELIGIBLE:
                continue
            why = reason(assessment)
            cause = store.Cause(why.code.value, assessment.outlook.value, announcement(assessment))
            told = await store.change_reason(tx, known.key, cause)
            events += messages.waiting(known.project, assessment, why, told)
        return events

    async def _recover(self, error: StoreError) -> None:
        """Wait, then publish what may have been committed although the answer was lost."""
        log.info("reassessing waits for Postgres", error=str(error))
        await asyncio.sleep(_RETRY_S)
        with contextlib.suppress(StoreError):
            await self._outbox.republish()

    # -- keeping up ---------------------------------------------------------------------------------------------------

    async def _sync(self, tx: Tx, now: datetime) -> None:
        """Learn classes that other replicas met; forget what cannot matter any more."""
        # Looking back further than the last time: a transaction that was open then may have committed since.
        since = self._synced_at - LOOK_BACK if self._synced_at is not None else None
        self._deciding.learn(await store.classes_since(tx, since))
        self._synced_at = now
        if now - self._purged_at >= PURGE_EVERY:
            self._purged_at = now
            self._deciding.forget(now)
            await store.purge(tx)

    def _pause_s(self) -> float:
        """Return how long nothing needs to be asked unless something changes."""
        if self._next is None:
            return LONGEST_PAUSE_S
        return min(max((self._next - self._clock.wall()).total_seconds(), 0.0) + 0.001, LONGEST_PAUSE_S)


def _restore(before: Sequence[tuple[KnownClass, str]]) -> None:
    """Undo what a transaction that was not kept has announced; ask again next time."""
    for known, announced in before:
        known.announced = announced
        known.last = None
