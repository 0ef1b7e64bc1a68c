"""What a turn of the admitter came to: charges, releases, waits and decisions, written and told together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, datetime, timedelta
from typing import Final

from landbridge.bus.envelope import Outbound
from landbridge.domain.admission import Admitted
from landbridge.domain.decision_record import DecisionRecord, make_record
from landbridge.domain.placement import Choice
from landbridge.domain.queues import Bucket, WaitReason
from landbridge.domain.tickets import Ticket
from landbridge.schema.wire.event_v1 import OperationRound
from landbridge.store import Tx
from landbridge_ranking import messages, store
from landbridge_ranking.desk import Desk
from landbridge_ranking.telling import TELL_AGAIN_AFTER, Told, due

# So long a verdict should still hold when it is decided on.
CLAIM_WITHIN: Final = timedelta(seconds=30)


@dataclass(slots=True)
class _Group:
    """Operations for which the decision is the same."""

    record: DecisionRecord
    project: str
    contract_version: int
    valid_until: datetime | None
    served_by: str
    operations: list[tuple[str, int]]


class Results:
    """Collects what a turn came to; `write` brings it into the tables and returns what is to be told."""

    def __init__(self, desk: Desk, encoder: messages.DecisionEncoder, now: datetime) -> None:
        self._desk = desk
        self._encoder = encoder
        self._now = now
        self.released: list[str] = []
        self.closed: list[str] = []
        self.gone: set[str] = set()  # no longer waiting, without having been admitted
        self.admitted: list[Admitted] = []

    async def write(self, tx: Tx, arrived: Sequence[Ticket]) -> list[Outbound]:
        """Write everything in one order of tables, so that replicas cannot lock each other out."""
        desk = self._desk
        if self.released:
            await store.release(tx, self.released)
        if self.closed:
            await store.close(tx, self.closed, self._now)
        events = await self._decide(tx) if self.admitted else []
        events += await self._preempt(tx)
        left = desk.waiting & (self.gone | {found.ticket.operation for found in self.admitted})
        if left:
            await store.stop_waiting(tx, sorted(left))
            desk.waiting -= left
        events += await self._let_wait(tx, arrived)
        events += await self._tell_again(tx)
        if desk.observed_anew:
            desk.observed_anew = False
            if seen := desk.observations.dump():
                await store.keep_observations(tx, seen)
        return events

    # -- decisions ----------------------------------------------------------------------------------------------------

    async def _decide(self, tx: Tx) -> list[Outbound]:
        """Write charges and decision records; tell where operations go, together where the decision is the same."""
        desk = self._desk
        groups: dict[tuple[str, Choice], _Group] = {}
        charged: list[tuple[Admitted, str, bool]] = []
        for found in self.admitted:
            key = (found.bucket, found.choice)
            group = groups.get(key)
            if group is None:
                group = groups[key] = self._group(found)
            group.operations.append((found.ticket.operation, found.ticket.round))
            charged.append((found, group.record.id, self._held_out(found)))
            desk.admitted_at[found.ticket.operation] = self._now
        await store.charge(tx, charged, self._now)
        fresh = {g.record.id: g.record for g in groups.values() if g.record.id not in desk.kept_decisions}
        if fresh:
            await store.keep_decisions(tx, list(fresh.values()))
            tx.after_commit(lambda: desk.kept_decisions.update(dict.fromkeys(fresh)))
        events: list[Outbound] = []
        for group in groups.values():
            events += self._encoder.decided(
                group.project,
                group.record,
                self._now,
                group.operations,
                contract_version=group.contract_version,
                valid_until=group.valid_until,
                served_by=group.served_by,
            )
        return events

    def _group(self, found: Admitted) -> _Group:
        """Return the decision behind an admission, for all operations of the class that it was made for."""
        book, plan = self._desk.book, self._desk.admission.buckets[found.bucket].plan
        entry = book[found.bucket]
        assert plan.order is not None
        environment = found.choice.environment
        version, until = entry.version_in(environment), self._valid_until(found.bucket, environment)
        inputs = {"contractVersion": str(version), "observed": str(book.rankings.version), **book.view.inputs()}
        if found.choice.full:
            inputs["full"] = ",".join(found.choice.full)
        record = make_record(
            assessment=entry.assessment.id,
            at=self._now,
            policy=plan.policy,
            ranking=plan.order.ranking,
            choice=found.choice,
            inputs=inputs,
        )
        served_by = plan.serves.get(found.choice.place, "")
        return _Group(record, found.charge.project, version, until, served_by, [])

    def _valid_until(self, key: str, environment: str) -> datetime | None:
        """Return until when the verdict holds, by newer evidence if it is about to run out: the claim comes after."""
        valid_until = self._desk.admission.buckets[key].plan.valid_until
        until = valid_until.get(environment)
        if until is not None and until < self._now + CLAIM_WITHIN:
            until = max(until, self._desk.book.revalidate(key, environment, self._now) or until)
            valid_until[environment] = until
        return until if until is not None and until.year < MAXYEAR else None

    def _held_out(self, found: Admitted) -> bool:
        after = self._desk.admission.buckets[found.bucket].plan.overflow_after
        return bool(after) and found.ticket.since + after > self._now

    async def _preempt(self, tx: Tx) -> list[Outbound]:
        """Write who has to leave, and tell the coordinator, which has them stopped."""
        evicted = self._desk.admission.evicted
        if not evicted:
            return []
        self._desk.admission.evicted = []
        await store.ask_to_leave(tx, [found.charge.operation for found in evicted])
        return messages.preempted(evicted)

    # -- waits --------------------------------------------------------------------------------------------------------

    async def _let_wait(self, tx: Tx, arrived: Sequence[Ticket]) -> list[Outbound]:
        """Write newly arrived operations that have to wait, with their class's verdict, and tell them why."""
        desk = self._desk
        by_bucket: dict[str, list[Ticket]] = {}
        for ticket in arrived:
            bucket = desk.admission.bucket_of(ticket.operation)
            if bucket is not None:
                by_bucket.setdefault(bucket.key, []).append(ticket)
        rows: list[store.WaitingRow] = []
        events: list[Outbound] = []
        for key, tickets in by_bucket.items():
            bucket = desk.admission.buckets[key]
            reason = bucket.wait.reason if bucket.wait is not None else WaitReason.AT_CAPACITY
            rows += [self._row(bucket, ticket, reason) for ticket in tickets]
            if bucket.wait is None:  # not tried in this turn; the next one tells
                desk.told[key] = Told(None, self._now - TELL_AGAIN_AFTER)
                continue
            # Of operations that were never eligible eligibility has told already, and it knows more about the reason.
            if bucket.wait.reason is not WaitReason.NO_ELIGIBLE_ENVIRONMENT or key in desk.handed_over:
                events += self._tell(bucket, tickets)
            if len(tickets) == len(bucket.tickets):
                desk.told[key] = Told(bucket.wait.reason, self._now, bucket.wait.limit)
        if rows:
            await store.let_wait(tx, rows)
            desk.waiting |= {row.ticket.operation for row in rows}
        await self._keep_assessments(tx, by_bucket)
        return events

    def _row(self, bucket: Bucket, ticket: Ticket, reason: WaitReason) -> store.WaitingRow:
        plan = bucket.plan
        return store.WaitingRow(ticket, bucket.key, plan.queue, plan.project, plan.priority, reason.value)

    async def _keep_assessments(self, tx: Tx, keys: dict[str, list[Ticket]]) -> None:
        """Keep the verdicts of classes that wait: a successor must know them without being told again."""
        desk = self._desk
        fresh = {}
        for key in keys:
            entry = desk.book[key]
            if desk.kept_assessments.get(key) != entry.assessment.id:
                fresh[key] = entry.raw
                desk.kept_assessments[key] = entry.assessment.id
        if fresh:
            await store.keep_assessments(tx, fresh)

    async def _tell_again(self, tx: Tx) -> list[Outbound]:
        """Tell buckets whose reason, or the limit behind it, has changed since they were last told."""
        desk = self._desk
        desk.tell_at = None
        events: list[Outbound] = []
        for key, bucket in desk.admission.buckets.items() if desk.waiting else ():
            if bucket.wait is None or not bucket.tickets:
                continue
            told, at = due(desk.told.get(key), bucket.wait, self._now)
            if told is not None:
                desk.told[key] = told
            if at is None:
                continue
            if at > self._now:
                desk.tell_at = at if desk.tell_at is None else min(at, desk.tell_at)
                continue
            events += self._tell(bucket, list(bucket.tickets))
            desk.told[key] = Told(bucket.wait.reason, self._now, bucket.wait.limit)
            await store.change_reason(tx, key, bucket.wait.reason.value)
            await self._keep_assessments(tx, {key: []})
        return events

    def _tell(self, bucket: Bucket, tickets: Sequence[Ticket]) -> list[Outbound]:
        assert bucket.wait is not None
        assessment = self._desk.book[bucket.key].assessment
        nobody = bucket.wait.reason is WaitReason.NO_ELIGIBLE_ENVIRONMENT
        return messages.waiting(
            bucket.plan.project,
            bucket.wait,
            [OperationRound(operation=ticket.operation, round=ticket.round) for ticket in tickets],
            assessment=assessment.id,
            condition=(assessment.condition or "not-now") if nobody else "",
        )
