"""What would be decided about an operation now: every environment judged and scored, its turn, when it may start.

The same code decides: the verdicts are those of `evaluate_eligibility`, the order is that of the book's plan, the turn
that of the admission's own passes on a copy. Nothing is changed by asking. Several that are asked about together are
taken to be submitted now, one behind the other, and nothing else with them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from landbridge.domain.eligibility import evaluate_eligibility
from landbridge.domain.forecast import Forecast, forecast_together, snapshot_together
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


class _Kept(NamedTuple):
    """Answers, when they were made, and of which state."""

    stamp: tuple[object, ...]
    at: datetime
    answers: list[dict[str, Any]]


class _Judged(NamedTuple):
    """What is known of a class: its plan, every environment's verdict, and what comes nearest."""

    key: str
    plan: Plan
    assessment: Assessment
    misses: list[NearMiss]

    @property
    def eligible(self) -> bool:
        return self.assessment.outlook is Outlook.ELIGIBLE


class _Question(NamedTuple):
    """One operation that is asked about: its class, its id or one that stands for it, its place among arrivals."""

    judged: _Judged
    operation: str
    position: int


class Planner:
    """Answers for the replica that admits: only there is known who waits and what is held."""

    def __init__(self, desk: "Desk", clock: "Clock") -> None:
        self._desk = desk
        self._clock = clock
        self._one = asyncio.Semaphore(1)  # looking ahead takes a processor; askers take turns
        self._kept: dict[tuple[tuple[str, ...], str], _Kept] = {}

    async def plan(self, requirements: bytes, operation: str = "") -> dict[str, Any]:
        """Return the answer as JSON has it. Raises msgspec.MsgspecError for requirements that cannot be read."""
        async with self._one:
            now = self._begin()
            desk = self._desk
            bucket = desk.admission.bucket_of(operation) if operation else None
            asked = from_class_body(requirements)
            if bucket is not None and bucket.key in desk.book:
                asked = desk.book[bucket.key].requirement_class  # as its round has it
            [answer] = await self._answers((asked,), operation, now)
            return answer

    async def plan_together(self, requirements: Sequence[bytes]) -> list[dict[str, Any]]:
        """Return an answer for each, as if all were submitted now, one behind the other. Raises as `plan` does."""
        async with self._one:
            now = self._begin()
            return await self._answers(tuple(map(from_class_body, requirements)), "", now)

    def _begin(self) -> datetime:
        now = self._clock.wall()
        self._desk.book.view.withdraw(now)
        self._desk.book.settle()
        return now

    async def _answers(
        self, asked: tuple[RequirementClass, ...], operation: str, now: datetime
    ) -> list[dict[str, Any]]:
        """Answer for one operation that is known, or for any number that are not."""
        key, stamp = (tuple(each.key for each in asked), operation), self._stamp()
        kept = self._kept.get(key)
        if kept is not None and kept.stamp == stamp and now - kept.at < KEPT_FOR:
            return kept.answers
        judged = await self._judged(asked, now)
        questions = [
            _Question(judged[each.key], operation or _nobody(number), self._desk.next_position + number)
            for number, each in enumerate(asked)
        ]
        ahead = await self._look_ahead(questions, operation, now)
        answers = [self._answer(each, ahead.get(each.operation), operation, questions) for each in questions]
        if sum(len(each.answers) for each in self._kept.values()) + len(answers) > MOST_KEPT:
            self._kept.clear()
        self._kept[key] = _Kept(stamp, now, answers)
        return answers

    async def _judged(self, asked: Sequence[RequirementClass], now: datetime) -> dict[str, _Judged]:
        """Judge every class once; between them others get the processor."""
        found: dict[str, _Judged] = {}
        for each in asked:
            if each.key in found:
                continue
            if found:
                await asyncio.sleep(0)
            entry, assessment = self._judge(each, now)
            misses = near_misses(each.requirements, assessment.verdicts, self._desk.book.view.candidates, now)
            found[each.key] = _Judged(each.key, self._desk.book.plan_of(entry), assessment, misses)
        return found

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

    async def _look_ahead(self, questions: Sequence[_Question], operation: str, now: datetime) -> dict[str, Forecast]:
        """Run the passes ahead. Nothing for what holds a place or may run nowhere, or if nobody can: see `_blind`."""
        desk = self._desk
        held = bool(operation) and desk.admission.ledger.held_by(operation) is not None
        asked = [each for each in questions if each.judged.eligible]
        if held or not desk.settled or not asked or len(desk.waiting) > MOST_WAITING:
            return {}
        joining = [
            (each.judged.key, each.judged.plan, Ticket(each.operation, 1, each.position, now))
            for each in asked
            if desk.admission.bucket_of(each.operation) is None
        ]
        view = desk.book.view
        limits = Limits(view.catalogue, view.capacity())
        names = [each.operation for each in asked]
        taken = snapshot_together(desk.admission, names, joining, limits=limits, admitted_at=desk.admitted_at)
        return await asyncio.to_thread(forecast_together, taken, desk.observations.lasted, now)

    def _answer(
        self, question: _Question, ahead: Forecast | None, operation: str, questions: Sequence[_Question]
    ) -> dict[str, Any]:
        _, plan, assessment, misses = question.judged
        cards = plan.order.ranking.cards if plan.order is not None else ()
        likely = outlook.likely(plan, ahead)
        changes = {miss.verdict.environment: miss for miss in misses}
        return {
            "at": assessment.at,
            "requirementClass": assessment.requirement_class,
            "project": plan.project,
            "queue": plan.queue,
            "eligible": question.judged.eligible,
            "condition": assessment.outlook.value,
            "policyVersion": plan.policy,
            "environments": outlook.environments(assessment, cards, likely, changes),
            "likely": likely,
            "nearestMiss": None if question.judged.eligible else outlook.nearest(misses),
            "place": self._place(question, operation, questions),
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

    def _place(self, question: _Question, operation: str, questions: Sequence[_Question]) -> dict[str, Any] | None:
        """Return the place in the queue by priority, then arrival; fair sharing may let others go first."""
        admission, plan = self._desk.admission, question.judged.plan
        if operation and admission.ledger.held_by(operation) is not None:
            return None
        own = admission.waiting(operation) if operation else None
        position = own.position if own is not None else question.position
        before = length = 0
        for bucket in admission.buckets.values():
            if bucket.plan.queue != plan.queue:
                continue
            length += len(bucket.tickets)
            for ticket in bucket.tickets:
                before += _goes_before(bucket.plan, ticket.position, plan, position)
        for each in questions:
            if each is not question and each.judged.eligible and each.judged.plan.queue == plan.queue:
                length += 1
                before += _goes_before(each.judged.plan, each.position, plan, position)
        return {"place": before + 1, "length": length if own is not None else length + 1}


def _goes_before(other: Plan, position: int, plan: Plan, own: int) -> bool:
    return other.priority > plan.priority or (other.priority == plan.priority and position < own)


def _nobody(number: int) -> str:
    """Return an id for an operation that is not submitted: equals are told apart by it, so that is not certain."""
    return str(UUID(int=number))
