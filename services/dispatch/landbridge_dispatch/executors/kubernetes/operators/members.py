"""Pods of gangs as each operator wants them, and the object that makes them. Pure.

No operator starts anything anew here: retries are the centre's, each with an epoch of its own.
"""

import copy
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final

from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes import variables as told
from landbridge_dispatch.executors.kubernetes.objects import Object, labels_of, part
from landbridge_dispatch.executors.kubernetes.operators.kinds import (
    JOBSET,
    PYTORCHJOB,
    RAYJOB,
    TRAININGRUNTIME,
    TRAINJOB,
    Kind,
)
from landbridge_dispatch.executors.kubernetes.pods import pod_spec
from landbridge_dispatch.executors.kubernetes.resolution import Resolved
from landbridge_dispatch.executors.kubernetes.variables import Gang
from landbridge_dispatch.executors.protocol import Work

MEMBERS: Final = "members"
PYTORCH: Final = "pytorch"
"""The name by which the training operator finds the container that it gives ranks to."""
TRAINER_NODE: Final = names.TRAINER_CONTAINER
TRAINER_STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
CONTAINER_OUTPUT: Final = "/proc/1/fd/1"
"""Where a Ray job, which runs beside the container's own program, writes for it to be the container's log."""
_KEEPERS_OWN: Final = frozenset({"wrapper", "keeper", "identity", "tools"})


def gang_objects(operator: str, bindings: Bindings, work: Work, found: Resolved, ranks: int) -> list[Object]:
    """Return what is made for a gang, still without its owner: the operator's object last, after what it refers to."""
    before = [_runtime(bindings, work, found, ranks)] if operator == TRAINJOB.operator else []
    return [*before, _gang_object(operator, bindings, work, found, ranks)]


def _gang_object(operator: str, bindings: Bindings, work: Work, found: Resolved, ranks: int) -> Object:
    """Return the operator's object; Kueue lets it start where a queue is bound."""
    kind, spec = _MAKERS[operator](bindings, work, found, ranks)
    made = part(kind.api_version, kind.kind, bindings, work, found, spec)
    if queue := bindings.kubernetes.local_queue:
        made["metadata"]["labels"] |= {names.QUEUE_NAME: queue}
        place = made["spec"]
        for name in kind.suspend[:-1]:
            place = place[name]
        place[kind.suspend[-1]] = True
    return made


def _jobset(bindings: Bindings, work: Work, found: Resolved, ranks: int) -> tuple[Kind, Object]:
    """Put one Indexed Job within; its pods are named after the set, and found in a Service that the operator makes."""
    return JOBSET, {"suspend": False, **_set_of(bindings, work, found, ranks, MEMBERS, names.CONTAINER)}


def _set_of(
    bindings: Bindings, work: Work, found: Resolved, ranks: int, group: str, container: str, **marks: str
) -> Object:
    """Return the spec of a JobSet with one group of members. `marks`: labels of its Job."""
    name = names.name_of(work.key)
    gang = Gang(ranks=ranks, container=container, master=f"{name}-{group}-0-0.{name}")
    labels = labels_of(bindings, work)
    job = {
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "parallelism": ranks,
        "completions": ranks,
        "completionMode": "Indexed",
        "template": {"metadata": {"labels": labels}, "spec": pod_spec(bindings, work, found, gang)},
    }
    members = {"name": group, "replicas": 1, "template": {"metadata": {"labels": labels | marks}, "spec": job}}
    return {
        "network": {"enableDNSHostnames": True, "subdomain": name, "publishNotReadyAddresses": True},
        "failurePolicy": {"maxRestarts": 0},
        "successPolicy": {"operator": "All"},
        "replicatedJobs": [members],
    }


def _runtime(bindings: Bindings, work: Work, found: Resolved, ranks: int) -> Object:
    """Return what a TrainJob takes its JobSet from, as it is: made for this one, since it says what runs.

    The names are those by which Trainer finds where to put the variables of `torchrun`.
    """
    marks = {TRAINER_STEP: "trainer"}
    template = {
        "metadata": {"labels": labels_of(bindings, work)},
        "spec": _set_of(bindings, work, found, ranks, TRAINER_NODE, TRAINER_NODE, **marks),
    }
    spec = {"mlPolicy": {"numNodes": ranks, "torch": {}}, "template": template}
    return part(TRAININGRUNTIME.api_version, TRAININGRUNTIME.kind, bindings, work, found, spec)


