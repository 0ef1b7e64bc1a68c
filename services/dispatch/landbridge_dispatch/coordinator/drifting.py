"""Surveys of environments, compared with the record: what two in a row show is kept, told, and gone when it is gone."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.domain.ownership.drift import Drift, Kind, compare_survey, removed
from landbridge.domain.ownership.epochs import Epoch
from landbridge.runtime import logs
from landbridge.schema.wire import event_v1
from landbridge.store import Tx
from landbridge_dispatch.coordinator import environments, quarantine, rows, wire
from landbridge_dispatch.coordinator.core import Core
from landbridge_dispatch.coordinator.measures import drifting
from landbridge_dispatch.coordinator.session import Session, is_id

log = logs.get(__name__)

# What was removed is over at once; so long it is shown all the same.
REMOVED_SHOWN_S: Final = 900
REMOVED: Final = "removed-externally"
MOST_TOLD: Final = 1_000
_EVENT: Final = event_type("environment", "EnvironmentDrift")
_SEE = """
insert into drift (environment, kind, operation, epoch, wanted, found, first_seen, confirmed)
select $1, * from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::boolean[])
on conflict (environment, kind, operation, epoch) do update
    set wanted = excluded.wanted, found = excluded.found, confirmed = true
"""
_GO = """
delete from drift where environment = $1 and not (kind || ' ' || operation || ' ' || epoch = any($2))
    and (kind <> $3 or first_seen < $4)
"""
_TOLD = """
select kind, operation, epoch, wanted, found, first_seen from drift where environment = $1 and confirmed
order by first_seen, kind, operation, epoch limit $2
"""

Heads = Iterable[tuple[str, wire.ReportHead, msgspec.Raw]]


async def take_survey(core: Core, session: Session, environment: str, survey: wire.Survey) -> list[Outbound]:
    """Compare what an environment holds with the record. Surveys of an earlier term or incarnation say nothing."""
    lease = await environments.peek(session.tx, environment)
    if lease is None or core.recovering:
        return []
    if (lease.incarnation, lease.held_term, lease.reconciled_term) != (survey.incarnation, survey.term, survey.term):
        return []
    listed = [(slot.operation, Epoch(slot.epoch.generation, slot.epoch.counter), slot.over) for slot in survey.slots]
    told = await quarantine.held_there(session.tx, environment)  # a person is asked about these already
    present = [(operation, epoch) for operation, epoch, over in listed if not over and (operation, epoch) not in told]
    recorded = await rows.peek_active(session.tx, environment)
    known = {state.operation: state for state in recorded}
    others = {operation for operation, _ in present if operation not in known and is_id(operation)}
    known |= {state.operation: state for state in await rows.peek_many(session.tx, sorted(others))}
    found = compare_survey(
        environment,
        survey.term,
        present,
        known,
        core.verdicts.standing(environment),
        over=[(operation, epoch) for operation, epoch, over in listed if over],
        complete=survey.complete and len(recorded) < rows.MOST_PEEKED,
    )
    return await _take(core, session.tx, environment, found, over=True)


async def note_removed(core: Core, session: Session, heads: Heads) -> list[Outbound]:
    """Take note of work that somebody removed at its site; what becomes of it is decided like any other end."""
    found: dict[str, list[Drift]] = {}
    for environment, head, _ in heads:
        if head.reason == REMOVED and session.state(head.operation) is not None:
            epoch = Epoch(head.epoch.generation, head.epoch.counter)
            found.setdefault(environment, []).append(removed(environment, head.operation, epoch, head.message))
    events: list[Outbound] = []
    for environment in sorted(found):
        events += await _take(core, session.tx, environment, found[environment], over=False)
    return events


async def _take(core: Core, tx: Tx, environment: str, found: Sequence[Drift], *, over: bool) -> list[Outbound]:
    """Write what is seen; `over`: what is not seen is gone. Tell it if what is confirmed has changed."""
    now = core.clock.wall()
    before = await _confirmed(tx, environment)
    if found:
        ordered = sorted(found, key=lambda drift: drift.key)
        await tx.execute(
            _SEE,
            environment,
            [drift.kind.value for drift in ordered],
            [drift.operation for drift in ordered],
            [str(drift.epoch) for drift in ordered],
            [drift.wanted for drift in ordered],
            [drift.found for drift in ordered],
            [now] * len(ordered),
            [drift.kind is Kind.REMOVED for drift in ordered],
        )
    if over:
        since = datetime.fromtimestamp(now.timestamp() - REMOVED_SHOWN_S, UTC)
        await tx.execute(_GO, environment, [" ".join(drift.key) for drift in found], REMOVED, since)
    after = await _confirmed(tx, environment)
    if [row[:5] for row in before] == [row[:5] for row in after]:
        return []
    tx.after_commit(lambda: _count(environment, len(after)))
    return [_event(environment, after, now)]


async def _confirmed(tx: Tx, environment: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await tx.fetch(_TOLD, environment, MOST_TOLD)]


def _count(environment: str, number: int) -> None:
    drifting.labels(environment).set(number)
    if number:
        log.warning("drift", environment=environment, differences=number)
    else:
        log.info("drift_resolved", environment=environment)


def _event(environment: str, shown: Sequence[tuple[Any, ...]], now: datetime) -> Outbound:
    items = tuple(
        event_v1.DriftItem(kind=kind, operation=operation, epoch=epoch, wanted=wanted, found=found, since=since)
        for kind, operation, epoch, wanted, found, since in shown
    )
    event = event_v1.EnvironmentDrift(environment=environment, at=now, items=items)
    return Outbound(subjects.environment("drift", environment), _EVENT, wire.encode(event))
