"""The table of charges that were found to be held by nothing, and how they are told, by environment."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.domain.charge_audit import Unowned
from landbridge.schema.wire import event_v1
from landbridge.store import Tx

# What was given back is over at once; so long it is shown all the same.
SHOWN_FOR: Final = timedelta(minutes=15)
MOST_TOLD: Final = 1_000
_TYPE: Final = event_type("environment", "EnvironmentCharges")
_encode: Final = msgspec.json.Encoder().encode
Shown = dict[str, tuple[event_v1.UnownedCharge, ...]]


async def keep(tx: Tx, found: Sequence[Unowned], now: datetime) -> None:
    """Write what is found, and forget what is not found any more; what was given back is kept for a while."""
    keys = [each.key for each in found]
    await tx.execute(
        "delete from unowned where released and since < $1 or not released and not exists (select from"
        " unnest($2::uuid[], $3::int[]) as still (operation, round) where still.operation = unowned.operation"
        " and still.round = unowned.round)",
        now - SHOWN_FOR,
        [operation for operation, _ in keys],
        [round_ for _, round_ in keys],
    )
    ordered = sorted(found, key=lambda each: each.key)
    await tx.execute(
        """insert into unowned (operation, round, environment, queue, project, reason, released, since)
           select *, $8::timestamptz from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[],
               $6::text[], $7::boolean[])
           on conflict (operation, round) do update set reason = excluded.reason, released = excluded.released""",
        [each.charge.operation for each in ordered],
        [each.charge.round for each in ordered],
        [each.charge.environment for each in ordered],
        [each.charge.queue for each in ordered],
        [each.charge.project for each in ordered],
        [reason(each) for each in ordered],
        [each.over for each in ordered],
        now,
    )


def reason(found: Unowned) -> str:
    """Return why nothing holds a charge, as a code."""
    return "undecided" if found.standing.value == "idle" else found.standing.value


async def shown(tx: Tx) -> Shown:
    """Return all that is shown, by environment."""
    rows = await tx.fetch(
        "select operation::text, round, environment, queue, project, reason, released, since from unowned"
        " order by environment, since, operation, round"
    )
    found: dict[str, list[event_v1.UnownedCharge]] = {}
    for row in rows:
        found.setdefault(row["environment"], []).append(
            event_v1.UnownedCharge(
                operation=row["operation"],
                round=row["round"],
                queue=row["queue"],
                project=row["project"],
                reason=row["reason"],
                released=row["released"],
                since=row["since"],
            )
        )
    return {name: tuple(items) for name, items in found.items()}


def events(before: Shown, after: Shown, now: datetime) -> list[Outbound]:
    """Tell each environment of which something else is shown than before."""
    return [
        Outbound(
            subjects.environment("charges", name),
            _TYPE,
            _encode(event_v1.EnvironmentCharges(environment=name, at=now, items=after.get(name, ())[:MOST_TOLD])),
        )
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
