"""The body of a notification: Alertmanager's webhook format, version 4. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from landbridge_alerting.machine import Alert, State

VERSION: Final = "4"
_NEVER: Final = "0001-01-01T00:00:00Z"  # what Alertmanager writes for an end that has not come


def payload(receiver: str, rule: str, alerts: Sequence[Alert], external_url: str) -> dict[str, Any]:
    """Return one group's notification: all alerts of a rule that a receiver should know of."""
    items = [_item(alert, external_url) for alert in sorted(alerts, key=lambda alert: alert.fingerprint)]
    firing = any(alert.state is State.FIRING for alert in alerts)
    return {
        "version": VERSION,
        "groupKey": f'{{}}:{{alertname="{rule}"}}',
        "truncatedAlerts": 0,
        "status": "firing" if firing else "resolved",
        "receiver": receiver,
        "groupLabels": {"alertname": rule},
        "commonLabels": _common(item["labels"] for item in items),
        "commonAnnotations": _common(item["annotations"] for item in items),
        "externalURL": external_url,
        "alerts": items,
    }


def labels_of(alert: Alert) -> dict[str, str]:
    """Return the labels as receivers see them."""
    return {"alertname": alert.rule, "severity": alert.severity, **alert.labels}


def _item(alert: Alert, external_url: str) -> dict[str, Any]:
    annotations = {"summary": alert.summary, "description": alert.description}
    return {
        "status": "resolved" if alert.state is State.RESOLVED else "firing",
        "labels": labels_of(alert),
        "annotations": {name: text for name, text in annotations.items() if text},
        "startsAt": _moment(alert.starts_at or alert.since),
        "endsAt": _moment(alert.ends_at) if alert.ends_at is not None else _NEVER,
        "generatorURL": f"{external_url}/alerts" if external_url else "",
        "fingerprint": alert.fingerprint,
    }


def _common(items: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the pairs that all have."""
    rows = list(items)
    if not rows:
        return {}
    return {name: value for name, value in rows[0].items() if all(row.get(name) == value for row in rows)}


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
