"""Transactions on behalf of HTTP: callers share them, are answered after the commit, and never wait for the stream."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from landbridge.bus.envelope import Outbound
from landbridge.runtime.batcher import RequestBatcher
from landbridge.runtime.failpoints import failpoint
from landbridge.runtime.outbox import Outbox
from landbridge.runtime.telemetry import stamp
from landbridge.store import ContentionError, Database, Tx
from landbridge_intake.accept import Acceptor, Outcome, Submission
from landbridge_intake.answers import busy
from landbridge_intake.lane import PublishLane
from landbridge_intake.settings import IntakeSettings

T = TypeVar("T")
_TRIES = 5
_PAUSE_S = 0.01


class Committer:
    """Runs transactions with events. Answers come after the commit; publishing follows in the lane."""

    def __init__(self, database: Database, outbox: Outbox, acceptor: Acceptor, settings: IntakeSettings) -> None:
        self.lane = PublishLane(outbox)
        self._database = database
        self._outbox = outbox
        self._acceptor = acceptor
        self._settings = settings
        self._batcher: RequestBatcher[Submission, Outcome] = RequestBatcher(self._accept)

    def check_capacity(self) -> None:
        """Raise ProblemError 429 while more is committed than the stream has taken within the limits."""
        waiting = max(self.lane.events, self._outbox.backlog.events)
        if waiting > self._settings.outbox_events_limit:
            raise busy(f"{waiting} events wait to be published (limit {self._settings.outbox_events_limit})")
        age = self._outbox.backlog.oldest_s
        if age > self._settings.outbox_age_limit_seconds:
            raise busy(
                f"events wait for {age:.0f} s to be published (limit {self._settings.outbox_age_limit_seconds:g} s)"
            )

    async def submit(self, submission: Submission) -> Outcome:
        """Decide about one submission, together with whoever asks at the same time."""
        self.check_capacity()
        return await self._batcher.submit(submission)

    async def submit_all(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Decide about the submissions of one request, in one transaction."""
        self.check_capacity()
        return await self._accept(submissions)

    async def run(self, work: Callable[[Tx], Awaitable[tuple[T, Sequence[Outbound]]]]) -> T:
        """Run `work` in a transaction and commit the events it returns with it. `work` may run several times.

        Raises UnavailableError when Postgres is away: the transaction may then have been kept.
        """
        for attempt in range(1, _TRIES + 1):
            try:
                async with self._database.transaction() as tx:
                    result, events = await work(tx)
                    written = await self._outbox.write(tx, stamp(events, ()))
                break
            except ContentionError:
                if attempt == _TRIES:
                    raise
                await asyncio.sleep(_PAUSE_S * attempt)
        failpoint("intake.after-commit")
        self.lane.put(written)
        return result

    def reading(self) -> AbstractAsyncContextManager[Tx]:
        """Begin a transaction that only reads."""
        return self._database.transaction(readonly=True)

    async def close(self, timeout_s: float) -> None:
        """Finish what was asked, publish what was committed."""
        await self._batcher.close()
        await self.lane.flush(timeout_s)

    async def _accept(self, submissions: Sequence[Submission]) -> list[Outcome]:
        async def work(tx: Tx) -> tuple[list[Outcome], Sequence[Outbound]]:
            decision = await self._acceptor.decide(tx, submissions)
            return decision.outcomes, decision.events

        return await self.run(work)
