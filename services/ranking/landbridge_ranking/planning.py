"""What would be decided about an operation now: every environment judged and scored, its turn, when it may start.

The same code decides: the verdicts are those of `evaluate_eligibility`, the order is that of the book's plan, the turn
that of the admission's own passes on a copy. Nothing is changed by asking.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from landbridge.domain.eligibility import evaluate_eligibility
from landbridge.domain.forecast import Forecast, forecast, snapshot
from landbridge.domain.limits import Limits
from landbridge.domain.near_miss import NearMiss, near_misses
from landbridge.domain.preferences import NOTHING_OBSERVED, Measurement
from landbridge.domain.preferences.queue_delay import start_delay
from landbridge.domain.queues import Plan
from landbridge.domain.requirements import RequirementClass, from_class_body
from landbridge.domain.tickets import Ticket
from landbridge.domain.verdict import Assessment, Outlook
from landbridge_ranking import outlook
from landbridge_ranking.book import Entry

if TYPE_CHECKING:
    from landbridge.runtime.clock import Clock
    from landbridge_ranking.desk import Desk

# Many who look at one page ask the same; as long as nothing has changed they get the same answer so long.
KEPT_FOR: Final = timedelta(seconds=3)
MOST_KEPT: Final = 500
# Copying more than this to look ahead would cost more than the answer is worth.
MOST_WAITING: Final = 10_000
# The id of an operation that is not submitted: equals are told apart by it, so the place among them is not certain.
NOBODY: Final = str(UUID(int=0))


class _Kept(NamedTuple):
    """An answer, when it was made, and of which state."""

    stamp: tuple[object, ...]
    at: datetime
    answer: dict[str, Any]


class Planner:
    """Answers for the replica that admits: only there is known who waits and what is held."""

    def __init__(self, desk: "Desk", clock: "Clock") -> None:
        self._desk = desk
        self._clock = clock
        self._one = asyncio.Semaphore(1)  # looking ahead takes a processor; askers take turns
        self._kept: dict[tuple[str, str], _Kept] = {}

    async def plan(self, requirements: bytes, operation: str = "") -> dict[str, Any]:
        """Return the answer as JSON has it. Raises msgspec.MsgspecError for requirements that cannot be read."""
        async with self._one:
            desk, now = self._desk, self._clock.wall()
            desk.book.view.withdraw(now)
            desk.book.settle()
            bucket = desk.admission.bucket_of(operation) if operation else None
            asked = from_class_body(requirements)
            if bucket is not None and bucket.key in desk.book:
                asked = desk.book[bucket.key].requirement_class  # as its round has it
            stamp = self._stamp()
            kept = self._kept.get((asked.key, operation))
            if kept is not None and kept.stamp == stamp and now - kept.at < KEPT_FOR:
                return kept.answer
            entry, assessment = self._judge(asked, now)
            plan = desk.book.plan_of(entry)
            misses = near_misses(asked.requirements, assessment.verdicts, desk.book.view.candidates, now)
            ahead = await self._look_ahead(asked, plan, operation, assessment, now)
            answer = self._answer(assessment, plan, misses, ahead, operation)
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[asked.key, operation] = _Kept(stamp, now, answer)
            return answer

    def _stamp(self) -> tuple[object, ...]:
        """Name the state that an answer rests on."""
        desk, view = self._desk, self._desk.book.view
        held = len(desk.admission.ledger)
        return view.revision, view.shape_revision, desk.next_position, len(desk.waiting), held, desk.settled

    def _judge(self, asked: RequirementClass, now: datetime) -> tuple[Entry, Assessment]:
        view = self._desk.book.view
        candidates = (candidate for versions in view.candidates.values() for candidate in versions)
        found = evaluate_eligibility(asked, candidates, now, inputs=view.inputs())
        return Entry.judged_here(asked, found), found

    async def _look_ahead(
        self, asked: RequirementClass, plan: Plan, operation: str, assessment: Assessment, now: datetime
    ) -> Forecast | None:
        """Run the passes ahead; None where it holds a place, may run nowhere, or nobody can look: see `_blind`."""
        desk = self._desk
        held = bool(operation) and desk.admission.ledger.held_by(operation) is not None
        if held or not desk.settled or assessment.outlook is not Outlook.ELIGIBLE or len(desk.waiting) > MOST_WAITING:
            return None
        joining = None
        if not operation or desk.admission.bucket_of(operation) is None:
            operation = operation or NOBODY
            joining = (asked.key, plan, Ticket(operation, 1, desk.next_position, now))
        view = desk.book.view
        limits = Limits(view.catalogue, view.capacity())
        taken = snapshot(desk.admission, operation, joining, limits=limits, admitted_at=desk.admitted_at)
        return await asyncio.to_thread(forecast, taken, desk.observations.lasted, now)

    def _answer(
        self,
        assessment: Assessment,
        plan: Plan,
        misses: list[NearMiss],
        ahead: Forecast | None,
        operation: str,
    ) -> dict[str, Any]:
        cards = plan.order.ranking.cards if plan.order is not None else ()
        likely = outlook.likely(plan, ahead)
        changes = {miss.verdict.environment: miss for miss in misses}
        return {
            "at": assessment.at,
            "requirementClass": assessment.requirement_class,
            "project": plan.project,
            "queue": plan.queue,
            "eligible": assessment.outlook is Outlook.ELIGIBLE,
            "condition": assessment.outlook.value,
            "policyVersion": plan.policy,
            "environments": outlook.environments(assessment, cards, likely, changes),
            "likely": likely,
            "nearestMiss": outlook.nearest(misses) if assessment.outlook is not Outlook.ELIGIBLE else None,
            "place": self._place(plan, operation),
            "waits": outlook.waits(ahead),
            "forecast": outlook.told(
                ahead,
                plan,
                assessment,
                likely,
                delay=self._start_delay(assessment, likely),
                blind=self._blind(operation),
            ),
            "inputs": dict(assessment.inputs),
        }

    def _start_delay(self, assessment: Assessment, likely: Mapping[str, Any] | None) -> Measurement | None:
        """Return how long it takes to start there once its turn has come: the wait until then is the forecast's."""
        name = str(likely["environment"]) if likely is not None else ""
        versions = self._desk.book.view.candidates.get(name, ())
        observed = self._desk.book.rankings.observed.get(name, NOTHING_OBSERVED)
        judged = {each.contract_version for each in assessment.verdicts if each.environment == name}
        used = next((each for each in versions if each.contract_version in judged), None)
        return start_delay(used, observed) if used is not None else None

    def _blind(self, operation: str) -> str:
        """Return why there is no forecast."""
        if operation and self._desk.admission.ledger.held_by(operation) is not None:
            return "it holds its place"
        if not self._desk.settled:
            return "who waits and what is held is being read from the tables; ask again in a moment"
        return f"{len(self._desk.waiting)} operations wait: too many to look ahead"

    def _place(self, plan: Plan, operation: str) -> dict[str, Any] | None:
        """Return the place in the queue by priority, then arrival; fair sharing may let others go first."""
        admission = self._desk.admission
        if operation and admission.ledger.held_by(operation) is not None:
            return None
        own = admission.waiting(operation) if operation else None
        position = own.position if own is not None else self._desk.next_position
        before = length = 0
        for bucket in admission.buckets.values():
            if bucket.plan.queue != plan.queue:
                continue
            length += len(bucket.tickets)
            for ticket in bucket.tickets:
                higher = bucket.plan.priority > plan.priority
                before += higher or (bucket.plan.priority == plan.priority and ticket.position < position)
        return {"place": before + 1, "length": length if own is not None else length + 1}
