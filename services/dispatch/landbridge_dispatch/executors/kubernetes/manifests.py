"""The objects of a slot. The Job stands for the slot whatever the work's type: its name is what is taken once. Pure.

It is created suspended, which occupies the slot and starts nothing; a tombstone is one that stays suspended. No object
is removed by a time to live: the slot goes when the centre knows its end, and everything else goes with it.
"""

from typing import Final

from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.objects import Object, labels_of, part
from landbridge_dispatch.executors.kubernetes.operators.kinds import RAYJOB
from landbridge_dispatch.executors.kubernetes.operators.members import gang_objects
from landbridge_dispatch.executors.kubernetes.pods import DEVICES, pod_spec, port_name
from landbridge_dispatch.executors.kubernetes.resolution import Resolved
from landbridge_dispatch.executors.kubernetes.routes import endpoint_of, route_of
from landbridge_dispatch.executors.kubernetes.variables import Gang, memory_bytes
from landbridge_dispatch.executors.local.build import criterion_of
from landbridge_dispatch.executors.protocol import Burial, RefusalCode, RefusedError, Work
from landbridge_dispatch.specification import STOP_GRACE_MS, milliseconds

RANKS_MAX: Final = 1000
GANG_WITHIN_MS: Final = 600_000
_TOMBSTONE_IMAGE: Final = "landbridge.invalid/tombstone@sha256:" + "0" * 64


def ranks_of(work: Work) -> int:
    """Return how many pods work together. Raises RefusedError."""
    spec = work.view.spec
    if spec.type == "service" and not spec.ports:
        raise RefusedError(RefusalCode.WORKLOAD, "a service needs a port that shows when it is ready: state ports")
    if spec.type != "distributed-job":
        return 1
    if not 1 <= spec.replicas <= RANKS_MAX:
        raise RefusedError(RefusalCode.WORKLOAD, f"1 to {RANKS_MAX} replicas here, found {spec.replicas}")
    return spec.replicas


def devices_version(cluster: tuple[int, int]) -> str:
    """Return the version of the API for devices (DRA) that a cluster serves; empty for none."""
    return "v1" if cluster >= (1, 34) else "v1beta1" if cluster >= (1, 32) else ""


def job(bindings: Bindings, work: Work, found: Resolved, version: str = "v1", operator: str = "") -> Object:
    """Return the suspended Job that occupies the slot. Raises RefusedError.

    `version`: of the API for devices; `operator`: what runs the gang in its place.
    """
    ranks = ranks_of(work)
    labels = labels_of(bindings, work)
    spec: Object = {
        "suspend": True,
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "parallelism": ranks,
        "completions": ranks,
        "template": {"metadata": {"labels": labels}, "spec": pod_spec(bindings, work, found, Gang(ranks))},
    }
    if ranks > 1:
        spec["completionMode"] = "Indexed"
    if work.view.spec.type == "service" or operator:
        # The pods are those of a Deployment or an operator; this Job is only what is taken, and never runs.
        spec["template"] = {"metadata": {"labels": labels}, "spec": _nothing(bindings)}
    annotations = {
        names.RECORD: records.encode(_record(work, found, ranks, operator, endpoint_of(bindings, work, found))),
        names.SPEC_HASH: work.spec_sha256,
        names.TERM: str(work.term),
    }
    if made := parts(bindings, work, found, version, operator):
        annotations[names.PARTS] = records.encode(made)
    return _job(names.name_of(work.key), found.namespace, labels, annotations, spec)


def tombstone(bindings: Bindings, burial: Burial, namespace: str, grave: records.Grave) -> Object:
    """Return a Job that takes the slot of an epoch for ever."""
    operation, epoch = burial.key
    record = records.Record(
        operation=operation, generation=epoch.generation, counter=epoch.counter, project=burial.project
    )
    labels = names.own_labels(bindings.kubernetes.site) | {names.SLOT: names.name_of(burial.key)}
    annotations = {
        names.RECORD: records.encode(record),
        names.TERM: str(burial.term),
        names.GRAVE: records.encode(grave),
    }
    spec = {
        "suspend": True,
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "template": {"metadata": {"labels": labels}, "spec": _nothing(bindings)},
    }
    return _job(names.name_of(burial.key), namespace, labels, annotations, spec)


