"""The admitter's desk: everything it holds in memory, equal to what its tables say whenever no transaction is open.

Transactions take turns. One that is not kept leaves the desk soiled, and the next one reads the tables again first.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from landbridge.domain.admission import Admission
from landbridge.domain.backlogs import backlogs
from landbridge.domain.ledger import Ledger
from landbridge.domain.limits import Limits
from landbridge.domain.queues import WaitReason
from landbridge.domain.tickets import Ticket
from landbridge.runtime import logs
from landbridge.runtime.failures import TransientFailure
from landbridge.store import Tx
from landbridge_ranking import store
from landbridge_ranking.book import Book
from landbridge_ranking.observing import Observations
from landbridge_ranking.telling import Told

log = logs.get(__name__)

_NEVER: Final = datetime.max.replace(tzinfo=UTC)
MOST_DECISIONS: Final = 10_000
MOST_EMPTY_BUCKETS: Final = 2_000
MOST_LEFT: Final = 10_000
# More than the operations that one message lists.
MOST_IN_ONE: Final = 1024
SILENCE_S: Final = 10


class Desk:
    """Admission, ledger and what goes with them. `fence` 0: this replica stands by."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.observations = Observations()
        self.fence = 0
        self.deposed = asyncio.Event()
        self.wanted = asyncio.Event()  # a turn without messages
        self.rests_until = _NEVER  # when the next such turn is planned
        self.kept_decisions: OrderedDict[str, None] = OrderedDict()
        self._turn = asyncio.Lock()
        self._soiled = True
        self._wipe()

    def _wipe(self) -> None:
        self.admission = Admission(
            Ledger(), Limits(self.book.view.catalogue, self.book.view.capacity()), revalidate=self.book.revalidate
        )
        self.admitted_at: dict[str, datetime] = {}
        self.waiting: set[str] = set()  # operations that have a row in the table
        self.told: dict[str, Told] = {}
        self.handed_over: set[str] = set()  # classes whose operations eligibility tells nothing more
        self.kept_assessments: dict[str, str] = {}
        self.next_position = 1
        self.tell_at: datetime | None = None  # when a reason that has changed may be told
        self.left: OrderedDict[str, str] = OrderedDict()  # environments of operations that were freed lately
        self.observed_anew = False
        self._seen = -1
        self._shape = (-1, -1)

    # -- taking turns -------------------------------------------------------------------------------------------------

    async def enter(self, tx: Tx) -> None:
        """Begin a transaction's turn: nobody else changes the desk, and nobody else admits, until it ends.

        Raises TransientFailure if another replica has become the admitter.
        """
        await self._turn.acquire()
        tx.after_commit(self._turn.release)
        tx.after_rollback(self._spill)
        if await store.hold_fence(tx, SILENCE_S) != self.fence:
            self.deposed.set()
            raise TransientFailure(0.1, "another replica admits now")
        if self._soiled:
            await self._load(tx)

    def _spill(self) -> None:
        self._soiled = True
        self._turn.release()

    @property
    def settled(self) -> bool:
        """Whether memory says what the tables say: not before they were read, nor after a turn that was not kept."""
        return not self._soiled

    def soil(self) -> None:
        """Have everything read again: it is not known what the tables say."""
        self._soiled = True

    async def _load(self, tx: Tx) -> None:
        """Read the tables into memory."""
        self.book.settle()
        self._wipe()
        for charge, leaving in await store.charges(tx):
            self.admission.ledger.charge(charge)
            self.admitted_at[charge.operation] = charge.at or _NEVER
            if leaving:
                self.admission.asked_to_leave(charge.operation)
        for raw in await store.assessments(tx):
            key, _ = self.book.take(raw)
            if self.book[key].raw == raw:
                self.kept_assessments[key] = self.book[key].assessment.id
        self._load_waiting(await store.waiting(tx))
        self.observations.load(await store.observations(tx))
        self._soiled = False
        log.info("ledger loaded", charges=len(self.admission.ledger), waiting=len(self.waiting))

    def _load_waiting(self, rows: Iterable[tuple[str, Ticket, str]]) -> None:
        for key, ticket, reason in rows:
            self.waiting.add(ticket.operation)
            self.next_position = max(self.next_position, ticket.position + 1)
            if key not in self.admission.buckets:
                self.admission.set_plan(key, self.book.plan(key))
                self.told[key] = Told(WaitReason(reason), ticket.since)
            self.admission.arrive(key, [ticket])

    def position_of(self, sequence: int, number: int, *, again: bool) -> int:
        """Return where an operation comes into the line: by where its message stands in the stream, its age.

        `again`: the message was delivered before, so that younger ones may have been let in while somebody who died
        had it in hand; it goes before those that still wait. What comes for the first time goes behind all others,
        also when the stream was rebuilt and counts from 1 again.
        """
        position = sequence * MOST_IN_ONE + number
        if not again or position >= self.next_position:
            position = max(position, self.next_position)
            self.next_position = position + 1
        return position

    # -- keeping up with the world ------------------------------------------------------------------------------------

    def refresh(self, now: datetime) -> None:
        """Take on what changed in the view and in what is observed, and withdraw prices that have ended."""
        self.book.view.withdraw(now)
        self.book.settle()
        view, admission = self.book.view, self.admission
        if self.observations.due(now):
            self.observed_anew = True
            waits = backlogs(admission, view.capacity(), self.observations.lasted, now)
            carbon, bandwidths = self.book.carbon(now), self.book.bandwidths(now)
            self.book.observe(self.observations.snapshot(now, waits, carbon, bandwidths))
        shape = (view.shape_revision, self.book.rankings.version)
        if self._seen == view.revision and self._shape == shape:
            return
        capacity = view.capacity()
        if admission.limits.catalogue is not view.catalogue or admission.limits.capacity != capacity:
            admission.set_limits(Limits(view.catalogue, capacity))
        if self._shape != shape:
            self._renew_plans()
        admission.wake_hopeless()
        # Not what the book has settled, but what was made of it here: it settles at other times as well.
        self._seen, self._shape = view.revision, shape

    def _renew_plans(self) -> None:
        for key, bucket in self.admission.buckets.items():
            if bucket.tickets:
                self.renew_plan(key)

    def renew_plan(self, key: str) -> None:
        """Give a bucket the newest plan of its class, if that is another one."""
        plan = self.book.plan(key)
        bucket = self.admission.buckets.get(key)
        if bucket is None or bucket.plan is not plan:
            self.admission.set_plan(key, plan)

    def note_teller(self, key: str) -> None:
        """Note who tells the operations of a class that nothing is eligible: eligibility, until something was once.

        From then on it has let go of them, however short that was: what comes next is told from here.
        """
        if not any(verdict.eligible for verdict in self.book[key].assessment.environments):
            self.handed_over.discard(key)
            return
        self.handed_over.add(key)
        told = self.told.get(key)
        if told is not None and told.reason is WaitReason.NO_ELIGIBLE_ENVIRONMENT:
            self.told[key] = Told(None, told.at)

    @property
    def soonest(self) -> datetime | None:
        """When time alone may change something: an operation gives up holding out, a changed reason may be told."""
        times = [at for at in (self.admission.next_timer, self.tell_at) if at is not None]
        return min(times, default=None)

    def leave(self, operation: str, environment: str) -> None:
        """Remember for a while where an operation was: why it left is told by another event."""
        self.left[operation] = environment
        if len(self.left) > MOST_LEFT:
            self.left.popitem(last=False)

    def tidy(self) -> None:
        """Keep memory in bounds, and ask for another turn if this one was cut short."""
        soonest = self.soonest
        if self.admission.has_more or (soonest is not None and soonest < self.rests_until):
            self.wanted.set()
        if len(self.admission.buckets) > MOST_EMPTY_BUCKETS:
            for key in self.admission.drop_empty():
                self.told.pop(key, None)
                self.handed_over.discard(key)
        self.book.prune(set(self.admission.buckets))
        while len(self.kept_decisions) > MOST_DECISIONS:
            self.kept_decisions.popitem(last=False)
