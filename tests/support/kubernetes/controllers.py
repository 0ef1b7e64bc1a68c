"""The controllers beside an API server: garbage, namespaces, Jobs, Deployments, and a kubelet that ends pods."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from support.kubernetes import deletion, deployments, jobs, kubelet, operators
from support.kubernetes.api import Api, Call
from support.kubernetes.store import Change, Key

_SYSTEM_FINALIZERS = {deletion.ORPHAN, deletion.FOREGROUND}


@dataclass
class Controllers:
    """Follow the log of changes and do what belongs to each. Parts can be switched off."""

    api: Api
    kubelet: "kubelet.Kubelet"
    jobs: bool = True
    deployments: bool = True
    garbage: bool = True
    accounts: bool = True
    _at: int = 0
    _again: dict[Key, float] = field(default_factory=dict)

    async def run(self) -> None:
        """Work until cancelled."""
        store = self.api.store
        self._at = store.revision
        for key in list(store.objects):
            self._again[key] = 0.0
        while True:
            changed = store.changed()
            self.step()
            due = min(self._again.values(), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await changed.wait()

    def step(self) -> None:
        """Handle all that has happened; what it causes is handled too."""
        store = self.api.store
        now = asyncio.get_running_loop().time()
        keys: dict[Key, None] = {}
        for key in [key for key, due in self._again.items() if due <= now]:
            del self._again[key]
            keys[key] = None
        for change in list(store.since(max(self._at, store.compacted))):
            self._at = change.revision
            keys[change.key] = None
            keys.update(dict.fromkeys(self._touched(change)))
        for key in keys:
            self._sync(key)

    def _touched(self, change: Change) -> list[Key]:
        """Others that have to look: owners, and what was owned."""
        found: list[Key] = []
        for item in (change.old, change.new):
            for owner in (item or {"metadata": {}})["metadata"].get("ownerReferences") or ():
                if (key := self.api.store.by_uid.get(owner["uid"])) is not None:
                    found.append(key)
        if change.new is None and change.old is not None:
            found += sorted(self.api.store.dependents.get(change.old["metadata"]["uid"], ()))
            if change.key[1]:
                found.append((("", "namespaces"), "", change.key[1]))
        return found

    def _sync(self, key: Key) -> None:
        if key not in self.api.store.objects:
            return
        if self.garbage:
            self._collect(key)
        if key[0] == ("", "namespaces"):
            self._namespace(key)
        sync = self._syncs().get(key[0])
        if sync is not None and key in self.api.store.objects:
            after_s = sync(key)
            if after_s is not None:
                due = asyncio.get_running_loop().time() + after_s
                self._again[key] = min(due, self._again.get(key, due))

    def _syncs(self) -> dict[tuple[str, str], Callable[[Key], float | None]]:
        """What works on objects of each kind now."""
        found: dict[tuple[str, str], Callable[[Key], float | None]] = {("", "pods"): self._pod}
        if self.jobs:
            found["batch", "jobs"] = partial(jobs.sync, self.api)
        if self.deployments:
            found["apps", "deployments"] = partial(deployments.sync, self.api)
            found["apps", "replicasets"] = partial(deployments.sync_replicas, self.api)
        for kind in operators.KINDS:
            found[kind] = partial(operators.sync, self.api)
        return found

    def _pod(self, key: Key) -> float | None:
        if self.jobs:
            jobs.release_orphan(self.api, key)
        return self.kubelet.sync(key) if key in self.api.store.objects else None

    def _collect(self, key: Key) -> None:
        """Delete what has lost all owners; finish deletions that wait for dependents."""
        store = self.api.store
        item = store.objects[key]
        meta = item["metadata"]
        owners = [owner["uid"] for owner in meta.get("ownerReferences") or ()]
        if owners and not any(owner in store.by_uid for owner in owners) and not meta.get("deletionTimestamp"):
            self._delete(key)
            return
        waiting = _SYSTEM_FINALIZERS & set(meta.get("finalizers") or ())
        if not waiting or not meta.get("deletionTimestamp"):
            return
        dependents = sorted(store.dependents.get(meta["uid"], ()))
        if deletion.FOREGROUND in waiting:
            for dependent in dependents:
                if not store.objects[dependent]["metadata"].get("deletionTimestamp"):
                    self._delete(dependent)
            if store.dependents.get(meta["uid"]):
                return
        else:
            for dependent in dependents:
                freed = store.get(dependent)
                assert freed is not None
                references = freed["metadata"]["ownerReferences"]
                freed["metadata"]["ownerReferences"] = [one for one in references if one["uid"] != meta["uid"]]
                store.put(dependent, freed)
        done = store.get(key)
        assert done is not None
        done["metadata"]["finalizers"] = [name for name in done["metadata"]["finalizers"] if name not in waiting]
        store.put(key, done)
        deletion.finish_if_free(store, key)

    def _namespace(self, key: Key) -> None:
        """Every namespace has a default service account; one that ends is emptied and then goes."""
        store, name = self.api.store, key[2]
        item = store.objects[key]
        if not item["metadata"].get("deletionTimestamp"):
            account = (("", "serviceaccounts"), name, "default")
            if self.accounts and account not in store.objects:
                resource = self.api.served.by_key(account[0])
                assert resource is not None
                self.api.create(Call(resource, name), {"metadata": {"name": "default"}})
            return
        for inner in [inner for inner in store.objects if inner[1] == name]:
            if not store.objects[inner]["metadata"].get("deletionTimestamp"):
                self._delete(inner)
        if not any(inner[1] == name for inner in store.objects):
            done = store.get(key)
            assert done is not None
            done["spec"]["finalizers"] = []
            store.put(key, done)
            deletion.finish_if_free(store, key)

    def _delete(self, key: Key) -> None:
        resource = self.api.served.by_key(key[0])
        assert resource is not None
        deletion.delete(self.api.store, resource, key, {"propagationPolicy": "Background"}, dry_run=False)
