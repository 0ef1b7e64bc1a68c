"""Deleting: preconditions, grace, finalizers and what becomes of dependents."""

from datetime import UTC, datetime, timedelta

from support.kubernetes.errors import Object, conflict
from support.kubernetes.resources import Resource
from support.kubernetes.store import Key, Store

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_FINISHED = ("Succeeded", "Failed")


def delete(store: Store, resource: Resource, key: Key, options: Object, *, dry_run: bool) -> tuple[Object, bool]:
    """Delete or mark for deletion. Return the object and whether it is gone. Raises a 409 for preconditions."""
    item = store.objects[key]
    meta = item["metadata"]
    _check(resource, meta, options.get("preconditions") or {})
    policy = options.get("propagationPolicy") or _policy(resource, options)
    new = store.get(key) or {}
    finalizers = set(new["metadata"].get("finalizers") or ()) - {ORPHAN, FOREGROUND}
    if policy == "Orphan":
        finalizers.add(ORPHAN)
    elif policy == "Foreground":
        finalizers.add(FOREGROUND)
    grace = _grace(resource, item, options)
    if resource.store_key == ("", "namespaces"):
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
    elif not finalizers and grace == 0:
        return (new, True) if dry_run else (store.delete(key), True)
    new["metadata"]["finalizers"] = sorted(finalizers)
    if not finalizers:
        del new["metadata"]["finalizers"]
    _mark(new, grace)
    return (new, False) if dry_run else (store.put(key, new), False)


def _mark(item: Object, grace: int) -> None:
    meta = item["metadata"]
    before = meta.get("deletionGracePeriodSeconds")
    if meta.get("deletionTimestamp") is None or (before is not None and grace < before):
        at = datetime.now(UTC) + timedelta(seconds=grace)
        meta["deletionTimestamp"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        meta["deletionGracePeriodSeconds"] = grace
        if "generation" in meta:
            meta["generation"] += 1


def _policy(resource: Resource, options: Object) -> str:
    if options.get("orphanDependents") is not None:
        return "Orphan" if options["orphanDependents"] else "Background"
    # Deleting a Job leaves its pods, unless one says otherwise: so it is there, for compatibility.
    return "Orphan" if resource.store_key == ("batch", "jobs") else "Background"


def _grace(resource: Resource, item: Object, options: Object) -> int:
    """Only pods that a node holds end gracefully."""
    if resource.store_key != ("", "pods") or not item["spec"].get("nodeName"):
        return 0
    if (item.get("status") or {}).get("phase") in _FINISHED:
        return 0
    wanted = options.get("gracePeriodSeconds")
    return int(item["spec"].get("terminationGracePeriodSeconds", 30) if wanted is None else wanted)


def _check(resource: Resource, meta: Object, wanted: Object) -> None:
    for name, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        if wanted.get(field) and wanted[field] != meta[field]:
            why = f"Precondition failed: {name} in precondition: {wanted[field]}, {name} in object meta: {meta[field]}"
            raise conflict(resource.qualified, meta["name"], why)


def finish_if_free(store: Store, key: Key) -> bool:
    """Remove an object whose deletion waited for finalizers only."""
    item = store.objects.get(key)
    if item is None:
        return False
    meta = item["metadata"]
    if meta.get("deletionTimestamp") is None or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    if key[0] == ("", "namespaces") and (item.get("spec") or {}).get("finalizers"):
        return False
    store.delete(key)
    return True
