"""What an API server writes into new objects, as far as the project reads it."""

import base64
import itertools
from typing import Any

from support.kubernetes.errors import Object
from support.kubernetes.resources import Resource

_addresses = itertools.count(1)

TRACKING = "batch.kubernetes.io/job-tracking"


def fill_in(resource: Resource, item: Object) -> None:
    """Fill in defaults; on updates too, as there."""
    if fill := _FILLS.get(resource.store_key):
        fill(item)


def first_status(resource: Resource, item: Object) -> None:
    """What a status is at the beginning, whatever the client wrote."""
    if "status" not in resource.subresources or resource.custom:
        if not resource.custom:
            return
        if "status" in resource.subresources:
            item.pop("status", None)
        return
    item["status"] = {}
    if resource.store_key == ("", "pods"):
        item["status"] = {"phase": "Pending", "qosClass": _quality(item)}
    elif resource.store_key == ("", "persistentvolumeclaims"):
        item["status"] = {"phase": "Pending"}
    elif resource.store_key == ("", "namespaces"):
        item["status"] = {"phase": "Active"}
        item.setdefault("spec", {})["finalizers"] = ["kubernetes"]
        item["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = item["metadata"]["name"]
    elif resource.store_key == ("", "services"):
        item["status"] = {"loadBalancer": {}}


def pod_template(template: Object, restart: str = "Always") -> None:
    spec = template["spec"]
    _default(
        spec,
        restartPolicy=restart,
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        securityContext={},
    )
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        _container(container)
    for volume in spec.get("volumes") or ():
        if set(volume) == {"name"}:
            volume["emptyDir"] = {}
        for kind in ("secret", "configMap", "projected"):
            if kind in volume:
                _default(volume[kind], defaultMode=420)


def _container(container: Object) -> None:
    image = str(container.get("image", ""))
    tag = image.rpartition("/")[2].partition(":")[2]
    latest = "@" not in image and tag in ("", "latest")
    _default(
        container,
        imagePullPolicy="Always" if latest else "IfNotPresent",
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        resources={},
    )
    for port in container.get("ports") or ():
        _default(port, protocol="TCP")
    for name, limit in (container["resources"].get("limits") or {}).items():
        container["resources"].setdefault("requests", {}).setdefault(name, limit)


def _pod(item: Object) -> None:
    pod_template(item)
    spec = item["spec"]
    _default(
        spec, serviceAccountName="default", enableServiceLinks=True, preemptionPolicy="PreemptLowerPriority", priority=0
    )
    spec["serviceAccount"] = spec["serviceAccountName"]
    held = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(toleration.get("key") in (key, None) for toleration in held):
            held.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})


def _job(item: Object) -> None:
    spec, meta = item["spec"], item["metadata"]
    _default(
        spec,
        backoffLimit=6,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy="TerminatingOrFailed",
        manualSelector=False,
    )
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    _default(spec, parallelism=1)
    pod_template(spec["template"], restart="Always")
    uid, name = meta["uid"], meta["name"]
    if not spec["manualSelector"]:
        labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
        for prefix in ("batch.kubernetes.io/", ""):
            labels[f"{prefix}controller-uid"], labels[f"{prefix}job-name"] = uid, name
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    # Labels of the Job itself default to those of its pods.
    if "labels" not in meta:
        meta["labels"] = dict(labels) if not spec["manualSelector"] else {}


def _deployment(item: Object) -> None:
    spec = item["spec"]
    _default(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    _default(spec, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})
    pod_template(spec["template"])


def _service(item: Object) -> None:
    spec = item.setdefault("spec", {})
    _default(spec, type="ClusterIP", sessionAffinity="None", internalTrafficPolicy="Cluster")
    if spec["type"] != "ExternalName":
        number = next(_addresses) if "clusterIP" not in spec else 0
        _default(spec, clusterIP=f"10.96.{number // 250}.{number % 250 + 1}")
        _default(spec, clusterIPs=[spec["clusterIP"]], ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
    for port in spec.get("ports") or ():
        _default(port, protocol="TCP", targetPort=port["port"])


def _secret(item: Object) -> None:
    _default(item, type="Opaque")
    for name, value in item.pop("stringData", {}).items():
        item.setdefault("data", {})[name] = base64.b64encode(value.encode()).decode()


def _claim(item: Object) -> None:
    _default(item["spec"], volumeMode="Filesystem")


def _storage_class(item: Object) -> None:
    _default(item, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _quality(item: Object) -> str:
    held = [container.get("resources") or {} for container in item["spec"].get("containers") or ()]
    if not any(resources.get("requests") or resources.get("limits") for resources in held):
        return "BestEffort"
    whole = all(
        set(resources.get("limits") or {}) >= {"cpu", "memory"}
        and (resources.get("requests") or resources["limits"]) == resources["limits"]
        for resources in held
    )
    return "Guaranteed" if whole else "Burstable"


def _default(into: Object, **values: Any) -> None:
    for name, value in values.items():
        if into.get(name) is None:
            into[name] = value


_FILLS = {
    ("", "pods"): _pod,
    ("batch", "jobs"): _job,
    ("apps", "deployments"): _deployment,
    ("", "services"): _service,
    ("", "secrets"): _secret,
    ("", "persistentvolumeclaims"): _claim,
    ("storage.k8s.io", "storageclasses"): _storage_class,
}
