"""Who made whom between a slot's Job and its pods: by UIDs, since names and labels anybody can write.

What was known once stays known until the slot is gone: an operator may remove what it made before its pods have ended.
"""

from typing import Any, Final

Object = dict[str, Any]
DEPTH: Final = 4
"""Owners above a pod, at most: a Job, a JobSet or RayCluster, the operator's object, the slot's Job."""


def owners_of(item: Object) -> tuple[Object, ...]:
    """Return an object's references to its owners."""
    return tuple(item["metadata"].get("ownerReferences") or ())


class Lineage:
    """Owners by UID, slot by slot."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[str, tuple[Object, ...]]] = {}

    def note(self, slot: str, item: Object) -> None:
        """Remember an object between a slot's Job and its pods."""
        self._owners.setdefault(slot, {})[item["metadata"]["uid"]] = owners_of(item)

    def forget(self, slot: str) -> None:
        self._owners.pop(slot, None)

    def descends(self, pod: Object, job: Object) -> bool:
        """Tell whether a pod is known to have been made by a slot's Job, perhaps through others."""
        known = self._owners.get(job["metadata"]["name"], {})
        owners = owners_of(pod)
        for _ in range(DEPTH):
            if any(owner.get("uid") == job["metadata"]["uid"] for owner in owners):
                return True
            owners = tuple(above for owner in owners for above in known.get(str(owner.get("uid")), ()))
        return False

    def unknown(self, pod: Object, job: Object) -> Object | None:
        """Return the first reference on the way up of which nothing is known; None where the way ends or is known."""
        known = self._owners.get(job["metadata"]["name"], {})
        owners = owners_of(pod)
        for _ in range(DEPTH):
            if any(owner.get("uid") == job["metadata"]["uid"] for owner in owners):
                return None
            lacking = next((owner for owner in owners if str(owner.get("uid")) not in known), None)
            if lacking is not None:
                return lacking if {"kind", "name", "uid"} <= lacking.keys() else None
            owners = tuple(above for owner in owners for above in known[str(owner["uid"])])
        return None
