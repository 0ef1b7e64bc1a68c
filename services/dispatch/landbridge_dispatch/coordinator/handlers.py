"""What the coordinator does with operations, reports and intents: read, load once, decide in order, finish."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.domain.ownership import centre_model as model
from landbridge.runtime import logs
from landbridge.runtime.failures import PermanentFailure, TransientFailure
from landbridge.schema.wire import request_v1
from landbridge.store import Tx
from landbridge_dispatch.coordinator import drifting, environments, quarantine, reading, wire
from landbridge_dispatch.coordinator.core import Core
from landbridge_dispatch.coordinator.inventory import take_inventory
from landbridge_dispatch.coordinator.measures import alarms
from landbridge_dispatch.coordinator.session import Session
from landbridge_dispatch.coordinator.verdicts import Verdicts

log = logs.get(__name__)

# The event that begins an operation may be behind, in another replica's hands; when that replica was killed, the broker
# gives it to somebody else only after its acknowledgement time, and perhaps to the next one that is killed.
_SOON_S, _SOON_DELIVERIES = 0.25, 8
_LATER_S, _PATIENCE_DELIVERIES = 2.0, 150
_cancel = msgspec.json.Decoder(request_v1.Cancel)

Parsed = wire.Accepted | wire.Waiting | wire.Decided | wire.Preempted


class OperationsHandler:
    """New operations, rounds that wait, rounds that are decided, rounds that have to leave."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        parsed = [(message, _read(message)) for message in batch]
        session = self._core.session(tx)
        await session.load(name for _, content in parsed for name in _operations(content))
        self._begin(session, parsed, await self._held(tx, parsed))
        await session.join_gangs()
        _require_known(session, parsed)
        for _, content in parsed:
            if isinstance(content, wire.Decided):
                _decide(session, content, self._core.verdicts)
            elif isinstance(content, wire.Waiting):
                _wait(session, content)
            elif isinstance(content, wire.Preempted):
                _preempt(session, content)
        return await session.finish()

    async def _held(self, tx: Tx, parsed: Iterable[tuple[Inbound, Parsed]]) -> set[str]:
        """Return the new operations that must not be placed before somebody has seen or decided: they may run already.

        While the centre recovers these are all; else those of which an environment holds work nobody has decided about.
        """
        new = [content.operation for _, content in parsed if isinstance(content, wire.Accepted)]
        if new and await self._core.recovers(tx):
            return set(new)
        return await quarantine.undecided(tx, new) if new and self._core.verdicts.any_quarantined else set()

    def _begin(self, session: Session, parsed: Iterable[tuple[Inbound, Parsed]], held: set[str]) -> None:
        core = self._core
        for message, content in parsed:
            if not isinstance(content, wire.Accepted) or session.state(content.operation) is not None:
                continue
            try:
                sha256 = bytes.fromhex(content.effective_sha256)
                specification = core.specifications.read(sha256, content.effective)
            except (ValueError, msgspec.MsgspecError) as error:
                raise PermanentFailure(f"the operation cannot be read: {error}", offenders=[message.id]) from error
            declared = specification.declared
            accepted = model.Accepted(
                operation=content.operation,
                project=content.project,
                policy=declared.policy,
                retries=declared.retries,
                queue_timeout_ms=declared.queue_timeout_ms,
                generation=core.generation,
                recovering=content.operation in held,
                start_within_ms=declared.start_within_ms,
                gang=declared.gang,
            )
            session.accept(accepted, specification)


def _read(message: Inbound) -> Parsed:
    kind = subjects.token(message.subject, 3)
    try:
        if kind == "decided":
            return wire.read_decided(message.body)
        if kind == "preempted":
            return wire.read_preempted(message.body)
        return wire.read_waiting(message.body) if kind == "waiting" else wire.read_accepted(message.body)
    except msgspec.MsgspecError as error:
        raise PermanentFailure(f"not a message of kind {kind}: {error}", offenders=[message.id]) from error


def _operations(content: Parsed) -> Iterable[str]:
    if isinstance(content, wire.Accepted):
        return (content.operation,)
    return (placed.operation for placed in content.operations)


def _require_known(session: Session, parsed: Iterable[tuple[Inbound, Parsed]]) -> None:
    """Have messages about operations that did not begin here yet delivered again; the others of the batch go on."""
    await_beginning(
        message for message, content in parsed if any(session.state(name) is None for name in _operations(content))
    )


def await_beginning(early: Iterable[Inbound]) -> None:
    """Put off messages whose operation is not known yet: shortly at first, for minutes in all.

    Returns when none is to be put off any more. Raises TransientFailure.
    """
    waiting = list(early)
    soon = [message.id for message in waiting if message.deliveries < _SOON_DELIVERIES]
    if soon:
        raise TransientFailure(_SOON_S, "an operation is not known yet", offenders=soon)
    later = [message.id for message in waiting if message.deliveries < _PATIENCE_DELIVERIES]
    if later:
        raise TransientFailure(_LATER_S, "an operation is not known yet", offenders=later)