def _trainjob(_bindings: Bindings, work: Work, _found: Resolved, ranks: int) -> tuple[Kind, Object]:
    """Refer to the runtime that was made for it; everything else stands there."""
    runtime = {"apiGroup": TRAININGRUNTIME.group, "kind": TRAININGRUNTIME.kind, "name": names.name_of(work.key)}
    return TRAINJOB, {"suspend": False, "runtimeRef": runtime, "trainer": {"numNodes": ranks}}


def _pytorchjob(bindings: Bindings, work: Work, found: Resolved, ranks: int) -> tuple[Kind, Object]:
    """Make the first rank the master, the others workers; the operator tells each where the master is.

    It calls the job done when the master is: workers that still run are left alone, and are ended by the reconciler
    where the gang has failed.
    """
    gang = Gang(ranks=ranks, container=PYTORCH, tells_ranks=False)
    pod = pod_spec(bindings, work, found, gang)
    ports = pod["containers"][0].setdefault("ports", [])
    ports.append({"name": "pytorchjob-port", "containerPort": told.MASTER_PORT})
    template = {"metadata": {"labels": labels_of(bindings, work)}, "spec": pod}
    replicas = {"Master": 1, "Worker": ranks - 1}
    return PYTORCHJOB, {
        "runPolicy": {"suspend": False, "cleanPodPolicy": "None", "backoffLimit": 0},
        "pytorchReplicaSpecs": {
            role: {"replicas": count, "restartPolicy": "Never", "template": copy.deepcopy(template)}
            for role, count in replicas.items()
            if count
        },
    }


def _rayjob(bindings: Bindings, work: Work, found: Resolved, ranks: int) -> tuple[Kind, Object]:
    """Have the wrapper be the job that is submitted: it takes the slot on the head. Workers only follow the head.

    Their programs are KubeRay's own, so that command and arguments of the containers are left to it.
    """
    head = pod_spec(bindings, work, found, Gang(ranks=1))
    [container] = head["containers"]
    words = [_spoken(word) for word in (*container.pop("command"), *container.pop("args"))]
    _temporary(container)
    labels = labels_of(bindings, work)
    cluster: Object = {
        "headGroupSpec": {
            "rayStartParams": {"dashboard-host": "0.0.0.0"},  # noqa: S104 - KubeRay submits from elsewhere
            "template": {"metadata": {"labels": labels}, "spec": head},
        }
    }
    if ranks > 1:
        cluster["workerGroupSpecs"] = [
            {
                "groupName": MEMBERS,
                **dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), ranks - 1),
                "rayStartParams": {},
                "template": {"metadata": {"labels": labels}, "spec": _worker(head)},
            }
        ]
    return RAYJOB, {
        "suspend": False,
        "entrypoint": f"{shlex.join(words)} >{CONTAINER_OUTPUT} 2>&1",
        "submissionMode": "HTTPMode",
        "backoffLimit": 0,
        # KubeRay suspends only what it also shuts down; what the wrapper saw is told when the head has ended.
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": 0,
        "rayClusterSpec": cluster,
    }


def _spoken(word: str) -> str:
    """Return a word as the shell of the head gets it: what the kubelet would have expanded there, nobody does here."""
    return word.replace("$$", "$")


def _temporary(container: Object) -> None:
    # Ray puts sockets below TMPDIR, which is a long path here; the names of sockets are short.
    if not any(entry["name"] == "RAY_TMPDIR" for entry in container["env"]):
        container["env"].append({"name": "RAY_TMPDIR", "value": "/tmp"})  # noqa: S108 - of the container


def _worker(head: Mapping[str, Any]) -> Object:
    """Return the pod of a worker: as the head's, without what only the wrapper needs."""
    pod: Object = copy.deepcopy(dict(head))
    pod.pop("initContainers", None)
    pod["volumes"] = [volume for volume in pod["volumes"] if volume["name"] not in _KEEPERS_OWN - {"identity"}]
    [container] = pod["containers"]
    container["env"] = [entry for entry in container["env"] if not entry["name"].startswith(told.WRAPPER)]
    container["volumeMounts"] = [
        mount for mount in container["volumeMounts"] if mount["name"] not in _KEEPERS_OWN - {"identity"}
    ]
    return pod


_MAKERS: Final[Mapping[str, Callable[[Bindings, Work, Resolved, int], tuple[Kind, Object]]]] = {
    "jobset": _jobset,
    "kubeflow-training": _pytorchjob,
    "kubeflow-trainer": _trainjob,
    "kuberay": _rayjob,
}
