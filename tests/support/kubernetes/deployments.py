"""Deployments and ReplicaSets, without roll-outs in steps: the new pods replace the old ones at once."""

import hashlib
from datetime import UTC, datetime

from support.kubernetes import deletion
from support.kubernetes.api import Api, Call
from support.kubernetes.errors import ApiError, Object
from support.kubernetes.fields import compact
from support.kubernetes.kubelet import condition, record_event
from support.kubernetes.store import Key

HASH = "pod-template-hash"
RETRY_S = 0.2


def sync(api: Api, key: Key) -> float | None:
    deployment = api.store.get(key)
    assert deployment is not None
    meta, spec = deployment["metadata"], deployment["spec"]
    if meta.get("deletionTimestamp"):
        return None
    mark = hashlib.sha256(compact(spec["template"]).encode()).hexdigest()[:10]
    wanted = (("apps", "replicasets"), key[1], f"{key[2]}-{mark}")
    resource = api.served.by_key(wanted[0])
    assert resource is not None
    if wanted not in api.store.objects:
        api.create(Call(resource, key[1], manager="kube-controller-manager"), _replica_set(deployment, mark))
    for owned in sorted(api.store.dependents.get(meta["uid"], ())):
        replica_set = api.store.get(owned)
        if owned[0] != wanted[0] or replica_set is None:
            continue
        replica_set["spec"]["replicas"] = spec["replicas"] if owned == wanted else 0
        api.store.put(owned, replica_set)
    status = (api.store.objects[wanted].get("status")) or {}
    ready = status.get("readyReplicas", 0)
    enough = ready >= spec["replicas"]
    progressing, again_s = _progressing(deployment, wanted[2], enough=enough)
    deployment["status"] = {
        "observedGeneration": meta["generation"],
        **{name: count for name in ("replicas", "updatedReplicas") if (count := status.get("replicas", 0))},
        **{name: ready for name in ("readyReplicas", "availableReplicas") if ready},
        "conditions": [
            _kept(deployment, condition("Available", "True" if enough else "False", reason="MinimumReplicasAvailable")),
            progressing,
        ],
    }
    api.store.put(key, deployment)
    return again_s


def _progressing(deployment: Object, replica_set: str, *, enough: bool) -> tuple[Object, float | None]:
    """How its pods get on, and after how many seconds they are too late."""
    if enough:
        return _kept(deployment, condition("Progressing", reason="NewReplicaSetAvailable")), None
    text = f'ReplicaSet "{replica_set}" has timed out progressing.'
    late = condition("Progressing", "False", reason="ProgressDeadlineExceeded", message=text)
    known = _kept(deployment, late)
    if known is not late:
        return known, None
    begun = _kept(deployment, condition("Progressing", reason="ReplicaSetUpdated"))
    since = datetime.fromisoformat(begun["lastTransitionTime"])
    left_s = deployment["spec"]["progressDeadlineSeconds"] - (datetime.now(UTC) - since).total_seconds()
    return (begun, left_s) if left_s > 0 else (late, None)


def sync_replicas(api: Api, key: Key) -> float | None:
    replica_set = api.store.get(key)
    assert replica_set is not None
    meta, spec = replica_set["metadata"], replica_set["spec"]
    if meta.get("deletionTimestamp"):
        return None
    pods = [(one, api.store.get(one) or {}) for one in sorted(api.store.dependents.get(meta["uid"], ()))]
    live = [(one, pod) for one, pod in pods if not pod["metadata"].get("deletionTimestamp")]
    live = [(one, pod) for one, pod in live if pod["status"].get("phase") not in ("Succeeded", "Failed")]
    resource = api.served.get("", "v1", "pods")
    assert resource is not None
    again = None
    for one, _ in live[spec["replicas"] :]:
        deletion.delete(api.store, resource, one, {}, dry_run=False)
    try:
        for _ in range(spec["replicas"] - len(live)):
            api.create(Call(resource, key[1], manager="kube-controller-manager"), _pod(replica_set))
    except ApiError as error:
        record_event(api, replica_set, "Warning", "FailedCreate", f"Error creating: {error.message}")
        again = RETRY_S
    ready = sum(_is_ready(pod) for _, pod in live[: spec["replicas"]])
    count = min(len(live), spec["replicas"])
    replica_set["status"] = {
        "replicas": count,
        **({"readyReplicas": ready, "availableReplicas": ready} if ready else {}),
    }
    replica_set["status"]["observedGeneration"] = meta["generation"]
    api.store.put(key, replica_set)
    return again


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _kept(deployment: Object, new: Object) -> Object:
    """A condition that says the same as before keeps its time."""
    for old in (deployment.get("status") or {}).get("conditions") or ():
        if all(old.get(name) == new.get(name) for name in ("type", "status", "reason")):
            return dict(old)
    return new


def _replica_set(deployment: Object, mark: str) -> Object:
    meta, spec = deployment["metadata"], deployment["spec"]
    template = spec["template"]
    labels = {**(template["metadata"].get("labels") or {}), HASH: mark}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": meta["name"], "uid": meta["uid"]}
    return {
        "metadata": {
            "name": f"{meta['name']}-{mark}",
            "labels": labels,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "replicas": spec["replicas"],
            "selector": {"matchLabels": {**spec["selector"]["matchLabels"], HASH: mark}},
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
    }


def _pod(replica_set: Object) -> Object:
    meta, template = replica_set["metadata"], replica_set["spec"]["template"]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": meta["name"], "uid": meta["uid"]}
    return {
        "metadata": {
            **template["metadata"],
            "generateName": f"{meta['name']}-",
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": template["spec"],
    }
