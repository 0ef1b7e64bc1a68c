"""Objects, their revisions and what happened to them: the etcd of the fake."""

import asyncio
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.kubernetes.errors import ApiError, Object, gone

StoreKey = tuple[str, str]
"""Group and plural."""
Key = tuple[StoreKey, str, str]
"""Resource, namespace (empty for cluster-wide ones) and name."""


@dataclass(frozen=True)
class Change:
    """One commit. `old` None: created; `new` None: deleted."""

    revision: int
    key: Key
    old: Object | None
    new: Object | None


@dataclass
class Store:
    """All of it is synchronous: a request that does not await is a transaction."""

    revision: int = 100
    compacted: int = 100
    objects: dict[Key, Object] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    by_uid: dict[str, Key] = field(default_factory=dict)
    dependents: dict[str, set[Key]] = field(default_factory=dict)
    """Objects by the uid of what owns them."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def get(self, key: Key) -> Object | None:
        found = self.objects.get(key)
        return None if found is None else copy.deepcopy(found)

    def put(self, key: Key, new: Object) -> Object:
        """Write and return it with its resourceVersion; what changes nothing gets none."""
        old = self.objects.get(key)
        new = copy.deepcopy(new)
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"] if old else ""
        if old is not None and old == new:
            return new
        self.revision += 1
        new["metadata"]["resourceVersion"] = str(self.revision)
        self.objects[key] = new
        self._commit(Change(self.revision, key, old, new))
        return copy.deepcopy(new)

    def delete(self, key: Key) -> Object:
        """Remove and return it as it was last, with the revision of its end."""
        old = self.objects.pop(key)
        self.revision += 1
        self._commit(Change(self.revision, key, old, None))
        last = copy.deepcopy(old)
        last["metadata"]["resourceVersion"] = str(self.revision)
        return last

    def _commit(self, change: Change) -> None:
        self.log.append(change)
        for owner in _owners(change.old):
            self.dependents[owner].discard(change.key)
        for owner in _owners(change.new):
            self.dependents.setdefault(owner, set()).add(change.key)
        if change.new is None:
            self.by_uid.pop((change.old or {})["metadata"]["uid"], None)
        else:
            self.by_uid[change.new["metadata"]["uid"]] = change.key
        self._changed.set()
        self._changed = asyncio.Event()

    def changed(self) -> asyncio.Event:
        """Set with the next commit."""
        return self._changed

    def wake(self) -> None:
        """Let those who wait look around."""
        self._changed.set()
        self._changed = asyncio.Event()

    def compact(self) -> None:
        """Forget the past: what reads from before now is told 410."""
        self.compacted = self.revision
        self.log.clear()

    def since(self, revision: int) -> Iterator[Change]:
        """Changes after `revision`, oldest first. Raises 410 for what was compacted."""
        if revision < self.compacted:
            raise too_old(revision, self.compacted)
        low, high = 0, len(self.log)
        while low < high:
            middle = (low + high) // 2
            if self.log[middle].revision <= revision:
                low = middle + 1
            else:
                high = middle
        return iter(self.log[low:])

    def at(self, resource: StoreKey, namespace: str, revision: int) -> list[tuple[Key, Object]]:
        """The objects as they were, in the order of their keys. Raises 410."""
        found = {key: item for key, item in self.objects.items() if _within(key, resource, namespace)}
        if revision < self.revision:
            for change in reversed(list(self.since(revision))):
                if not _within(change.key, resource, namespace):
                    continue
                if change.old is None:
                    found.pop(change.key, None)
                else:
                    found[change.key] = change.old
        return sorted(found.items(), key=lambda entry: entry[0])


def _owners(item: Object | None) -> list[str]:
    return [owner["uid"] for owner in (item or {"metadata": {}})["metadata"].get("ownerReferences") or ()]


def too_old(revision: int, oldest: int) -> ApiError:
    return gone(f"too old resource version: {revision} ({oldest})")


def _within(key: Key, resource: StoreKey, namespace: str) -> bool:
    return key[0] == resource and (not namespace or key[1] == namespace)
