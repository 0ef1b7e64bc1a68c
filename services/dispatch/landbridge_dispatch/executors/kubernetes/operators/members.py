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
from landbridge_dispatch.executors.kubernetes.operators.kinds import JOBSET, PYTORCHJOB, RAYJOB, Kind
from landbridge_dispatch.executors.kubernetes.pods import pod_spec
from landbridge_dispatch.executors.kubernetes.resolution import Resolved
from landbridge_dispatch.executors.kubernetes.variables import Gang
from landbridge_dispatch.executors.protocol import Work

MEMBERS: Final = "members"
PYTORCH: Final = "pytorch"
"""The name by which the training operator finds the container that it gives ranks to."""
CONTAINER_OUTPUT: Final = "/proc/1/fd/1"
"""Where a Ray job, which runs beside the container's own program, writes for it to be the container's log."""
_KEEPERS_OWN: Final = frozenset({"wrapper", "keeper", "identity", "tools"})


def gang_object(operator: str, bindings: Bindings, work: Work, found: Resolved, ranks: int) -> Object:
    """Return the operator's object for a gang, still without its owner; Kueue lets it start where a queue is bound."""
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
    name = names.name_of(work.key)
    gang = Gang(ranks=ranks, master=f"{name}-{MEMBERS}-0-0.{name}")
    labels = labels_of(bindings, work)
    job = {
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "parallelism": ranks,
        "completions": ranks,
        "completionMode": "Indexed",
        "template": {"metadata": {"labels": labels}, "spec": pod_spec(bindings, work, found, gang)},
    }
    members = {"name": MEMBERS, "replicas": 1, "template": {"metadata": {"labels": labels}, "spec": job}}
    return JOBSET, {
        "suspend": False,
        "network": {"enableDNSHostnames": True, "subdomain": name, "publishNotReadyAddresses": True},
        "failurePolicy": {"maxRestarts": 0},
        "successPolicy": {"operator": "All"},
        "replicatedJobs": [members],
    }


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
    "kuberay": _rayjob,
}
