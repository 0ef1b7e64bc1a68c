"""Small stand-ins of JobSet's, Trainer's, the training operator's and KubeRay's controllers: what they make and tell.

Only what work runs into: objects and labels by their published names, suspension, one failure ends all, no restarts.
"""

import copy
from typing import Any

from support.kubernetes import deletion
from support.kubernetes.api import Api, Call
from support.kubernetes.errors import ApiError, Object
from support.kubernetes.kubelet import condition, record_event
from support.kubernetes.store import Key

JOBSETS, PYTORCHJOBS = ("jobset.x-k8s.io", "jobsets"), ("kubeflow.org", "pytorchjobs")
TRAINJOBS, RUNTIMES = ("trainer.kubeflow.org", "trainjobs"), ("trainer.kubeflow.org", "trainingruntimes")
RAYJOBS, RAYCLUSTERS = ("ray.io", "rayjobs"), ("ray.io", "rayclusters")
ENTRYPOINT, EXIT_CODE = "tests/entrypoint", "tests/exit-code"
"""What the node is to run beside a head's own program, and how that ended."""
RETRY_S = 0.2
TERMINAL = ("Succeeded", "Failed")
_KINDS = {
    "jobset": (("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"),),
    "kubeflow-training": (("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"),),
    "kubeflow-trainer": (
        ("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob"),
        ("trainer.kubeflow.org", "v1alpha1", "trainingruntimes", "TrainingRuntime"),
        ("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"),
    ),
    "gateway-api": (("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute"),),
    "kuberay": (("ray.io", "v1", "rayjobs", "RayJob"), ("ray.io", "v1", "rayclusters", "RayCluster")),
}


def definitions(operator: str) -> list[Object]:
    """The CustomResourceDefinitions by which an operator is found."""
    return [
        {
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind},
                "versions": [{"name": version, "served": True, "storage": True, "subresources": {"status": {}}}],
            },
        }
        for group, version, plural, kind in _KINDS[operator]
    ]


def sync(api: Api, key: Key) -> float | None:
    """Bring one operator's object forward. Return after how many seconds it has to be looked at again."""
    item = api.store.get(key)
    assert item is not None
    if item["metadata"].get("deletionTimestamp"):
        return None
    item.setdefault("status", {})
    try:
        return _SYNCS[key[0]](api, key, item)
    except ApiError as error:
        record_event(api, item, "Warning", "FailedCreate", f"Error creating: {error.message}")
        return RETRY_S


# -- JobSet --------------------------------------------------------------------------------------------------------


def _jobset(api: Api, key: Key, item: Object) -> float | None:
    spec, status = item["spec"], item["status"]
    children = {child["metadata"]["name"]: child for _, child in _owned(api, item, ("batch", "jobs"))}
    if _has(status, "Completed") or _has(status, "Failed"):
        for name, child in children.items():
            if not _ended(child):
                _delete(api, (("batch", "jobs"), key[1], name))
        return None
    _fill_set(api, item, children)
    if any(_has(child.get("status") or {}, "Failed") for child in children.values()):
        _tell(status, "Failed", "FailedJobs", "jobset failed due to one or more job failures")
    elif children and all(_has(child.get("status") or {}, "Complete") for child in children.values()):
        _tell(status, "Completed", "AllJobsCompleted", "jobset completed successfully")
    elif spec.get("suspend"):
        _tell(status, "Suspended", "SuspendedJobs", "jobset is suspended")
    elif _has(status, "Suspended"):
        _tell(status, "Suspended", "ResumeJobs", "jobset is resumed", holds=False)
    api.store.put(key, item)
    return None


def _fill_set(api: Api, item: Object, children: dict[str, Object]) -> None:
    meta, suspended = item["metadata"], item["spec"].get("suspend", False)
    for group in item["spec"]["replicatedJobs"]:
        for index in range(group.get("replicas", 1)):
            name = f"{meta['name']}-{group['name']}-{index}"
            if name not in children:
                _create(api, "batch", "v1", "jobs", _child(item, group, name, index))
            elif children[name]["spec"]["suspend"] is not suspended:
                children[name]["spec"]["suspend"] = suspended
                api.store.put((("batch", "jobs"), meta["namespace"], name), children[name])


