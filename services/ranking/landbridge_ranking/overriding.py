"""An emergency override: one operation that waits is placed where a named person says, past its queue and its rules.

It is judged like any other; what may not be broken is refused. The decision is recorded, charged and told as all
others are, so that whatever it exceeds counts against everybody's limits until it ends.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from landbridge.bus.envelope import Outbound
from landbridge.domain.admission import Admitted
from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import nearest
from landbridge.domain.decision_record import DecisionRecord, make_record
from landbridge.domain.eligibility import evaluate_eligibility
from landbridge.domain.hardware import alternatives, match_accelerator
from landbridge.domain.ledger import Charge, demand
from landbridge.domain.overriding import EmergencyOverride, stands, why_it_stands
from landbridge.domain.placement import Choice, Ranking, Route, score
from landbridge.domain.queues import Bucket, WaitReason
from landbridge.domain.requirements import Requirements
from landbridge.domain.tickets import Ticket
from landbridge.domain.verdict import EligibilityVerdict
from landbridge.runtime import logs
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.request_v1 import OverrideRequest
from landbridge.store import Tx
from landbridge_ranking import messages, store

if TYPE_CHECKING:
    from landbridge_ranking.desk import Desk
    from landbridge_ranking.service import RankingService

log = logs.get(__name__)
ACTION: Final = "override"


class _Forced(NamedTuple):
    """What is to be done: for whom, where, charged how, overriding what."""

    bucket: Bucket
    ticket: Ticket
    verdict: EligibilityVerdict
    charge: Charge
    override: EmergencyOverride
    served_by: str


async def override(service: "RankingService", asked: OverrideRequest) -> dict[str, Any]:
    """Do it, and tell what it overrides; a dry run changes nothing. Raises ProblemError 404, 409 or 503."""
    desk = service.desk
    if not desk.settled:
        raise ProblemError(503, "Try again", "ranking is reading its tables", headers={"Retry-After": "2"})
    # Before anything is locked: what is refused must not make the admitter read its tables again.
    found = _judge(desk, asked, service.clock.wall())
    if asked.dry_run:
        return {**_outcome(found), "dryRun": True}
    done: list[_Forced] = []

    async def work(tx: Tx) -> Sequence[Outbound]:
        await desk.enter(tx)
        now = service.clock.wall()
        desk.refresh(now)
        forced = _judge(desk, asked, now)
        done[:] = [forced]
        return await _place(tx, desk, forced, now)

    await service.outbox.commit(work)
    log.warning(
        "emergency_override",
        operation=asked.operation,
        environment=asked.environment,
        by=asked.by,
        reason=asked.reason,
        overridden=[violation.reason for violation in done[0].override.overridden],
    )
    return {**_outcome(done[0]), "dryRun": False}


# -- judging ----------------------------------------------------------------------------------------------------------


def _judge(desk: "Desk", asked: OverrideRequest, now: datetime) -> _Forced:
    desk.book.settle()
    bucket, ticket = desk.admission.bucket_of(asked.operation), desk.admission.waiting(asked.operation)
    if bucket is None or ticket is None:
        raise ProblemError(409, "Nothing waits", _not_waiting(desk, asked.operation))
    if bucket.plan.gang:
        gang = bucket.plan.gang.rpartition("/")[2]
        told = (
            f"operation {asked.operation} is a member of gang {gang}, whose members are placed together or not at all"
        )
        raise ProblemError(409, "Not to be overridden", f"{told}; cancel it, and submit its work without a gang")
    entry, candidates = desk.book[bucket.key], desk.book.view.candidates.get(asked.environment, ())
    if not candidates:
        known = frozenset(desk.book.view.candidates)
        near = nearest(asked.environment, known)
        hint = f"did you mean {near}?" if near else f"there are: {', '.join(sorted(known)) or 'none'}"
        raise ProblemError(404, "Not found", f"no environment {asked.environment!r} is registered; {hint}")
    [verdict] = evaluate_eligibility(entry.requirement_class, candidates, now).verdicts
    against = stands(verdict.violations)
    if against:
        told = "; ".join(map(why_it_stands, against))
        listed = [dict(zip(violation._fields, map(str, violation), strict=True)) for violation in against]
        detail = f"operation {asked.operation} cannot be placed in {asked.environment} by anybody: {told}"
        raise ProblemError(409, "Not to be overridden", detail, violations=listed)
    judged = next(c for c in candidates if c.contract_version == verdict.contract_version)
    candidate = alternatives(entry.requirements.accelerator, judged, verdict.classes)[0]
    plan = bucket.plan
    charge = Charge(
        ticket.operation,
        ticket.round,
        asked.environment,
        plan.queue,
        plan.project,
        demand(entry.requirements, candidate),
        priority=plan.priority,
        at=now,
        ends=now + plan.expected if plan.expected is not None else None,
        component=plan.component,
    )
    waited = ""
    if bucket.wait is not None and bucket.wait.reason is not WaitReason.NO_ELIGIBLE_ENVIRONMENT:
        waited = f"{bucket.wait.reason.value}: {bucket.wait.message}"
    told_by = EmergencyOverride(asked.environment, asked.by, asked.reason, verdict.violations, waited)
    return _Forced(bucket, ticket, verdict, charge, told_by, _served_by(entry.requirements, candidate))


def _served_by(requirements: Requirements, candidate: Candidate) -> str:
    """Return the class of its accelerators there; empty if there is none, or it asks for none."""
    need = requirements.accelerator
    offer = match_accelerator(need, candidate).offer if need is not None else None
    return offer.name if offer is not None else ""


def _not_waiting(desk: "Desk", operation: str) -> str:
    held = desk.admission.ledger.held_by(operation)
    if held is None:
        return f"operation {operation} does not wait here: it has ended, waits for its retry, or is not known"
    return (
        f"operation {operation} is placed in {held.environment}: move it with `landbridge move`; if that environment"
        " is silent, free it first: landbridge release --override"
    )


# -- placing ----------------------------------------------------------------------------------------------------------


async def _place(tx: Tx, desk: "Desk", forced: _Forced, now: datetime) -> list[Outbound]:
    """Charge it, write decision and audit row, and tell where it goes."""
    operation, record = forced.ticket.operation, _record(desk, forced, now)
    choice = Choice(record.environment, record.route, ())
    desk.admission.force(forced.charge)
    desk.admitted_at[operation] = now
    admitted = Admitted(forced.bucket.key, forced.ticket, choice, forced.charge)
    await store.charge(tx, [(admitted, record.id, False)], now)
    await store.keep_decisions(tx, [record])
    if operation in desk.waiting:
        await store.stop_waiting(tx, [operation])
        desk.waiting.discard(operation)
    await store.record(tx, ACTION, forced.override.by, forced.override.reason, forced.charge.queue, operation)
    return messages.DecisionEncoder().decided(
        forced.charge.project,
        record,
        now,
        [(operation, forced.ticket.round)],
        contract_version=forced.verdict.contract_version,
        valid_until=None,  # it does not rest on a verdict
        served_by=forced.served_by,
    )


def _record(desk: "Desk", forced: _Forced, now: datetime) -> DecisionRecord:
    book, plan = desk.book, forced.bucket.plan
    inputs = {"contractVersion": str(forced.verdict.contract_version), **book.view.inputs()}
    return make_record(
        assessment=book[forced.bucket.key].assessment.id,
        at=now,
        policy=plan.policy,
        ranking=plan.order.ranking if plan.order is not None else _NOTHING_RANKED,
        choice=Choice(forced.charge.environment, Route.EMERGENCY_OVERRIDE, ()),
        inputs=inputs,
        override=forced.override,
    )


_NOTHING_RANKED: Final[Ranking] = score({}, {}, names=[])


def _outcome(forced: _Forced) -> dict[str, Any]:
    told, environment = forced.override, forced.charge.environment
    text = [f"It goes to {environment} at once, whatever waits before it. This holds for one placement."]
    text += [f"Overridden: {v.constraint}: wanted {v.wanted}, found {v.found}." for v in told.overridden]
    if told.waited:
        text.append(f"Overridden: its turn in queue {forced.charge.queue}: {told.waited}.")
    if not told.overridden and not told.waited:
        text.append("Nothing stands against it there: it would have been placed soon by itself.")
    text.append("What it takes is charged, also beyond limits; nothing else is admitted under these until it ends.")
    return {
        "operation": forced.ticket.operation,
        "environment": environment,
        "overridden": [dict(zip(v._fields, map(str, v), strict=True)) for v in told.overridden],
        "waited": told.waited,
        "text": text,
    }
