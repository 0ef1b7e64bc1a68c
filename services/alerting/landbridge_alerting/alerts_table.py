"""Alerts, notifications and silences as they are kept. SQL and rows, nothing decided here."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from landbridge.store import Tx
from landbridge_alerting.machine import Alert, State

_COLUMNS = "fingerprint, rule, severity, labels, summary, description, state, since, seen_at, starts_at, ends_at"
_SAVE = """
insert into alert (fingerprint, rule, severity, labels, summary, description, state, since, seen_at, starts_at, ends_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (fingerprint) do update set severity = $3, summary = $5, description = $6, state = $7, since = $8,
    seen_at = $9, starts_at = $10, ends_at = $11
"""


def _alert(row: Any) -> Alert:
    values = dict(row)
    return Alert(**{**values, "labels": json.loads(values["labels"]), "state": State(values["state"])})


async def current(tx: Tx) -> list[Alert]:
    """Return pending and firing alerts."""
    rows = await tx.fetch(f"select {_COLUMNS} from alert where state <> 'resolved' order by fingerprint")  # noqa: S608
    return [_alert(row) for row in rows]


async def listed(tx: Tx, states: Sequence[str], rule: str, limit: int) -> list[Alert]:
    """Return alerts in some states, of a rule if one is named; the newest first."""
    rows = await tx.fetch(
        f"select {_COLUMNS} from alert where state = any($1) and ($2 = '' or rule = $2)"  # noqa: S608
        " order by coalesce(starts_at, since) desc, fingerprint limit $3",
        list(states),
        rule,
        limit,
    )
    return [_alert(row) for row in rows]


async def save(tx: Tx, alerts: Iterable[Alert]) -> None:
    rows = [
        (
            alert.fingerprint,
            alert.rule,
            alert.severity,
            json.dumps(dict(alert.labels), sort_keys=True),
            alert.summary,
            alert.description,
            alert.state.value,
            alert.since,
            alert.seen_at,
            alert.starts_at,
            alert.ends_at,
        )
        for alert in alerts
    ]
    if rows:
        await tx.execute_many(_SAVE, rows)


async def drop(tx: Tx, alerts: Iterable[Alert]) -> None:
    await tx.execute("delete from alert where fingerprint = any($1)", [alert.fingerprint for alert in alerts])


async def prune(tx: Tx, before: datetime) -> None:
    """Forget alerts that ended before."""
    await tx.execute("delete from alert where state = 'resolved' and ends_at < $1", before)
    await tx.execute("delete from told where fingerprint not in (select fingerprint from alert)")


# -- notifications ----------------------------------------------------------------------------------------------------


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A group of alerts that a receiver has to be told of."""

    receiver: str
    rule: str
    changed: int
    attempts: int


async def notify(tx: Tx, receivers: Iterable[str], rules: Iterable[str], now: datetime) -> None:
    """Have receivers told of rules, now; a failing receiver is tried anew at once."""
    pairs = [(receiver, rule) for receiver in sorted(receivers) for rule in sorted(set(rules))]
    await tx.execute(
        """
        insert into notification (receiver, rule, due)
        select receiver, rule, $3 from unnest($1::text[], $2::text[]) as t(receiver, rule)
        on conflict (receiver, rule) do update
        set changed = notification.changed + 1, attempts = 0, due = least(notification.due, $3)
        """,
        [pair[0] for pair in pairs],
        [pair[1] for pair in pairs],
        now,
    )


async def claim(tx: Tx, receivers: Iterable[str], now: datetime, until: datetime) -> Notification | None:
    """Take one notification that is due; others leave it alone until `until`."""
    row = await tx.fetchrow(
        """
        update notification set due = $3, attempts = attempts + 1
        where (receiver, rule) = (
            select receiver, rule from notification where due <= $2 and receiver = any($1)
            order by due limit 1 for update skip locked
        ) returning receiver, rule, changed, attempts
        """,
        sorted(receivers),
        now,
        until,
    )
    return Notification(**dict(row)) if row is not None else None


async def group(tx: Tx, notification: Notification) -> list[Alert]:
    """Return what a receiver has to be told of a rule: what fires, and the end of what it was told to fire."""
    rows = await tx.fetch(
        f"""
        select {_COLUMNS} from alert where rule = $2 and (state = 'firing' or (state = 'resolved' and exists (
            select 1 from told where told.receiver = $1 and told.fingerprint = alert.fingerprint
            and told.state = 'firing'))) order by fingerprint
        """,  # noqa: S608
        notification.receiver,
        notification.rule,
    )
    return [_alert(row) for row in rows]


async def sent(tx: Tx, notification: Notification, alerts: Sequence[Alert], now: datetime) -> None:
    """Note what was told; the notification is done unless there was another reason meanwhile."""
    await tx.execute(
        """
        insert into told (receiver, fingerprint, state, at)
        select $1, fingerprint, state, $4 from unnest($2::text[], $3::text[]) as t(fingerprint, state)
        on conflict (receiver, fingerprint) do update set state = excluded.state, at = excluded.at
        """,
        notification.receiver,
        [alert.fingerprint for alert in alerts],
        [alert.state.value for alert in alerts],
        now,
    )
    await tx.execute(
        "delete from notification where receiver = $1 and rule = $2 and changed = $3",
        notification.receiver,
        notification.rule,
        notification.changed,
    )
    await tx.execute(
        "update notification set due = $3, attempts = 0 where receiver = $1 and rule = $2",
        notification.receiver,
        notification.rule,
        now,
    )


async def put_off(tx: Tx, notification: Notification, error: str, due: datetime) -> None:
    """Try again at `due`; at once if there was another reason meanwhile."""
    await tx.execute(
        """
        update notification set last_error = $4, due = case when changed = $3 then $5 else due end
        where receiver = $1 and rule = $2
        """,
        notification.receiver,
        notification.rule,
        notification.changed,
        error,
        due,
    )


async def failing(tx: Tx) -> dict[str, str]:
    """Return receivers that could not be told, with the last reason."""
    rows = await tx.fetch(
        "select receiver, last_error from notification where last_error <> '' order by receiver, rule"
    )
    return {row["receiver"]: row["last_error"] for row in rows}


async def to_repeat(tx: Tx, receivers: Iterable[str], before: datetime) -> list[str]:
    """Return rules that fire and that some receiver was told of too long ago."""
    rows = await tx.fetch(
        """
        select distinct alert.rule from alert join told using (fingerprint)
        where alert.state = 'firing' and told.receiver = any($1) and told.at < $2 order by 1
        """,
        sorted(receivers),
        before,
    )
    return [row["rule"] for row in rows]


# -- silences ---------------------------------------------------------------------------------------------------------


class Silence(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Alerts whose labels are as in `matchers` are not sent while it holds."""

    id: str
    matchers: Mapping[str, str]
    starts_at: datetime
    ends_at: datetime
    created_by: str
    comment: str = ""

    def covers(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(name) == value for name, value in self.matchers.items())


async def silences(tx: Tx, now: datetime) -> list[Silence]:
    """Return the silences that have not ended."""
    rows = await tx.fetch(
        "select id, matchers, starts_at, ends_at, created_by, comment from silence where ends_at > $1"
        " order by ends_at, id",
        now,
    )
    return [Silence(**{**dict(row), "id": str(row["id"]), "matchers": json.loads(row["matchers"])}) for row in rows]


async def add_silence(tx: Tx, silence: Silence) -> None:
    await tx.execute(
        "insert into silence (id, matchers, starts_at, ends_at, created_by, comment) values ($1, $2, $3, $4, $5, $6)",
        silence.id,
        json.dumps(dict(silence.matchers)),
        silence.starts_at,
        silence.ends_at,
        silence.created_by,
        silence.comment,
    )


async def end_silence(tx: Tx, silence_id: str, now: datetime) -> bool:
    """End a silence now; tell whether it held."""
    return bool(
        await tx.execute("update silence set ends_at = $2 where id::text = $1 and ends_at > $2", silence_id, now)
    )