def _child(item: Object, group: Object, name: str, index: int) -> Object:
    meta = item["metadata"]
    own = {
        "jobset.sigs.k8s.io/jobset-name": meta["name"],
        "jobset.sigs.k8s.io/replicatedjob-name": group["name"],
        "jobset.sigs.k8s.io/job-index": str(index),
    }
    template = copy.deepcopy(group["template"])
    labels = template.get("metadata", {}).get("labels") or {}
    spec: dict[str, Any] = template["spec"]
    spec["suspend"] = item["spec"].get("suspend", False)
    pod = spec["template"]
    pod["metadata"] = {"labels": {**(pod.get("metadata", {}).get("labels") or {}), **own}}
    if item["spec"].get("network", {}).get("enableDNSHostnames", True):
        pod["spec"]["subdomain"] = item["spec"].get("network", {}).get("subdomain") or meta["name"]
    return {
        "metadata": {
            "name": name, "namespace": meta["namespace"], "labels": {**labels, **own},
            "ownerReferences": [_owner(item)],
        },
        "spec": spec,
    }  # fmt: skip


# -- Trainer -------------------------------------------------------------------------------------------------------


def _trainjob(api: Api, key: Key, item: Object) -> float | None:
    """Its JobSet is the runtime's template as it is, with the variables of `torchrun`; it tells what that tells."""
    meta, spec, status = item["metadata"], item["spec"], item["status"]
    if _has(status, "Complete") or _has(status, "Failed"):
        return None
    suspended = spec.get("suspend", False)
    runtime = api.store.get((RUNTIMES, meta["namespace"], spec["runtimeRef"]["name"]))
    if runtime is None:
        record_event(api, item, "Warning", "TrainJobResourcesCreationFailed", "TrainingRuntime is not found")
        return RETRY_S
    place = (JOBSETS, meta["namespace"], meta["name"])
    made = api.store.get(place)
    if made is None:
        _create(api, "jobset.x-k8s.io", "v1alpha2", "jobsets", _set_of(item, runtime))
    elif made["spec"].get("suspend", False) is not suspended:
        made["spec"]["suspend"] = suspended
        api.store.put(place, made)
    if suspended:
        _tell(status, "Suspended", "Suspended", "TrainJob is suspended")
    elif _has(status, "Suspended"):
        _tell(status, "Suspended", "Resumed", "TrainJob is resumed", holds=False)
    for theirs, ours in (("Completed", "Complete"), ("Failed", "Failed")):
        if made is not None and _has(made.get("status") or {}, theirs):
            _tell(status, ours, "AllJobsCompleted" if ours == "Complete" else "FailedJobs", f"jobset: {theirs}")
    api.store.put(key, item)
    return None


def _set_of(item: Object, runtime: Object) -> Object:
    meta, template = item["metadata"], copy.deepcopy(runtime["spec"]["template"])
    for group in template["spec"]["replicatedJobs"]:
        if group["template"]["metadata"]["labels"].get("trainer.kubeflow.org/trainjob-ancestor-step") == "trainer":
            _told_to_torchrun(item, group)
    return {
        "metadata": {
            "name": meta["name"], "namespace": meta["namespace"],
            "labels": template.get("metadata", {}).get("labels") or {}, "ownerReferences": [_owner(item)],
        },
        "spec": {**template["spec"], "suspend": item["spec"].get("suspend", False)},
    }  # fmt: skip


def _told_to_torchrun(item: Object, group: Object) -> None:
    name, count, job = item["metadata"]["name"], item["spec"]["trainer"]["numNodes"], group["template"]["spec"]
    job["parallelism"] = job["completions"] = count
    [container] = [one for one in job["template"]["spec"]["containers"] if one["name"] == "node"]
    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    container["env"] = [
        *container.get("env", ()),
        {"name": "PET_NNODES", "value": str(count)},
        {"name": "PET_NPROC_PER_NODE", "value": "1"},
        {"name": "PET_NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": index}}},
        {"name": "PET_MASTER_ADDR", "value": f"{name}-node-0-0.{name}"},
        {"name": "PET_MASTER_PORT", "value": "29400"},
    ]
    container["ports"] = [*container.get("ports", ()), {"containerPort": 29400}]


# -- training operator ---------------------------------------------------------------------------------------------


def _pytorchjob(api: Api, key: Key, item: Object) -> float | None:
    meta, spec, status = item["metadata"], item["spec"], item["status"]
    pods = {pod["metadata"]["name"]: pod for _, pod in _owned(api, item, ("", "pods"))}
    policy = spec["runPolicy"]
    if _has(status, "Succeeded") or _has(status, "Failed"):
        if policy.get("cleanPodPolicy", "None") == "Running":
            _delete_all(api, [pod for pod in pods.values() if not _over(pod)])
        return None
    if policy.get("suspend"):
        _delete_all(api, [pod for pod in pods.values() if not _over(pod)])
        _tell(status, "Suspended", "PyTorchJobSuspended", "PyTorchJob is suspended.")
        api.store.put(key, item)
        return None
    _fill_roles(api, item, pods)
    if any(pod["status"].get("phase") == "Failed" for pod in pods.values()):
        _tell(status, "Failed", "PyTorchJobFailed", f"PyTorchJob {meta['name']} is failed.")
    elif (pods.get(f"{meta['name']}-master-0") or {"status": {}})["status"].get("phase") == "Succeeded":
        _tell(status, "Succeeded", "PyTorchJobSucceeded", f"PyTorchJob {meta['name']} is successfully completed.")
    elif any(pod["status"].get("phase") == "Running" for pod in pods.values()):
        _tell(status, "Running", "PyTorchJobRunning", f"PyTorchJob {meta['name']} is running.")
    if _has(status, "Suspended"):
        _tell(status, "Suspended", "PyTorchJobResumed", "PyTorchJob is resumed.", holds=False)
    api.store.put(key, item)
    return None


