"""The life of an alert."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from landbridge_alerting.machine import Alert, Outcome, State, advance
from landbridge_alerting.rules.base import Finding

START = datetime(2026, 11, 30, tzinfo=UTC)
AFTER = timedelta(seconds=30)
RESOLVE = timedelta(seconds=10)


def finding(name: str = "a", after: timedelta = timedelta(0), severity: str = "warning") -> Finding:
    return Finding("rule", severity, {"name": name}, f"{name} is wrong", after=after)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def step(alerts: list[Alert], findings: list[Finding], seconds: float) -> tuple[Outcome, list[Alert]]:
    """Evaluate and return what is kept afterwards."""
    outcome = advance(alerts, findings, at(seconds), RESOLVE)
    kept = {alert.fingerprint: alert for alert in alerts}
    kept.update((alert.fingerprint, alert) for alert in [*outcome.kept, *outcome.transitions])
    for alert in outcome.dropped:
        del kept[alert.fingerprint]
    return outcome, list(kept.values())


def test_a_finding_without_delay_fires_at_once() -> None:
    outcome, [alert] = step([], [finding()], 0)
    assert [each.state for each in outcome.transitions] == [State.FIRING]
    assert alert.starts_at == at(0)


def test_a_finding_fires_when_it_held_long_enough() -> None:
    outcome, alerts = step([], [finding(after=AFTER)], 0)
    assert (outcome.transitions, alerts[0].state) == ([], State.PENDING)
    outcome, alerts = step(alerts, [finding(after=AFTER)], 29)
    assert outcome.transitions == []
    outcome, alerts = step(alerts, [finding(after=AFTER)], 30)
    assert [each.state for each in outcome.transitions] == [State.FIRING]
    assert alerts[0].starts_at == at(30)


def test_a_pending_alert_that_is_gone_leaves_no_trace() -> None:
    _, alerts = step([], [finding(after=AFTER)], 0)
    outcome, alerts = step(alerts, [], 5)
    assert (outcome.transitions, alerts) == ([], [])


def test_a_firing_alert_ends_once_and_not_for_a_moment() -> None:
    _, alerts = step([], [finding()], 0)
    outcome, alerts = step(alerts, [], 5)
    assert outcome.transitions == []
    outcome, alerts = step(alerts, [finding()], 8)  # it was only a moment
    assert outcome.transitions == []
    outcome, alerts = step(alerts, [], 18)
    [ended] = outcome.transitions
    assert (ended.state, ended.starts_at, ended.ends_at) == (State.RESOLVED, at(0), at(18))
    outcome, _ = step(alerts, [], 100)
    assert outcome.transitions == []


def test_an_alert_that_comes_back_begins_anew() -> None:
    _, alerts = step([], [finding()], 0)
    _, alerts = step(alerts, [], 20)
    outcome, alerts = step(alerts, [finding()], 30)
    assert [each.starts_at for each in outcome.transitions] == [at(30)]


def test_a_worse_severity_is_told() -> None:
    _, alerts = step([], [finding()], 0)
    outcome, _ = step(alerts, [finding(severity="critical")], 5)
    assert [(each.severity, each.starts_at) for each in outcome.transitions] == [("critical", at(0))]


@given(st.lists(st.sets(st.sampled_from("abc")), min_size=1, max_size=40))
def test_firing_and_resolved_alternate_for_every_alert(history: list[set[str]]) -> None:
    alerts: list[Alert] = []
    told: dict[str, list[State]] = {}
    for number, names in enumerate(history):
        outcome, alerts = step(alerts, [finding(name, timedelta(seconds=6)) for name in sorted(names)], number * 5)
        for alert in outcome.transitions:
            told.setdefault(alert.fingerprint, []).append(alert.state)
    for states in told.values():
        assert states == [State.FIRING, State.RESOLVED] * (len(states) // 2) + [State.FIRING] * (len(states) % 2)
