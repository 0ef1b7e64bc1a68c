"""Applying and removing the catalogue's documents. Intake owns all kinds but operations and environment contracts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from landbridge.bus.envelope import Outbound
from landbridge.bus.ids import new_event_id
from landbridge.domain.documents import Document
from landbridge.domain.errors import Problem
from landbridge.store import Tx
from landbridge_intake import messages, store

CONTRACT = "environment-contract"


class VersionConflict(Exception):  # noqa: N818 - an answer to the caller, not a fault
    """A version that never changes was sent with other content."""

    def __init__(self, document: Document, version: int) -> None:
        self.problem = Problem(
            "metadata.version",
            "version-conflict",
            f"version {version} of {document.kind.slug} {document.name} exists with other content",
            f"a version never changes: write {version + 1}",
        )
        super().__init__(self.problem.text)


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one document.

    A forwarded one belongs to another service, which answers by its own events: a refusal names the `submission`.
    """

    kind: str
    name: str
    version: int
    changed: bool
    forwarded: bool = False
    submission: str = ""
    draft: bool = False

    def members(self) -> dict[str, Any]:
        """Return the JSON members of an answer."""
        found: dict[str, Any] = {"kind": self.kind, "name": self.name, "version": self.version, "changed": self.changed}
        if self.forwarded:
            found |= {"forwarded": True, "submission": self.submission, "draft": self.draft}
        return found


async def apply(
    tx: Tx, documents: Sequence[Document], by: str, at: datetime, *, draft: bool = False
) -> tuple[list[Applied], list[Outbound]]:
    """Store documents, all or none; what is there already changes nothing. Raises VersionConflict.

    `draft` is for environment contracts: they are kept and probed as drafts.
    """
    applied: list[Applied] = []
    events: list[Outbound] = []
    revision = await store.next_revision(tx)
    for document in documents:
        if document.kind.slug == CONTRACT:
            version = int(document.value["metadata"].get("version", 0))
            submission = new_event_id()
            events.append(messages.contract(document.body, by, submission, draft=draft))
            applied.append(
                Applied(
                    CONTRACT,
                    document.name,
                    version,
                    changed=True,
                    forwarded=True,
                    submission=submission,
                    draft=draft,
                )
            )
            continue
        version, changed = await _store(tx, document, revision, by, at)
        applied.append(Applied(document.kind.slug, document.name, version, changed))
        if changed:
            body = document.canonical
            digest = sha256(body).hexdigest()
            events.append(messages.catalogue_entry(document.kind.slug, document.name, version, body, digest, at))
    return applied, events


async def _store(tx: Tx, document: Document, revision: int, by: str, at: datetime) -> tuple[int, bool]:
    """Write a document unless it is there; return its version and whether anything changed."""
    kind, name, body = document.kind.slug, document.name, document.canonical
    rows = await store.document_versions(tx, kind, name)
    if document.kind.versioned:
        version = int(document.value["metadata"]["version"])
        known = next((row for row in rows if row["version"] == version), None)
        if known is not None:
            if known["document"] != body:
                raise VersionConflict(document, version)
            if known["deleted"]:
                await store.set_deleted(tx, kind, name, version, revision, deleted=False)
            return version, bool(known["deleted"])
    else:
        newest = rows[-1] if rows else None
        if newest is not None and not newest["deleted"] and newest["document"] == body:
            return newest["version"], False
        version = newest["version"] + 1 if newest else 1
    await store.insert_document(
        tx, kind, name, version, revision=revision, written=document.body, document=body, by=by, at=at
    )
    return version, True


async def remove(
    tx: Tx, kind: str, name: str, by: str, at: datetime, *, versioned: bool, version: int = 0
) -> list[Outbound]:
    """Remove a document, or one version of it; return nothing if there is none."""
    rows = [row for row in await store.document_versions(tx, kind, name) if not row["deleted"]]
    doomed = [row for row in rows if not version or row["version"] == version]
    if not doomed or (not versioned and not await _is_current(tx, kind, name, rows)):
        return []
    revision = await store.next_revision(tx)
    if not versioned:
        last = rows[-1]["version"] + 1
        await store.insert_document(
            tx, kind, name, last, revision=revision, written=b"", document=b"", by=by, at=at, deleted=True
        )
        return [messages.catalogue_entry(kind, name, last, b"", "", at, deleted=True)]
    for row in doomed:
        await store.set_deleted(tx, kind, name, row["version"], revision, deleted=True)
    left = [row for row in rows if row not in doomed]
    if left:
        body = left[-1]["document"]
        return [messages.catalogue_entry(kind, name, left[-1]["version"], body, sha256(body).hexdigest(), at)]
    return [messages.catalogue_entry(kind, name, doomed[-1]["version"], b"", "", at, deleted=True)]


async def _is_current(tx: Tx, kind: str, name: str, rows: Sequence[Any]) -> bool:
    newest = (await store.document_versions(tx, kind, name))[-1]
    return bool(rows) and newest["version"] == rows[-1]["version"]