def parts(bindings: Bindings, work: Work, found: Resolved, version: str, operator: str = "") -> list[Object]:
    """Return what goes with a slot's Job, still without its owner; what runs stands last.

    `version`: of the API for devices.
    """
    made: list[Object] = []
    if work.view.spec.type == "distributed-job" and not operator:
        made.append(_headless_service(bindings, work, found))
    if (template := _claim_template(bindings, work, found, version)) is not None:
        made.append(template)
    if work.view.spec.type == "service":
        made.append(_service(bindings, work, found))
        if (way := route_of(bindings, work, found)) is not None:
            made.append(way)
        made.append(_deployment(bindings, work, found))
    if operator:
        made += gang_objects(operator, bindings, work, found, ranks_of(work))
    return made


def _headless_service(bindings: Bindings, work: Work, found: Resolved) -> Object:
    """Members of a gang find each other by it, also before they are ready."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {names.SLOT: names.name_of(work.key)},
    }
    return part("v1", "Service", bindings, work, found, spec)


def _service(bindings: Bindings, work: Work, found: Resolved) -> Object:
    """Callers within the cluster reach the service by it."""
    ports = [
        {"name": port_name(name), "port": port.port, "targetPort": port.port, "appProtocol": port.protocol}
        for name, port in sorted(work.view.spec.ports.items())
    ]
    spec = {"selector": {names.SLOT: names.name_of(work.key)}, "ports": ports}
    return part("v1", "Service", bindings, work, found, spec)


def _deployment(bindings: Bindings, work: Work, found: Resolved) -> Object:
    """Two generations of pods never run at once."""
    spec = {
        "replicas": max(1, work.view.spec.replicas),
        "strategy": {"type": "Recreate"},
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": {names.SLOT: names.name_of(work.key)}},
        "template": {"metadata": {"labels": labels_of(bindings, work)}, "spec": pod_spec(bindings, work, found)},
    }
    return part("apps/v1", "Deployment", bindings, work, found, spec)


def _claim_template(bindings: Bindings, work: Work, found: Resolved, version: str) -> Object | None:
    """Devices of a class that is a device class here."""
    reached, accelerator = found.reached, work.view.spec.resources.accelerator
    if reached is None or not reached.device_class or accelerator is None:
        return None
    if not version:
        raise RefusedError(
            RefusalCode.CLASS,
            f"class {accelerator.class_} is a device class, which this cluster's version does not offer: 1.32 does",
        )
    wanted = {"deviceClassName": reached.device_class, "allocationMode": "ExactCount", "count": accelerator.count}
    request = {"name": DEVICES, "exactly": wanted} if version == "v1" else {"name": DEVICES, **wanted}
    spec = {"spec": {"devices": {"requests": [request]}}}
    return part(f"resource.k8s.io/{version}", "ResourceClaimTemplate", bindings, work, found, spec)


def wrapper(site: str, namespace: str) -> Object:
    """Return the ConfigMap with the wrapper and the carrier of this release."""
    metadata = {"name": names.wrapper_name(), "namespace": namespace, "labels": names.own_labels(site)}
    data = dict(names.scripts())
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": data}


def _job(name: str, namespace: str, labels: Object, annotations: Object, spec: Object) -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _nothing(bindings: Bindings) -> Object:
    """Return a pod that cannot run anywhere, for Jobs that stay suspended; admission may look at it all the same."""
    site = bindings.kubernetes
    container = {
        "name": names.CONTAINER,
        "image": _TOMBSTONE_IMAGE,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": site.run_as_user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }


def _record(work: Work, found: Resolved, ranks: int, operator: str, endpoint: str) -> records.Record:
    spec, epoch, policy = work.view.spec, work.epoch, work.policy
    digest = found.image.rpartition("@")[2]
    return records.Record(
        operation=work.operation,
        generation=epoch.generation,
        counter=epoch.counter,
        attempt=work.attempt,
        project=work.project,
        type=spec.type,
        # Only the driver of a Ray job takes the slot: its workers run nothing of their own.
        ranks=1 if operator == RAYJOB.operator else ranks,
        operator=operator,
        policy=policy.policy.value,
        within_ms=policy.within_ms,
        loss_grace_ms=policy.grace_ms,
        stop_grace_ms=milliseconds(spec.lifecycle.stop_grace, STOP_GRACE_MS),
        outputs=found.outputs,
        checkpoint=found.checkpoint,
        acceptance=tuple(criterion_of(criterion) for criterion in spec.acceptance),
        memory_bytes=memory_bytes(work),
        resolved={
            "executor": "kubernetes",
            "principal": found.principal,
            "imageDigest": digest,
            "connections": found.locations,
            "endpoint": endpoint,
            "resources": spec.resources.told,
            "contractVersion": work.contract_version,
            "costPerHour": work.cost_per_hour,
            "currency": work.currency,
        },
    )
