"""The catalogue as submissions are judged by it: held in memory, brought up to date inside each transaction."""

import json
from collections.abc import Mapping
from typing import Any, Final

from landbridge.domain.documents import KINDS, Catalogue
from landbridge.store import Tx
from landbridge_intake import store

_RENDERED: Final = ("project", "queue", "preset", "component")
VERSIONED: Final = frozenset(kind.slug for kind in KINDS.values() if kind.versioned)


class CatalogueView:
    """The catalogue at one revision. Replicas agree because each asks for the revision in its own transaction."""

    def __init__(self) -> None:
        self.catalogue = Catalogue()
        self.revision = -1
        self._documents: dict[tuple[str, str], dict[int, Mapping[str, Any]]] = {}

    async def refresh(self, tx: Tx) -> None:
        """Read what has changed since the last refresh. What was read is kept whether the transaction is or not.

        A revision that is not committed is not visible here, unless this transaction made it; then it must not fail
        afterwards without `forget`.
        """
        newest = await store.revision(tx)
        if newest == self.revision:
            return
        rows = await store.changed_documents(tx, self.revision)
        if newest <= self.revision:
            return  # another transaction of this process was faster and saw more
        for row in rows:
            self._take(row[0], row[1], row[2], deleted=row[3], document=row[4])
        self.revision = newest
        self.catalogue = self._build()

    def forget(self) -> None:
        """Read everything again at the next refresh."""
        self._documents.clear()
        self.revision = -1

    def _take(self, kind: str, name: str, version: int, *, deleted: bool, document: bytes) -> None:
        if kind not in _RENDERED:
            return
        versions = self._documents.setdefault((kind, name), {})
        if kind not in VERSIONED:
            versions.clear()  # only the newest counts
        versions.pop(version, None)
        if not deleted:
            versions[version] = json.loads(document)

    def users_of(self, kind: str, name: str) -> list[str]:
        """Name the documents that refer to this one, such as `project retail-eu`."""
        users: list[str] = []
        for other, project in self.catalogue.projects.items():
            spec = project.get("spec") or {}
            presets: list[str | None] = [
                str(each).partition("@")[0] for each in (spec.get("defaults") or {}).get("presets") or ()
            ]
            named: dict[str, list[str | None]] = {
                "queue": [spec.get("defaultQueue")],
                "policy": [spec.get("policy")],
                "preset": presets,
            }
            if name in named.get(kind, []):
                users.append(f"project {other}")
        for other, queue in self.catalogue.queues.items():
            if kind == "queue" and (queue.get("spec") or {}).get("parent") == name:
                users.append(f"queue {other}")
        return users

    def submissions_per_minute(self, project: str) -> int | None:
        """Return how many operations a project may submit a minute over HTTP; None for any number."""
        return self._limit(project, "submissionsPerMinute")

    def queued(self, project: str) -> int | None:
        """Return how many operations of a project may wait to be placed for the first time; None for any number."""
        return self._limit(project, "queued")

    def _limit(self, project: str, name: str) -> int | None:
        limits = (self.catalogue.projects.get(project, {}).get("spec") or {}).get("limits") or {}
        found: int | None = limits.get(name)
        return found

    def _build(self) -> Catalogue:
        tables: dict[str, dict[str, Any]] = {kind: {} for kind in _RENDERED}
        for (kind, name), versions in self._documents.items():
            if versions:
                tables[kind][name] = dict(versions) if kind in VERSIONED else versions[max(versions)]
        return Catalogue(tables["project"], tables["queue"], tables["preset"], tables["component"])
