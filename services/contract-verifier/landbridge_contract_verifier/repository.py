"""The contract-verifier's tables: SQL and rows, nothing decided here."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from landbridge.schema.wire.command_v1 import Probe
from landbridge.store import Tx
from landbridge_contract_verifier.records import Record
from landbridge_contract_verifier.versions import Phase, Version

_PROBES = msgspec.json.Decoder(tuple[Probe, ...])
_encode = msgspec.json.Encoder().encode

_ENVIRONMENT = """
select name, removed, registered_at, paused, draining, clock_offset, plan_for, evidence_told, refresh_at
from environment where name = $1
"""
_ADD_VERSION = """
insert into contract (environment, version, phase, sha256, document, probes, submitted_by, at, until)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
_SAVE_RECORDS = """
insert into evidence (environment, probe, subject, claim, result, proven, claimed, at, expires, detail)
select $1, * from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::float8[],
                         $8::timestamptz[], $9::timestamptz[], $10::text[])
on conflict (environment, probe, subject) do update
set claim = excluded.claim, result = excluded.result, proven = excluded.proven, claimed = excluded.claimed,
    at = excluded.at, expires = excluded.expires, detail = excluded.detail
where evidence.at <= excluded.at
"""
_RECORDS = """
select distinct on (probe) probe, claim, result, subject, at, expires, proven, claimed, detail
from evidence where environment = $1 order by probe, at desc
"""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """One environment's row."""

    name: str
    removed: bool
    registered_at: datetime
    paused: bool
    draining: bool
    clock_offset: float
    plan_for: str
    evidence_told: datetime
    refresh_at: datetime


async def environment(tx: Tx, name: str, *, lock: bool = True) -> Environment | None:
    """Return an environment, locked until the end of the transaction unless `lock` is off."""
    row = await tx.fetchrow(_ENVIRONMENT + (" for update" if lock else ""), name)
    return Environment(**dict(row)) if row is not None else None


async def enter(tx: Tx, name: str, at: datetime) -> None:
    """Make an environment's row, or bring a removed one back."""
    await tx.execute(
        """
        insert into environment (name, registered_at) values ($1, $2)
        on conflict (name) do update set removed = false, registered_at = $2, plan_for = '',
            paused = false, draining = false, control_by = '', control_reason = '', clock_offset = 0
        where environment.removed
        """,
        name,
        at,
    )


async def leave(tx: Tx, name: str) -> None:
    """Mark an environment as removed and forget its versions and evidence; its events remain."""
    await tx.execute("delete from contract where environment = $1", name)
    await tx.execute("delete from evidence where environment = $1", name)
    await tx.execute(
        "update environment set removed = true, evidence_due = null, phase_due = null where name = $1", name
    )


async def claim_plan(tx: Tx, name: str, incarnation: str) -> bool:
    """Tell whether this incarnation of the dispatcher still needs the plan; it counts as sent from now on."""
    changed = await tx.execute(
        "update environment set plan_for = $2 where name = $1 and plan_for <> $2 and not removed", name, incarnation
    )
    return changed > 0


# -- versions ---------------------------------------------------------------------------------------------------------


async def versions(tx: Tx, name: str) -> list[Version]:
    """Return all versions that were ever registered, in order."""
    rows = await tx.fetch(
        "select version, phase, sha256, document, probes, at, until from contract where environment = $1"
        " order by version",
        name,
    )
    return [
        Version(
            version=row["version"],
            phase=Phase(row["phase"]),
            sha256=row["sha256"],
            document=bytes(row["document"]),
            probes=_PROBES.decode(row["probes"]),
            at=row["at"],
            until=row["until"],
        )
        for row in rows
    ]


async def add_version(tx: Tx, name: str, item: Version, by: str) -> None:
    await tx.execute(
        _ADD_VERSION,
        name,
        item.version,
        item.phase.value,
        item.sha256,
        item.document,
        _encode(item.probes),
        by,
        item.at,
        item.until,
    )


async def set_probes(tx: Tx, name: str, version: int, probes: tuple[Probe, ...]) -> None:
    await tx.execute(
        "update contract set probes = $3 where environment = $1 and version = $2", name, version, _encode(probes)
    )


async def set_phases(tx: Tx, name: str, changes: Mapping[int, tuple[Phase, datetime | None]]) -> None:
    for version, (phase, until) in sorted(changes.items()):
        await tx.execute(
            "update contract set phase = $3, until = $4 where environment = $1 and version = $2",
            name,
            version,
            phase.value,
            until,
        )


async def set_phase_due(tx: Tx, name: str, due: datetime | None) -> None:
    await tx.execute("update environment set phase_due = $2 where name = $1", name, due)


# -- evidence ---------------------------------------------------------------------------------------------------------


async def records(tx: Tx, name: str) -> dict[str, Record]:
    """Return the current record of each probe."""
    return {row["probe"]: Record(**dict(row)) for row in await tx.fetch(_RECORDS, name)}


async def save_records(tx: Tx, name: str, news: Iterable[Record]) -> None:
    kept = sorted(news, key=lambda record: (record.probe, record.subject))
    await tx.execute(
        _SAVE_RECORDS,
        name,
        [record.probe for record in kept],
        [record.subject for record in kept],
        [record.claim for record in kept],
        [record.result for record in kept],
        [record.proven for record in kept],
        [record.claimed for record in kept],
        [record.at for record in kept],
        [record.expires for record in kept],
        [record.detail for record in kept],
    )


async def set_clock_offset(tx: Tx, name: str, offset_s: float) -> None:
    await tx.execute("update environment set clock_offset = $2 where name = $1", name, offset_s)


async def evidence_due(tx: Tx, name: str, due: datetime) -> None:
    """Have the evidence published at `due`, or earlier if that was wanted before."""
    await tx.execute(
        "update environment set evidence_due = least(coalesce(evidence_due, 'infinity'), $2) where name = $1", name, due
    )


async def evidence_told(tx: Tx, name: str, at: datetime, refresh_at: datetime) -> None:
    """Note that the evidence was published at `at`; unchanged, it is published again at `refresh_at`."""
    await tx.execute(
        "update environment set evidence_due = null, evidence_told = $2, refresh_at = $3 where name = $1",
        name,
        at,
        refresh_at,
    )


async def next_due(tx: Tx, now: datetime) -> str | None:
    """Return, locked, one environment that has something due; those that another replica holds are left to it."""
    found: str | None = await tx.fetchval(
        """
        select name from environment where evidence_due <= $1 or phase_due <= $1
        order by least(evidence_due, phase_due) limit 1 for update skip locked
        """,
        now,
    )
    return found


async def earliest_due(tx: Tx) -> datetime | None:
    found: datetime | None = await tx.fetchval(
        "select least(min(evidence_due), min(phase_due)) from environment where not removed"
    )
    return found
