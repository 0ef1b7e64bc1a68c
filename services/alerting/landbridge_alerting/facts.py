"""Facts in Postgres: what waits, what did not start, dead letters, advisories. SQL and rows, nothing decided here."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from landbridge.store import Tx
from landbridge_alerting.world import DeadLetters, Starts, Waiting

PLACED: Final = "placed"

_WAIT = """
insert into waiting (operation, project, queue, reason, eligible, since)
select operation, $2, coalesce(nullif($3, ''), 'default'), $4, $5, $6 from unnest($1::uuid[]) as operation
on conflict (operation) do update
set project = excluded.project, queue = excluded.queue, reason = excluded.reason, eligible = excluded.eligible,
    since = case when waiting.eligible = excluded.eligible then waiting.since else excluded.since end
"""
_COUNT_STARTS = """
insert into start_count (minute, environment, reason, count)
select date_trunc('minute', $1::timestamptz), * from unnest($2::text[], $3::text[], $4::bigint[])
on conflict (minute, environment, reason) do update set count = start_count.count + excluded.count
"""
_COUNT_DEAD = """
insert into dead_letter_count (minute, service, count, last_error)
values (date_trunc('minute', $1::timestamptz), $2, $3, $4)
on conflict (minute, service) do update
set count = dead_letter_count.count + excluded.count, last_error = excluded.last_error
"""


async def asked(tx: Tx, assessments: Mapping[str, tuple[str, str]], now: datetime) -> None:
    """Keep which project and queue assessments are about."""
    ids = sorted(assessments)
    await tx.execute(
        """
        insert into asked (assessment, project, queue, at)
        select id, project, queue, $4 from unnest($1::text[], $2::text[], $3::text[]) as t(id, project, queue)
        on conflict (assessment) do update set at = excluded.at where asked.at < excluded.at - interval '1 hour'
        """,
        ids,
        [assessments[each][0] for each in ids],
        [assessments[each][1] for each in ids],
        now,
    )


async def queue_of(tx: Tx, assessment: str) -> str:
    """Return the queue that an assessment was about; "" if it is not known."""
    return await tx.fetchval("select queue from asked where assessment = $1", assessment) or ""


async def wait(
    tx: Tx, operations: Sequence[str], project: str, queue: str, reason: str, since: datetime, *, eligible: bool
) -> None:
    """Keep that operations wait. One that waited before in the same way goes on waiting since then."""
    await tx.execute(_WAIT, sorted(operations), project, queue, reason, eligible, since)


async def gone(tx: Tx, operations: Iterable[str], now: datetime) -> None:
    """Forget operations that wait no more."""
    ids = sorted(operations)
    await tx.execute("delete from waiting where operation = any($1::uuid[])", ids)
    await tx.execute("insert into gone (at, operations) values ($1, $2::uuid[])", now, ids)


async def still_waiting(tx: Tx, operations: Sequence[str]) -> list[str]:
    """Leave out operations that were placed or ended within the last minutes."""
    rows = await tx.fetch(
        "select distinct unnest(operations)::text as operation from gone where operations && $1::uuid[]",
        list(operations),
    )
    left = {row["operation"] for row in rows}
    return [each for each in operations if each not in left]


async def count_starts(tx: Tx, counts: Mapping[tuple[str, str], int], now: datetime) -> None:
    """Add to the counts, by environment and reason; PLACED counts placements."""
    keys = sorted(counts)
    await tx.execute(
        _COUNT_STARTS, now, [key[0] for key in keys], [key[1] for key in keys], [counts[key] for key in keys]
    )


async def count_dead(tx: Tx, service: str, count: int, error: str, now: datetime) -> None:
    await tx.execute(_COUNT_DEAD, now, service, count, error)


async def advise(tx: Tx, about: str, text: str, now: datetime) -> None:
    await tx.execute(
        "insert into advisory (about, text, at) values ($1, $2, $3)"
        " on conflict (about) do update set text = $2, at = $3",
        about,
        text,
        now,
    )


# -- reading ----------------------------------------------------------------------------------------------------------


async def waiting(tx: Tx) -> tuple[Waiting, ...]:
    rows = await tx.fetch(
        """
        select project, queue, reason, eligible, min(since) as oldest, count(*) as count
        from waiting group by project, queue, reason, eligible order by 1, 2, 3, 4
        """
    )
    return tuple(Waiting(**dict(row)) for row in rows)


async def starts(tx: Tx, since: datetime) -> dict[str, Starts]:
    rows = await tx.fetch(
        "select environment, reason, sum(count)::bigint as count from start_count where minute >= $1"
        " group by environment, reason order by environment, reason",
        since,
    )
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        found.setdefault(row["environment"], {})[row["reason"]] = row["count"]
    return {
        name: Starts(
            placed=reasons.get(PLACED, 0),
            failed=sum(count for reason, count in reasons.items() if reason != PLACED),
            reasons={reason: count for reason, count in reasons.items() if reason != PLACED},
        )
        for name, reasons in found.items()
    }


async def dead_letters(tx: Tx, since: datetime) -> dict[str, DeadLetters]:
    rows = await tx.fetch(
        """
        select service, sum(count)::bigint as count, (array_agg(last_error order by minute desc))[1] as last_error
        from dead_letter_count where minute >= $1 group by service order by service
        """,
        since,
    )
    return {row["service"]: DeadLetters(row["count"], row["last_error"]) for row in rows}


async def advisories(tx: Tx, since: datetime) -> dict[str, str]:
    rows = await tx.fetch("select about, text from advisory where at >= $1 order by about", since)
    return {row["about"]: row["text"] for row in rows}


async def prune(tx: Tx, before: datetime, asked_before: datetime) -> None:
    """Forget counts and assessments that nothing looks at any more."""
    await tx.execute("delete from start_count where minute < $1", before - timedelta(minutes=1))
    await tx.execute("delete from dead_letter_count where minute < $1", before - timedelta(minutes=1))
    await tx.execute("delete from gone where at < now() - interval '5 minutes'")
    await tx.execute("delete from advisory where at < $1", before)
    await tx.execute("delete from asked where at < $1", asked_before)