def _fill_roles(api: Api, item: Object, pods: dict[str, Object]) -> None:
    replicas = item["spec"]["pytorchReplicaSpecs"]
    total = sum(role["replicas"] for role in replicas.values())
    for role, wanted in replicas.items():
        for index in range(wanted["replicas"]):
            name = f"{item['metadata']['name']}-{role.lower()}-{index}"
            if name not in pods:
                _create(api, "", "v1", "pods", _member(item, role, index, total, name))


def _member(item: Object, role: str, index: int, total: int, name: str) -> Object:
    meta = item["metadata"]
    template = copy.deepcopy(item["spec"]["pytorchReplicaSpecs"][role]["template"])
    rank = index + (role == "Worker")
    told = {
        "PYTHONUNBUFFERED": "1", "MASTER_ADDR": f"{meta['name']}-master-0", "MASTER_PORT": "29500",
        "WORLD_SIZE": str(total), "RANK": str(rank),
    }  # fmt: skip
    for container in template["spec"]["containers"]:
        container["env"] = [*container.get("env", ()), *({"name": key, "value": told[key]} for key in told)]
    labels = {
        **(template["metadata"].get("labels") or {}),
        "training.kubeflow.org/job-name": meta["name"],
        "training.kubeflow.org/replica-type": role.lower(),
        "training.kubeflow.org/replica-index": str(index),
    }
    owner = [_owner(item)]
    return {
        "metadata": {"name": name, "namespace": meta["namespace"], "labels": labels, "ownerReferences": owner},
        "spec": {**template["spec"], "restartPolicy": item["spec"]["pytorchReplicaSpecs"][role]["restartPolicy"]},
    }


# -- KubeRay -------------------------------------------------------------------------------------------------------


def _rayjob(api: Api, key: Key, item: Object) -> float | None:
    meta, spec, status = item["metadata"], item["spec"], item["status"]
    clusters = dict(_owned(api, item, RAYCLUSTERS))
    stage = status.get("jobDeploymentStatus", "")
    if stage in ("Complete", "Failed") or spec.get("suspend"):
        if stage in ("Complete", "Failed") and not spec.get("shutdownAfterJobFinishes"):
            return None
        for place in clusters:
            _delete(api, place)
        if stage not in ("Complete", "Failed"):
            status["jobDeploymentStatus"] = "Suspending" if clusters else "Suspended"
            api.store.put(key, item)
        return RETRY_S if clusters else None
    if not clusters:
        labels = {**(meta.get("labels") or {}), "ray.io/originated-from-cr-name": meta["name"]}
        name = status.get("rayClusterName") or f"{meta['name']}-abcde"
        cluster = {
            "metadata": {
                "name": name, "namespace": meta["namespace"], "labels": labels, "ownerReferences": [_owner(item)],
            },
            "spec": copy.deepcopy(spec["rayClusterSpec"]),
        }  # fmt: skip
        status.update(jobDeploymentStatus="Initializing", rayClusterName=name, jobStatus="")
        api.store.put(key, item)
        _create(api, "ray.io", "v1", "rayclusters", cluster)
        return RETRY_S
    [cluster] = clusters.values()
    head = next((pod for _, pod in _owned(api, cluster, ("", "pods")) if _is_head(pod)), None)
    if (cluster.get("status") or {}).get("state") != "ready" and stage != "Running":
        return RETRY_S
    _follow_driver(api, item, head)
    api.store.put(key, item)
    return RETRY_S


