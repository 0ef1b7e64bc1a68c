"""The Job controller: pods for Jobs, counted once, and conditions in the order in which they come there."""

import itertools
import secrets
from datetime import UTC, datetime
from typing import Any

from support.kubernetes import deletion
from support.kubernetes.api import Api, Call
from support.kubernetes.defaults import TRACKING
from support.kubernetes.errors import ApiError, Object
from support.kubernetes.kubelet import condition, record_event
from support.kubernetes.ownership import now
from support.kubernetes.store import Key

INDEX = "batch.kubernetes.io/job-completion-index"
RETRY_S = 0.2


def sync(api: Api, key: Key) -> float | None:
    """Bring one Job forward. Return after how many seconds it has to be looked at again."""
    job = api.store.get(key)
    assert job is not None
    if job["metadata"].get("deletionTimestamp"):
        for pod_key, pod in _pods(api, job):
            _release(api, pod_key, pod)
        return None
    status = job.setdefault("status", {})
    if _has(status, "Complete") or _has(status, "Failed"):
        return None
    again: float | None = None
    _count_finished(api, job)
    live = [pod for _, pod in _pods(api, job) if _is_active(pod)]
    ending = [pod for _, pod in _pods(api, job) if _is_live(pod) and pod["metadata"].get("deletionTimestamp")]
    verdict = _verdict(job, live)
    if verdict:
        again = _end(api, job, verdict, live, ending)
    elif job["spec"]["suspend"]:
        _suspend(api, job, live)
    else:
        again = _resume_and_fill(api, job, live, ending)
    _tell(api, key, job)
    return again


def _pods(api: Api, job: Object) -> list[tuple[Key, Object]]:
    found = []
    for key in sorted(api.store.dependents.get(job["metadata"]["uid"], ())):
        item = api.store.get(key)
        if item is not None and key[0] == ("", "pods"):
            found.append((key, item))
    return found


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def _is_live(pod: Object) -> bool:
    return _phase(pod) not in ("Succeeded", "Failed")


def _is_active(pod: Object) -> bool:
    return _is_live(pod) and not pod["metadata"].get("deletionTimestamp")


def _count_finished(api: Api, job: Object) -> None:
    """Each pod is counted once: its finalizer stays until it was."""
    status = job["status"]
    replaced_when_failed = job["spec"]["podReplacementPolicy"] == "Failed"
    for key, pod in _pods(api, job):
        if TRACKING not in (pod["metadata"].get("finalizers") or ()):
            continue
        ending = pod["metadata"].get("deletionTimestamp") is not None
        if _phase(pod) == "Succeeded":
            status["succeeded"] = status.get("succeeded", 0) + 1
            if job["spec"]["completionMode"] == "Indexed":
                done = {*_indexes(status.get("completedIndexes", "")), int(pod["metadata"]["annotations"][INDEX])}
                status["completedIndexes"] = _ranges(sorted(done))
        elif _phase(pod) == "Failed" or (ending and not replaced_when_failed):
            status["failed"] = status.get("failed", 0) + 1
        else:
            continue
        _release(api, key, pod)


def release_orphan(api: Api, key: Key) -> None:
    """Let a pod go that has lost its Job: nobody will count it."""
    pod = api.store.get(key)
    if pod is None or TRACKING not in (pod["metadata"].get("finalizers") or ()):
        return
    owners = [owner["uid"] for owner in pod["metadata"].get("ownerReferences") or () if owner.get("controller")]
    if not any(owner in api.store.by_uid for owner in owners):
        _release(api, key, pod)


def _release(api: Api, key: Key, pod: Object) -> None:
    finalizers = [name for name in pod["metadata"].get("finalizers") or () if name != TRACKING]
    pod["metadata"]["finalizers"] = finalizers
    if not finalizers:
        del pod["metadata"]["finalizers"]
    api.store.put(key, pod)
    deletion.finish_if_free(api.store, key)


def _verdict(job: Object, live: list[Object]) -> tuple[str, str, str] | None:
    """Type, reason and message of how the Job ends, if it does."""
    spec, status = job["spec"], job["status"]
    for kind in ("FailureTarget", "SuccessCriteriaMet"):
        if found := next((one for one in status.get("conditions") or () if one["type"] == kind), None):
            return ("Failed" if kind == "FailureTarget" else "Complete"), found["reason"], found["message"]
    if spec.get("activeDeadlineSeconds") and status.get("startTime") and not spec["suspend"]:
        ran = datetime.now(UTC) - datetime.fromisoformat(status["startTime"])
        if ran.total_seconds() >= spec["activeDeadlineSeconds"]:
            return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    if status.get("failed", 0) > spec["backoffLimit"]:
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    wanted = spec.get("completions")
    done = status.get("succeeded", 0)
    if (wanted is not None and done >= wanted) or (wanted is None and done > 0 and not live):
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    return None


