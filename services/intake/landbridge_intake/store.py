"""Statements of intake: accepted operations, the contents they share, and the catalogue's documents."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from landbridge.store import Tx

_INSERT = """
insert into operation (id, project, key, name, queue, written_sha256, document_sha256, effective_sha256, source,
                       submitted_by, retry_of, at)
select *, $12::timestamptz from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[],
                                       $7::bytea[], $8::bytea[], $9::text[], $10::text[], $11::uuid[])
on conflict (id) do nothing returning id
"""
_CONTENT = """
insert into content (sha256, body) select * from unnest($1::bytea[], $2::bytea[]) on conflict do nothing
"""
_KNOWN_CONTENTS = 65_536


@dataclass(frozen=True, slots=True)
class NewOperation:
    """One row of `operation`; `id` is canonical text."""

    id: str
    project: str
    key: str
    name: str
    queue: str
    written_sha256: bytes
    document_sha256: bytes
    effective_sha256: bytes
    source: str
    submitted_by: str
    retry_of: str | None


@dataclass(frozen=True, slots=True)
class Held:
    """What an earlier submission with the same key was."""

    written_sha256: bytes
    document_sha256: bytes

    def is_same(self, written: bytes, document: bytes) -> bool:
        """Tell whether the same bytes, or other bytes with the same meaning, were sent."""
        return written == self.written_sha256 or document == self.document_sha256


async def insert_operations(tx: Tx, rows: Sequence[NewOperation], at: datetime) -> set[str]:
    """Insert rows in the order of their ids; return the ids that were new."""
    if not rows:
        return set()
    ordered = sorted(rows, key=lambda row: row.id)  # replicas lock in the same order
    fields = ("id", "project", "key", "name", "queue", "written_sha256", "document_sha256", "effective_sha256",
              "source", "submitted_by", "retry_of")  # fmt: skip
    columns = [[getattr(row, field) for row in ordered] for field in fields]
    found = await tx.fetch(_INSERT, *columns, at)
    if len(found) == len(ordered):
        return {row.id for row in ordered}
    return {str(row[0]) for row in found}


async def held_operations(tx: Tx, ids: Iterable[str]) -> dict[str, Held]:
    """Return what is known of those ids that are taken."""
    wanted = sorted(ids)
    if not wanted:
        return {}
    rows = await tx.fetch(
        "select id, written_sha256, document_sha256 from operation where id = any($1::uuid[])", wanted
    )
    return {str(row[0]): Held(row[1], row[2]) for row in rows}


class Contents:
    """Writes specifications and rendered operations once; remembers which are there so as not to ask again."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()

    async def keep(self, tx: Tx, bodies: Mapping[bytes, bytes]) -> None:
        """Store contents by digest, those not known to be there. Known they are once the transaction is committed."""
        fresh = {digest: body for digest, body in bodies.items() if digest not in self._known}
        if not fresh:
            return
        digests = sorted(fresh)
        await tx.later("content", _CONTENT, digests, [fresh[digest] for digest in digests])
        tx.after_commit(lambda: self._remember(digests))

    def _remember(self, digests: Iterable[bytes]) -> None:
        for digest in digests:
            self._known[digest] = None
        while len(self._known) > _KNOWN_CONTENTS:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Trust nothing: it is not known what the database kept."""
        self._known.clear()


@dataclass(frozen=True, slots=True)
class Stored:
    """One accepted operation as it was written."""

    id: str
    project: str
    name: str
    written: bytes


async def stored_operation(tx: Tx, operation: str) -> Stored | None:
    """Return an accepted operation with its bytes, or None."""
    try:
        wanted = UUID(operation)
    except ValueError:
        return None
    row = await tx.fetchrow(
        """select o.id, o.project, o.name, c.body from operation o join content c on c.sha256 = o.written_sha256
           where o.id = $1""",
        wanted,
    )
    return Stored(str(row[0]), row[1], row[2], row[3]) if row else None


# -- documents --------------------------------------------------------------------------------------------------------

_CURRENT = """
select distinct on (name) name, version, deleted, document, applied_by, at from document
where kind = $1 order by name, deleted and $2, version desc
"""
_SINCE = """
select kind, name, version, deleted, document, revision from document where revision > $1 order by revision, version
"""


async def next_revision(tx: Tx) -> int:
    """Take the next revision of the catalogue; whoever else changes it waits for this transaction."""
    revision: int = await tx.fetchval("update catalogue set revision = revision + 1 returning revision")
    return revision


async def revision(tx: Tx) -> int:
    """Return the catalogue's revision."""
    found: int = await tx.fetchval("select revision from catalogue")
    return found


async def changed_documents(tx: Tx, since: int) -> list[Any]:
    """Return the document versions written after a revision, oldest first."""
    return await tx.fetch(_SINCE, since)


async def current_documents(tx: Tx, kind: str, *, versioned: bool) -> list[Any]:
    """Return the current version of each document of a kind that is not deleted, by name.

    Of `versioned` kinds single versions can be deleted; of the others the newest row alone counts.
    """
    return [row for row in await tx.fetch(_CURRENT, kind, versioned) if not row[2]]


async def document_versions(tx: Tx, kind: str, name: str) -> list[Any]:
    """Return all versions of a document, oldest first."""
    return await tx.fetch(
        """select version, deleted, document, applied_by, at from document where kind = $1 and name = $2
           order by version""",
        kind,
        name,
    )


async def set_deleted(tx: Tx, kind: str, name: str, version: int, revision: int, *, deleted: bool) -> None:
    """Hide one version of a versioned document, or show it again."""
    await tx.execute(
        "update document set deleted = $5, revision = $4 where kind = $1 and name = $2 and version = $3",
        kind,
        name,
        version,
        revision,
        deleted,
    )


async def insert_document(
    tx: Tx,
    kind: str,
    name: str,
    version: int,
    *,
    revision: int,
    written: bytes,
    document: bytes,
    by: str,
    at: datetime,
    deleted: bool = False,
) -> None:
    """Write one version of a document, or its end."""
    await tx.execute(
        """insert into document (kind, name, version, revision, deleted, written, document, applied_by, at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9)""",
        kind,
        name,
        version,
        revision,
        deleted,
        written,
        document,
        by,
        at,
    )
