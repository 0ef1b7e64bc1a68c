"""Environment rows: the lease chain of each environment as the centre knows it."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.domain.ownership.leases_centre import EnvironmentLease, Link
from landbridge.schema.wire import event_v1
from landbridge.store import Tx
from landbridge_dispatch.coordinator.wire import encode

_FIELDS = EnvironmentLease.__struct_fields__
_LIST = ", ".join(_FIELDS)
_LINK_TYPE = event_type("environment", "EnvironmentLink")

# Column names are the fields of our own struct, never input.
_SELECT = f"select {_LIST} from environment"  # noqa: S608
_INSERT = (
    f"insert into environment ({_LIST}) values ({', '.join(f'${n}' for n in range(1, len(_FIELDS) + 1))}) "  # noqa: S608
    "on conflict do nothing"
)
_UPSERT = (
    f"insert into environment ({_LIST}) values ({', '.join(f'${n}' for n in range(1, len(_FIELDS) + 1))}) "  # noqa: S608
    f"on conflict (environment) do update set {', '.join(f'{field} = excluded.{field}' for field in _FIELDS[1:])}"
)


def _lease(record: Any) -> EnvironmentLease:
    values: dict[str, Any] = dict(zip(_FIELDS, record, strict=True))
    values["link"] = Link(values["link"])
    values["features"] = tuple(values["features"])
    return EnvironmentLease(**values)


async def lock(tx: Tx, names: Iterable[str]) -> dict[str, EnvironmentLease]:
    """Read environments to change them. Always before operations, so that no two transactions wait for each other."""
    found = await tx.fetch(f"{_SELECT} where environment = any($1) order by environment for update", sorted(set(names)))
    return {record[0]: _lease(record) for record in found}


async def share(tx: Tx, names: Iterable[str]) -> dict[str, EnvironmentLease]:
    """Read environments whose term must not rise before this transaction ends."""
    found = await tx.fetch(f"{_SELECT} where environment = any($1) order by environment for share", sorted(set(names)))
    return {record[0]: _lease(record) for record in found}


async def peek(tx: Tx, name: str) -> EnvironmentLease | None:
    """Read an environment without a lock, for comparing."""
    found = await tx.fetchrow(f"{_SELECT} where environment = $1", name)
    return None if found is None else _lease(found)


async def terms(tx: Tx, names: Iterable[str]) -> dict[str, int]:
    """Return the terms that environments hold by now."""
    found = await tx.fetch("select environment, held_term from environment where environment = any($1)", list(names))
    return {record[0]: record[1] for record in found}


async def all_leases(tx: Tx) -> dict[str, EnvironmentLease]:
    return {record[0]: _lease(record) for record in await tx.fetch(_SELECT)}


async def save(tx: Tx, leases: Iterable[EnvironmentLease]) -> None:
    """Write rows back, new ones included."""
    for lease in leases:
        values = [getattr(lease, field) for field in _FIELDS]
        values[_FIELDS.index("features")] = list(lease.features)
        await tx.execute(_UPSERT, *values)


async def create(tx: Tx, names: Iterable[str], generation: int) -> None:
    """Insert rows for environments that are heard for the first time; rows that exist stay as they are."""
    for name in names:
        lease = EnvironmentLease(environment=name, generation=generation)
        values = [getattr(lease, field) for field in _FIELDS]
        values[_FIELDS.index("features")] = []
        await tx.execute(_INSERT, *values)


async def regrant(tx: Tx, environment: str, term: int) -> None:
    """Move the grants of what an environment holds to its new term."""
    await tx.execute(
        """update operation set grant_term = $2 where environment = $1 and active
           and placement in ('claimed', 'running') and grant_term < $2""",
        environment,
        term,
    )


async def note_ahead(tx: Tx, environment: str, term: int) -> None:
    """Keep that an environment holds a term which this database has never granted: it was restored."""
    await tx.execute(
        "update environment set ahead_term = $2, ahead_at = now() where environment = $1 and ahead_term < $2",
        environment,
        term,
    )


def link_event(lease: EnvironmentLease, now: int, ttl_ms: int) -> Outbound:
    """Return the whole current value of an environment's link."""
    heard = lease.link in (Link.CONNECTED, Link.RECONCILING)
    event = event_v1.EnvironmentLink(
        environment=lease.environment,
        state=event_v1.LinkState(lease.link.value),
        since=_moment(lease.link_since),
        term=max(lease.term, lease.held_term),
        lease_until=_moment(now + ttl_ms) if heard else None,
        features=lease.features,
        executor=lease.executor,
        incarnation=lease.incarnation,
        quarantined=lease.quarantined,
    )
    return Outbound(subjects.environment("link", lease.environment), _LINK_TYPE, encode(event))


def _moment(milliseconds: int) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
