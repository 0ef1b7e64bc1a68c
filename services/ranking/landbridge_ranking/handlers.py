"""A batch of messages, or none at all: fold what happened, admit what can be admitted, write and tell it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.domain.charge_audit import Unowned
from landbridge.domain.ledger import Charge
from landbridge.domain.ownership.standing import Standing
from landbridge.domain.runs import run_key
from landbridge.domain.tickets import Ticket
from landbridge.runtime.clock import Clock
from landbridge.runtime.failures import PermanentFailure
from landbridge.store import Tx
from landbridge_ranking import messages, store
from landbridge_ranking.desk import Desk
from landbridge_ranking.results import Results

# One pass admits so many at most; what is left is admitted by the next, at once.
MOST_ADMITTED: Final = 10_000


class Place(NamedTuple):
    """Where a message stands in its stream; `again`: it was delivered before, and perhaps to somebody who died."""

    sequence: int = 0
    again: bool = False


@dataclass(slots=True)
class Work:
    """What a batch says. Rounds of `freed` are the last ones that are freed; `ended` need no place any more."""

    assessed: list[tuple[bytes, tuple[tuple[str, int], ...], "Place"]] = field(default_factory=list)
    freed: list[tuple[str, int]] = field(default_factory=list)
    ended: dict[str, messages.Ended] = field(default_factory=dict)
    requeued: dict[str, messages.Requeued] = field(default_factory=dict)


class RankingHandler:
    """Handles assessments, releases and ends in the admitter's turn. With an empty batch it only tries again."""

    def __init__(self, desk: Desk, clock: Clock) -> None:
        self._desk = desk
        self._clock = clock
        self._encoder = messages.DecisionEncoder()

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        work = read(batch)
        desk = self._desk
        await desk.enter(tx)
        now = self._clock.wall()
        desk.refresh(now)
        results = Results(desk, self._encoder, now)
        self._release(work, results, now)
        arrived = await self._arrive(tx, work, now)
        results.admitted = desk.admission.admit(now, MOST_ADMITTED)
        events = await results.write(tx, arrived)
        desk.tidy()
        return events

    async def give_back(self, tx: Tx, found: Sequence[Unowned]) -> tuple[list[Outbound], list[Unowned]]:
        """Give back charges that are over, in a turn of its own; return what to tell, and those that are still held."""
        desk = self._desk
        await desk.enter(tx)
        now = self._clock.wall()
        desk.refresh(now)
        results = Results(desk, self._encoder, now)
        held = desk.admission.ledger.held_by
        still = [each for each in found if held(each.charge.operation) == each.charge]
        for each in still:
            if each.over:
                self._drop(each, results)
        results.admitted = desk.admission.admit(now, MOST_ADMITTED)
        events = await results.write(tx, ())
        desk.tidy()
        return events, still

    def _drop(self, unowned: Unowned, results: Results) -> None:
        """Give back one charge. How it went is not known, so nothing is observed of it."""
        operation = unowned.charge.operation
        self._desk.admission.release(operation, unowned.charge.round)
        self._desk.admitted_at.pop(operation, None)
        results.released.append(operation)
        if unowned.standing is Standing.ENDED:
            results.closed.append(operation)
            results.gone |= self._desk.admission.forget({operation})

    # -- what happened ------------------------------------------------------------------------------------------------

    def _release(self, work: Work, results: Results, now: datetime) -> None:
        """Give back what ended or was freed, and note how it went."""
        desk = self._desk
        for operation, round_ in work.freed:
            charge = desk.admission.release(operation, round_)
            if charge is not None:
                results.released.append(operation)
                desk.leave(operation, charge.environment)
                desk.admitted_at.pop(operation, None)
        for operation, requeued in work.requeued.items():
            self._note_attempt(operation, requeued)
            ticket = desk.admission.waiting(operation)
            if ticket is not None and ticket.round < requeued.round:
                results.gone |= desk.admission.forget({operation})
        for operation, event in work.ended.items():
            results.closed.append(operation)
            charge = desk.admission.release(operation)
            admitted_at = desk.admitted_at.pop(operation, None)
            if charge is None:
                continue
            self._note_end(charge, event, admitted_at, now)
        results.gone |= desk.admission.forget(work.ended)

    def _note_end(self, charge: Charge, event: messages.Ended, admitted_at: datetime | None, now: datetime) -> None:
        """Note what the end of an operation tells about the environment that it was in."""
        seen, report = self._desk.observations, event.report
        seen.ended(charge.environment, event.reason)
        if admitted_at is not None:
            seen.held(charge.environment, charge.queue, (now - admitted_at).total_seconds())
            if report is not None and report.started_at is not None:
                seen.started(charge.environment, (report.started_at - admitted_at).total_seconds())
        # A later round may have gone on from a checkpoint: it did not do the whole work.
        if charge.component and charge.round == 1 and report is not None and report.took_s is not None:
            key = run_key(charge.component, charge.amounts)
            seen.ran(charge.environment, key, report.took_s, report.finished_at or now)

    def _note_attempt(self, operation: str, requeued: messages.Requeued) -> None:
        """Note how the attempt ended that an operation is placed again after."""
        held = self._desk.admission.ledger.held_by(operation)
        environment = held.environment if held is not None else self._desk.left.pop(operation, "")
        if environment and (held is None or held.round < requeued.round):
            self._desk.observations.ended(environment, requeued.reason)

    async def _arrive(self, tx: Tx, work: Work, now: datetime) -> list[Ticket]:
        """Let assessed operations in, unless they ended or were placed before; take on changed verdicts."""
        desk = self._desk
        operations = {operation for _, listed, _ in work.assessed for operation, _ in listed}
        known = await store.known(tx, sorted(operations)) if operations else {}
        arrived: list[Ticket] = []
        for raw, listed, place in work.assessed:
            key, changed = desk.book.take(raw)
            if listed:
                desk.note_teller(key)
            tickets = []
            for number, (operation, round_) in enumerate(listed):
                before = known.get(operation)
                if operation in work.ended or (before is not None and (before.closed or before.round >= round_)):
                    continue
                position = desk.position_of(place.sequence, number, again=place.again)
                tickets.append(self._ticket(key, Ticket(operation, round_, position, now), before))
            if tickets or (changed and key in desk.admission.buckets):
                desk.renew_plan(key)
            if tickets:
                arrived += desk.admission.arrive(key, tickets)
        if work.assessed and desk.waiting:
            desk.admission.wake_hopeless()
        return arrived

    def _ticket(self, key: str, ticket: Ticket, before: store.Known | None) -> Ticket:
        """Add to a ticket where its last attempt was."""
        desk = self._desk
        previous = before.environment if before is not None else ""
        # To leave an environment because one was told to is no drift.
        if previous in desk.book[key].requirements.excluded or (before is not None and before.left):
            previous = ""
        return ticket._replace(previous=previous)


def read(batch: Sequence[Inbound]) -> Work:
    """Read what a batch says. Raises PermanentFailure that names the message at fault."""
    work = Work()
    for message in batch:
        try:
            _read_one(message, work)
        except msgspec.MsgspecError as error:
            told = f"{message.type or 'message'} cannot be read: {error}"
            raise PermanentFailure(told, offenders=(message.id,)) from error
    return work


def _read_one(message: Inbound, work: Work) -> None:
    event = subjects.token(message.subject, 3)
    if event == "assessed":
        found = messages.read_assessed.decode(message.body)
        listed = tuple((item.operation, item.round) for item in found.operations)
        place = Place(message.stream_sequence, message.deliveries > 1)
        work.assessed.append((bytes(found.assessment), listed, place))
    elif event == "freed":
        freed = messages.read_freed.decode(message.body)
        work.freed.append((freed.operation, freed.round))
    elif event == "requeued":
        requeued = messages.read_requeued.decode(message.body)
        work.requeued[requeued.operation] = requeued
    elif event in ("completed", "failed", "cancelled"):
        ended = messages.read_ended.decode(message.body)
        work.ended[ended.operation] = ended
