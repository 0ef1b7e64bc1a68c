"""The life of an alert: pending until its rule held long enough, firing until it holds no more, then resolved. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from landbridge_alerting.rules.base import Finding


class State(StrEnum):
    """Where an alert stands."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert as it is kept. `since`: found without a break since then; `starts_at`: when it began to fire."""

    fingerprint: str
    rule: str
    severity: str
    labels: Mapping[str, str]
    summary: str
    description: str
    state: State
    since: datetime
    seen_at: datetime
    starts_at: datetime | None = None
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an evaluation changed. `transitions` began to fire or ended; the other lists only have to be kept."""

    transitions: list[Alert] = field(default_factory=list)
    kept: list[Alert] = field(default_factory=list)
    dropped: list[Alert] = field(default_factory=list)


def advance(alerts: Iterable[Alert], findings: Iterable[Finding], now: datetime, resolve_after: timedelta) -> Outcome:
    """Bring alerts up to what was found. A firing alert ends when it was not found for `resolve_after`."""
    known = {alert.fingerprint: alert for alert in alerts if alert.state is not State.RESOLVED}
    found = {finding.fingerprint: finding for finding in findings}
    outcome = Outcome()
    for fingerprint, finding in sorted(found.items()):
        _found(known.get(fingerprint), finding, now, outcome)
    for fingerprint, alert in sorted(known.items()):
        if fingerprint in found:
            continue
        if alert.state is State.PENDING:
            outcome.dropped.append(alert)
        elif now - alert.seen_at >= resolve_after:
            outcome.transitions.append(replace(alert, state=State.RESOLVED, ends_at=now))
    return outcome


def _found(alert: Alert | None, finding: Finding, now: datetime, outcome: Outcome) -> None:
    since = alert.since if alert is not None else now
    fires = (alert is not None and alert.state is State.FIRING) or now - since >= finding.after
    current = Alert(
        fingerprint=finding.fingerprint,
        rule=finding.rule,
        severity=finding.severity,
        labels=finding.labels,
        summary=finding.summary,
        description=finding.description,
        state=State.FIRING if fires else State.PENDING,
        since=since,
        seen_at=now,
        starts_at=(alert.starts_at if alert is not None else None) or (now if fires else None),
    )
    began = fires and (alert is None or alert.state is not State.FIRING)
    worse = alert is not None and alert.state is State.FIRING and alert.severity != finding.severity
    (outcome.transitions if began or worse else outcome.kept).append(current)