def _end(
    api: Api, job: Object, verdict: tuple[str, str, str], live: list[Object], ending: list[Object]
) -> float | None:
    """First the intent, then the end of what still runs, then the end."""
    kind, reason, message = verdict
    status = job["status"]
    first = "FailureTarget" if kind == "Failed" else "SuccessCriteriaMet"
    if not _has(status, first):
        _add(status, condition(first, reason=reason, message=message))
    for pod in live:
        _delete(api, pod)
    if live or ending:
        return RETRY_S
    _add(status, condition(kind, reason=reason, message=message))
    if kind == "Complete":
        status["completionTime"] = now()
        record_event(api, job, "Normal", "Completed", "Job completed")
    else:
        record_event(api, job, "Warning", reason, message)
    return None


def _suspend(api: Api, job: Object, live: list[Object]) -> None:
    status = job["status"]
    for pod in live:
        _delete(api, pod)
    if not _has(status, "Suspended"):
        _add(status, condition("Suspended", reason="JobSuspended", message="Job suspended"))
        record_event(api, job, "Normal", "Suspended", "Job suspended")
    status.pop("startTime", None)


def _resume_and_fill(api: Api, job: Object, live: list[Object], ending: list[Object]) -> float | None:
    spec, status = job["spec"], job["status"]
    if _has(status, "Suspended"):
        _add(status, condition("Suspended", "False", reason="JobResumed", message="Job resumed"))
        record_event(api, job, "Normal", "Resumed", "Job resumed")
    status.setdefault("startTime", now())
    room = spec["parallelism"] - len(live)
    if spec["podReplacementPolicy"] == "Failed":
        room -= len(ending)
    if spec.get("completions") is not None:
        room = min(room, spec["completions"] - status.get("succeeded", 0) - len(live))
    indexes: list[int | None] = [None] * max(room, 0)
    if spec["completionMode"] == "Indexed":
        taken = {int(pod["metadata"]["annotations"][INDEX]) for pod in (*live, *ending)}
        taken |= set(_indexes(status.get("completedIndexes", "")))
        free = (index for index in range(spec["completions"]) if index not in taken)
        indexes = list(itertools.islice(free, max(room, 0)))
    try:
        for index in indexes:
            _create(api, job, index)
    except ApiError as error:
        record_event(api, job, "Warning", "FailedCreate", f"Error creating: {error.message}")
        return RETRY_S
    seconds: float | None = spec.get("activeDeadlineSeconds")
    return seconds


def _create(api: Api, job: Object, index: int | None) -> None:
    meta, template = job["metadata"], job["spec"]["template"]
    labels = dict(template["metadata"].get("labels") or {})
    annotations = dict(template["metadata"].get("annotations") or {})
    spec: dict[str, Any] = dict(template["spec"])
    name = f"{meta['name']}-"
    if index is not None:
        labels[INDEX] = annotations[INDEX] = str(index)
        name = f"{meta['name']}-{index}-"
        spec.setdefault("hostname", f"{meta['name']}-{index}")
        source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
        variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
        spec["containers"] = [{**item, "env": [*(item.get("env") or ()), variable]} for item in spec["containers"]]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"]}
    pod = {
        "metadata": {
            "name": f"{name[:58]}{secrets.token_hex(3)[:5]}",
            "generateName": name,
            "labels": labels,
            "annotations": annotations,
            "finalizers": [TRACKING],
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": spec,
    }
    resource = api.served.get("", "v1", "pods")
    assert resource is not None
    made = api.create(Call(resource, meta["namespace"], manager="kube-controller-manager"), pod)
    record_event(api, job, "Normal", "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")


def _delete(api: Api, pod: Object) -> None:
    resource = api.served.get("", "v1", "pods")
    assert resource is not None
    key = (resource.store_key, pod["metadata"]["namespace"], pod["metadata"]["name"])
    deletion.delete(api.store, resource, key, {}, dry_run=False)


def _tell(api: Api, key: Key, job: Object) -> None:
    """Write the counts."""
    status = job["status"]
    pods = [pod for _, pod in _pods(api, job)]
    ready = [pod for pod in pods if _is_active(pod) and _has(pod.get("status") or {}, "Ready")]
    counts = {
        "active": sum(_is_active(pod) for pod in pods),
        "terminating": sum(_is_live(pod) and not _is_active(pod) for pod in pods),
    }
    for name, count in counts.items():
        status[name] = count
        if not count:
            del status[name]
    status.update(ready=len(ready), uncountedTerminatedPods={})
    if key in api.store.objects:
        api.store.put(key, job)


def _has(status: Object, kind: str) -> bool:
    return any(one["type"] == kind and one["status"] == "True" for one in status.get("conditions") or ())


def _add(status: Object, new: Object) -> None:
    status["conditions"] = [one for one in status.get("conditions") or () if one["type"] != new["type"]] + [new]


def _indexes(text: str) -> list[int]:
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _ranges(indexes: list[int]) -> str:
    """`1,3-5,7`"""
    runs: list[list[int]] = []
    for index in indexes:
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(
        str(run[0]) if len(run) == 1 else f"{run[0]}{'-' if len(run) > 2 else ','}{run[-1]}" for run in runs
    )
