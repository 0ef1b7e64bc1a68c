"""Alertmanager's webhook format, version 4."""

from datetime import UTC, datetime

from landbridge_alerting.machine import Alert, State
from landbridge_alerting.webhook import payload

AT = datetime(2026, 11, 30, 12, 0, 1, 500_000, tzinfo=UTC)


def alert(name: str, state: State = State.FIRING, severity: str = "critical") -> Alert:
    return Alert(
        fingerprint=f"fp-{name}",
        rule="lost-environment",
        severity=severity,
        labels={"environment": name},
        summary=f"{name} is lost",
        description="",
        state=state,
        since=AT,
        seen_at=AT,
        starts_at=AT,
        ends_at=AT if state is State.RESOLVED else None,
    )


def test_a_group_is_firing_as_long_as_one_alert_is() -> None:
    body = payload("ops", "lost-environment", [alert("b", State.RESOLVED), alert("a")], "https://lb.example")
    assert body == {
        "version": "4",
        "groupKey": '{}:{alertname="lost-environment"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "ops",
        "groupLabels": {"alertname": "lost-environment"},
        "commonLabels": {"alertname": "lost-environment", "severity": "critical"},
        "commonAnnotations": {},
        "externalURL": "https://lb.example",
        "alerts": [
            {
                "status": "firing",
                "labels": {"alertname": "lost-environment", "severity": "critical", "environment": "a"},
                "annotations": {"summary": "a is lost"},
                "startsAt": "2026-11-30T12:00:01.500Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "https://lb.example/alerts",
                "fingerprint": "fp-a",
            },
            {
                "status": "resolved",
                "labels": {"alertname": "lost-environment", "severity": "critical", "environment": "b"},
                "annotations": {"summary": "b is lost"},
                "startsAt": "2026-11-30T12:00:01.500Z",
                "endsAt": "2026-11-30T12:00:01.500Z",
                "generatorURL": "https://lb.example/alerts",
                "fingerprint": "fp-b",
            },
        ],
    }


def test_a_group_of_ended_alerts_is_resolved() -> None:
    body = payload("ops", "lost-environment", [alert("a", State.RESOLVED)], "")
    assert body["status"] == "resolved"
    assert body["commonAnnotations"] == {"summary": "a is lost"}