def _decide(session: Session, decided: wire.Decided, verdicts: Verdicts) -> None:
    decision = decided.decision.id
    for placed in decided.operations:
        if session.state(placed.operation) is None:
            log.error("decided_for_unknown_operation", operation=placed.operation)
            continue
        until = _valid_until(decided.decision.at, placed, verdicts.holds_since(placed.environment))
        message = model.Decided(
            placed.round, placed.environment, decision, placed.contract_version, until, placed.served_by
        )
        session.decide(placed.operation, message)


def _valid_until(decided_at: datetime | None, placed: wire.Placed, held_since: datetime | None) -> int:
    """Return until when a verdict holds, in milliseconds (0: always): not beyond a pause that it did not know of."""
    until = placed.valid_until
    if held_since is not None and decided_at is not None and decided_at <= held_since:
        until = held_since if until is None else min(until, held_since)
    return 0 if until is None else int(until.timestamp() * 1000)


def _wait(session: Session, waiting: wire.Waiting) -> None:
    unplaceable = waiting.condition == "unplaceable"
    for item in waiting.operations:
        if session.state(item.operation) is not None:
            message = model.Waiting(item.round, waiting.reason or "waiting", waiting.message, unplaceable)
            session.decide(item.operation, message)


def _preempt(session: Session, preempted: wire.Preempted) -> None:
    for item in preempted.operations:
        if session.state(item.operation) is not None:
            session.decide(item.operation, model.Preempted(item.round, preempted.message))


class ReportsHandler:
    """What environments say: attempts and inventories. The environment's name comes from the subject."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        parsed = [(message, _read_reports(message)) for message in batch]
        session, events = self._core.session(tx), list[Outbound]()
        heads = [
            (subjects.environment_of(message.subject), head, raw)
            for message, content in parsed
            if isinstance(content, list)
            for head, raw in content
        ]
        names = {subjects.environment_of(m.subject) for m, c in parsed if isinstance(c, wire.Inventory)}
        # Environments are locked before operations, as everywhere.
        leases = await environments.lock(tx, names) if names else {}
        await session.load(head.operation for _, head, _ in heads)
        terms = await _terms(session, tx, heads)
        for message, content in parsed:
            environment = subjects.environment_of(message.subject)
            if isinstance(content, wire.Inventory):
                await take_inventory(self._core, session, environment, content, message.body, leases, events)
                continue
            if isinstance(content, wire.Survey):
                events += await drifting.take_survey(self._core, session, environment, content)
                continue
            for head, raw in content:
                _hear(session, environment, head, raw, terms.get(environment, 0))
        events += await drifting.note_removed(self._core, session, heads)
        await quarantine.hear(session, heads, recovering=self._core.recovering)
        return [*await session.finish(), *events]


Heads = list[tuple[wire.ReportHead, msgspec.Raw]]


def _read_reports(message: Inbound) -> Heads | wire.Inventory | wire.Survey:
    try:
        kind = subjects.token(message.subject, 4)
        if kind == "inventory":
            return wire.read_inventory(message.body)
        if kind == "survey":
            return wire.read_survey(message.body)
        return [(wire.read_report(raw), raw) for raw in wire.read_reports(message.body).items]
    except msgspec.MsgspecError as error:
        raise PermanentFailure(f"not a report: {error}", offenders=[message.id]) from error


async def _terms(session: Session, tx: Tx, heads: Iterable[tuple[str, wire.ReportHead, msgspec.Raw]]) -> dict[str, int]:
    """Read the terms in force, only for environments that report in a newer term than they were last granted in."""
    newer = {
        environment
        for environment, head, _ in heads
        if (state := session.state(head.operation)) is not None and head.term > state.grant_term
    }
    return await environments.terms(tx, newer) if newer else {}


def _hear(session: Session, environment: str, head: wire.ReportHead, raw: msgspec.Raw, term: int) -> None:
    if session.state(head.operation) is None:
        alarms.labels("unknown-operation").inc()
        log.error("report_of_unknown_operation", environment=environment, operation=head.operation)
        return
    message = reading.report(head, raw, environment, term)
    if message is not None:
        session.decide(head.operation, message)


class IntentsHandler:
    """Wishes that operations end."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        parsed = [(message, _read_cancel(message)) for message in batch]
        session = self._core.session(tx)
        await session.load(cancel.operation for _, cancel in parsed)
        await_beginning(message for message, cancel in parsed if session.state(cancel.operation) is None)
        for message, cancel in parsed:
            state = session.state(cancel.operation)
            if state is None:
                log.warning("cancel_of_unknown_operation", operation=cancel.operation, by=cancel.by)
            elif state.project != subjects.project_of(message.subject):
                reason = f"operation {cancel.operation} is not of project {subjects.project_of(message.subject)}"
                raise PermanentFailure(reason, offenders=[message.id])
            else:
                session.decide(cancel.operation, model.CancelRequested(cancel.by, cancel.reason, cancel.force))
        return await session.finish()


def _read_cancel(message: Inbound) -> request_v1.Cancel:
    try:
        return _cancel.decode(message.body)
    except msgspec.MsgspecError as error:
        raise PermanentFailure(f"not a cancel: {error}", offenders=[message.id]) from error
