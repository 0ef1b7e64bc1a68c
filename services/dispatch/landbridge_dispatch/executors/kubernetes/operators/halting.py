"""Has an operator make no more pods. Its object stays, with its slot, until the centre knows the end."""

from typing import Any

from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes.api import Api, Object
from landbridge_dispatch.executors.kubernetes.operators.kinds import KINDS
from landbridge_dispatch.executors.kubernetes.operators.told import told_by


async def halt(api: Api, gang: Object) -> None:
    """Suspend it and take it out of any queue, unless it has ended. Raises ApiError."""
    kind, meta = KINDS[gang["kind"]], gang["metadata"]
    patch: Object = {}
    if names.QUEUE_NAME in (meta.get("labels") or {}):
        patch["metadata"] = {"labels": {names.QUEUE_NAME: None}}
    if not _is_suspended(gang, kind.suspend):
        spec: Any = True
        for name in reversed(kind.suspend):
            spec = {name: spec}
        patch["spec"] = spec
    if not patch or told_by(gang).over or meta.get("deletionTimestamp"):
        return
    patch.setdefault("metadata", {})["uid"] = meta["uid"]
    await api.merge(kind.path(meta["namespace"], meta["name"]), patch)


def _is_suspended(gang: Object, place: tuple[str, ...]) -> bool:
    found: Any = gang.get("spec") or {}
    for name in place:
        found = (found or {}).get(name)
    return found is True
