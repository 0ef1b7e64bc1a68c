"""One evaluation: collect the facts, ask every rule, move the alerts, tell what changed. By one replica at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.schema.wire import event_v1
from landbridge.store import Tx
from landbridge_alerting import alerts_table, facts
from landbridge_alerting.environments import Environments
from landbridge_alerting.machine import Alert, advance
from landbridge_alerting.rules import RULES, Finding
from landbridge_alerting.world import Limits, World

_LOCK_KEY: Final = 0x616C657274696E67  # "alerting"
_ASKED_KEPT: Final = timedelta(days=8)  # longer than OPERATIONS keeps what refers to them
_encode = msgspec.json.Encoder().encode
_TYPE: Final = event_type("alert", "Alert")


@dataclass(frozen=True, slots=True)
class Plan:
    """How evaluations are done."""

    limits: Limits
    window: timedelta
    resolve_after: timedelta
    repeat: timedelta
    keep_resolved: timedelta
    receivers: frozenset[str]


async def evaluate(
    tx: Tx, environments: Environments, plan: Plan, now: datetime, late_servers: frozenset[str] = frozenset()
) -> list[Outbound]:
    """Evaluate once, unless another replica does; return the events of alerts that began or ended."""
    if not await tx.fetchval("select pg_try_advisory_xact_lock($1)", _LOCK_KEY):
        return []
    world = await _world(tx, environments, now - plan.window, late_servers)
    findings = judge(world, now, plan.limits)
    outcome = advance(await alerts_table.current(tx), findings, now, plan.resolve_after)
    await alerts_table.save(tx, [*outcome.transitions, *outcome.kept])
    if outcome.dropped:
        await alerts_table.drop(tx, outcome.dropped)
    again = await alerts_table.to_repeat(tx, plan.receivers, now - plan.repeat)
    changed = [*(alert.rule for alert in outcome.transitions), *again]
    if changed and plan.receivers:
        await alerts_table.notify(tx, plan.receivers, changed, now)
    await facts.prune(tx, now - plan.window, now - _ASKED_KEPT)
    await alerts_table.prune(tx, now - plan.keep_resolved)
    return [_event(alert) for alert in outcome.transitions]


async def _world(tx: Tx, environments: Environments, since: datetime, late_servers: frozenset[str]) -> World:
    return World(
        waiting=await facts.waiting(tx),
        links=environments.links(),
        proofs=environments.proofs(),
        starts=await facts.starts(tx, since),
        dead_letters=await facts.dead_letters(tx, since),
        advisories=await facts.advisories(tx, since),
        drifts=environments.drifts(),
        unowned=environments.unowned(),
        late_servers=late_servers,
    )


def judge(world: World, now: datetime, limits: Limits) -> Sequence[Finding]:
    """Ask every rule."""
    return [finding for name in sorted(RULES) for finding in RULES[name](world, now, limits)]


def _event(alert: Alert) -> Outbound:
    event = event_v1.Alert(
        rule=alert.rule,
        fingerprint=alert.fingerprint,
        state=event_v1.AlertState(alert.state.value),
        severity=event_v1.Severity(alert.severity),
        labels=dict(alert.labels),
        summary=alert.summary,
        description=alert.description,
        starts_at=alert.starts_at or alert.since,
        ends_at=alert.ends_at,
    )
    return Outbound(subjects.alert(alert.rule), _TYPE, _encode(event), about=alert.fingerprint)


def unsilenced(alerts: Iterable[Alert], silences: Sequence[alerts_table.Silence], now: datetime) -> list[Alert]:
    """Return the alerts that no silence covers at present."""
    holding = [silence for silence in silences if silence.starts_at <= now < silence.ends_at]

    def covered(alert: Alert) -> bool:
        labels = {"rule": alert.rule, "severity": alert.severity, **alert.labels}
        return any(silence.covers(labels) for silence in holding)

    return [alert for alert in alerts if not covered(alert)]