def _follow_driver(api: Api, item: Object, head: Object | None) -> None:
    status = item["status"]
    annotations = {} if head is None else head["metadata"].get("annotations") or {}
    if status.get("jobDeploymentStatus") != "Running" and head is not None:
        head["metadata"]["annotations"] = {**annotations, ENTRYPOINT: item["spec"]["entrypoint"]}
        api.store.put((("", "pods"), head["metadata"]["namespace"], head["metadata"]["name"]), head)
        status.update(jobDeploymentStatus="Running", jobStatus="RUNNING")
    elif head is None or _over(head):
        status.update(jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message="the head is lost")
    elif (code := annotations.get(EXIT_CODE)) is not None:
        done = code == "0"
        status.update(jobDeploymentStatus="Complete" if done else "Failed", jobStatus="SUCCEEDED" if done else "FAILED")
        status["message"] = "Job finished successfully." if done else f"driver exited with code {code}"
        if not done:
            status["reason"] = "AppFailed"


def _raycluster(api: Api, key: Key, item: Object) -> float | None:
    meta, spec, status = item["metadata"], item["spec"], item["status"]
    pods = {pod["metadata"]["name"]: pod for _, pod in _owned(api, item, ("", "pods"))}
    wanted = {f"{meta['name']}-head": ("head", spec["headGroupSpec"])}
    for group in spec.get("workerGroupSpecs") or ():
        for index in range(group["replicas"]):
            wanted[f"{meta['name']}-{group['groupName']}-{index}"] = ("worker", group)
    for name, (kind, group) in wanted.items():
        if name not in pods:
            _create(api, "", "v1", "pods", _node(item, kind, group, name))
    if len(pods) == len(wanted) and all(pod["status"].get("phase") == "Running" for pod in pods.values()):
        status["state"] = "ready"
        api.store.put(key, item)
    return None


def _node(cluster: Object, kind: str, group: Object, name: str) -> Object:
    meta, template = cluster["metadata"], copy.deepcopy(group["template"])
    labels = {**(template["metadata"].get("labels") or {}), "ray.io/cluster": meta["name"], "ray.io/node-type": kind}
    container = template["spec"]["containers"][0]
    assert not {"command", "args"} & container.keys(), "KubeRay would put its own program beside it"
    container["command"], container["args"] = ["/bin/sh"], ["-c", "exec sleep 3600"]
    owner = [_owner(cluster)]
    return {
        "metadata": {"name": name, "namespace": meta["namespace"], "labels": labels, "ownerReferences": owner},
        "spec": template["spec"],
    }


def _is_head(pod: Object) -> bool:
    return bool(pod["metadata"]["labels"].get("ray.io/node-type") == "head")


_SYNCS = {
    JOBSETS: _jobset,
    TRAINJOBS: _trainjob,
    PYTORCHJOBS: _pytorchjob,
    RAYJOBS: _rayjob,
    RAYCLUSTERS: _raycluster,
}
KINDS = tuple(_SYNCS)
"""What is brought forward here."""


# -- what all have in common ---------------------------------------------------------------------------------------


def _owner(item: Object) -> Object:
    meta = item["metadata"]
    about = {"apiVersion": item["apiVersion"], "kind": item["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {**about, "controller": True, "blockOwnerDeletion": True}


def _owned(api: Api, item: Object, resource: tuple[str, str]) -> list[tuple[Key, Object]]:
    keys = sorted(api.store.dependents.get(item["metadata"]["uid"], ()))
    return [(key, found) for key in keys if key[0] == resource and (found := api.store.get(key)) is not None]


def _create(api: Api, group: str, version: str, plural: str, item: Object) -> None:
    resource = api.served.get(group, version, plural)
    assert resource is not None
    api.create(Call(resource, item["metadata"]["namespace"], manager="operator"), item)


def _delete(api: Api, key: Key) -> None:
    resource = api.served.by_key(key[0])
    assert resource is not None
    deletion.delete(api.store, resource, key, {"propagationPolicy": "Background"}, dry_run=False)


def _delete_all(api: Api, pods: list[Object]) -> None:
    for pod in pods:
        if not pod["metadata"].get("deletionTimestamp"):
            _delete(api, (("", "pods"), pod["metadata"]["namespace"], pod["metadata"]["name"]))


def _over(pod: Object) -> bool:
    return pod["status"].get("phase") in TERMINAL


def _ended(job: Object) -> bool:
    return _has(job.get("status") or {}, "Complete") or _has(job.get("status") or {}, "Failed")


def _has(status: Object, kind: str) -> bool:
    return any(one["type"] == kind and one["status"] == "True" for one in status.get("conditions") or ())


def _tell(status: Object, kind: str, reason: str, message: str, *, holds: bool = True) -> None:
    kept = [one for one in status.get("conditions") or () if one["type"] != kind]
    known = next((one for one in status.get("conditions") or () if one["type"] == kind), None)
    wanted = condition(kind, "True" if holds else "False", reason=reason, message=message)
    same = known is not None and all(known.get(name) == wanted.get(name) for name in ("status", "reason", "message"))
    status["conditions"] = [*kept, known if same else wanted]
