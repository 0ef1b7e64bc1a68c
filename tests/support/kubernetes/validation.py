"""What an API server refuses to write, as far as the project could run into it."""

import re
from collections.abc import Callable
from typing import Any

from support.kubernetes import operator_shapes
from support.kubernetes.errors import Object, forbidden, invalid
from support.kubernetes.resources import Resource

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?")
_SHORT_NAMES = frozenset((("", "services"), ("", "namespaces"), ("batch", "jobs")))

Causes = list[tuple[str, str]]


def check_new(resource: Resource, item: Object) -> None:
    """Raise a 422 that names every cause."""
    meta, causes = item["metadata"], Causes()
    name = str(meta.get("name") or "")
    short = resource.store_key in _SHORT_NAMES
    if not name:
        causes.append(("metadata.name", "Required value: name or generateName is required"))
    elif resource.group != "rbac.authorization.k8s.io":
        good = (_LABEL if short else _SUBDOMAIN).fullmatch(name) and len(name) <= (63 if short else 253)
        if not good:
            causes.append(("metadata.name", f'Invalid value: "{name}": a lowercase RFC 1123 name is expected'))
    check_labels(meta, "metadata", causes)
    if check := _CHECKS.get(resource.store_key):
        check(item, causes)
    _refuse(resource, name, causes)


def check_labels(meta: Object, path: str, causes: Causes) -> None:
    for key, value in (meta.get("labels") or {}).items():
        if not _KEY.fullmatch(key) or len(key.rpartition("/")[2]) > 63:
            causes.append(
                (f"{path}.labels", f'Invalid value: "{key}": name part must consist of alphanumeric characters')
            )
        if not isinstance(value, str) or len(value) > 63 or not _VALUE.fullmatch(value):
            causes.append((f"{path}.labels", f'Invalid value: "{value}": a valid label is expected'))
    for key, value in (meta.get("annotations") or {}).items():
        if not isinstance(value, str):
            causes.append((f"{path}.annotations", f"Invalid value: {key}: a string is expected"))
    for owner in meta.get("ownerReferences") or ():
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                causes.append((f"{path}.ownerReferences.{field}", "Required value"))


def _pod(item: Object, causes: Causes) -> None:
    _pod_spec(item["spec"], "spec", causes)


def _pod_spec(spec: Object, path: str, causes: Causes) -> None:
    containers = spec.get("containers") or []
    if not containers:
        causes.append((f"{path}.containers", "Required value"))
    names = [container.get("name") for container in (*(spec.get("initContainers") or ()), *containers)]
    for name in {name for name in names if names.count(name) > 1}:
        causes.append((f"{path}.containers.name", f'Duplicate value: "{name}"'))
    volumes = {volume["name"] for volume in spec.get("volumes") or ()}
    for at, container in enumerate(containers):
        place = f"{path}.containers[{at}]"
        if not _LABEL.fullmatch(str(container.get("name") or "")):
            causes.append((f"{place}.name", "Required value"))
        if not container.get("image"):
            causes.append((f"{place}.image", "Required value"))
        causes += [
            (f"{place}.volumeMounts.name", f'Not found: "{mount["name"]}"')
            for mount in container.get("volumeMounts") or ()
            if mount["name"] not in volumes
        ]
        _resources(container.get("resources") or {}, f"{place}.resources", causes)
        for entry in container.get("env") or ():
            if not isinstance(entry.get("value", ""), str):
                causes.append((f"{place}.env.value", "a string is expected"))
    if spec.get("restartPolicy") not in ("Always", "OnFailure", "Never"):
        causes.append((f"{path}.restartPolicy", f'Unsupported value: "{spec.get("restartPolicy")}"'))


def _resources(resources: Object, path: str, causes: Causes) -> None:
    limits = resources.get("limits") or {}
    for section in ("requests", "limits"):
        for name, amount in (resources.get(section) or {}).items():
            if not _QUANTITY.fullmatch(str(amount)):
                causes.append((f"{path}.{section}[{name}]", f'Invalid value: "{amount}"'))
            # Extended resources cannot be overcommitted.
            if "/" in name and (resources.get("requests") or {}).get(name, limits.get(name)) != limits.get(name):
                causes.append((f"{path}.requests", f"Invalid value: must be equal to {name} limit"))


def _job(item: Object, causes: Causes) -> None:
    spec = item["spec"]
    template = spec["template"]
    check_labels(template.get("metadata") or {}, "spec.template.metadata", causes)
    _pod_spec(template["spec"], "spec.template.spec", causes)
    if template["spec"].get("restartPolicy") not in ("OnFailure", "Never"):
        causes.append(("spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"'))
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        causes.append(("spec.completions", "Required value: when completion mode is Indexed"))
    if spec.get("podFailurePolicy") and template["spec"].get("restartPolicy") != "Never":
        causes.append(("spec.template.spec.restartPolicy", "only Never is supported with podFailurePolicy"))
    if spec.get("podFailurePolicy") and spec.get("podReplacementPolicy") != "Failed":
        causes.append(("spec.podReplacementPolicy", "only Failed is supported with podFailurePolicy"))


def _deployment(item: Object, causes: Causes) -> None:
    spec = item["spec"]
    _pod_spec(spec["template"]["spec"], "spec.template.spec", causes)
    wanted = (spec.get("selector") or {}).get("matchLabels") or {}
    if not wanted:
        causes.append(("spec.selector", "Required value"))
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        causes.append(("spec.template.metadata.labels", "Invalid value: `selector` does not match template `labels`"))


def check_update(resource: Resource, old: Object, new: Object) -> None:
    """Refuse to change what never changes."""
    name, causes = old["metadata"]["name"], Causes()
    check_labels(new["metadata"], "metadata", causes)
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for path in _FIXED.get(resource.store_key, ()):
        if before.get(path) != after.get(path) and not _may_still_change(resource, old, path, before, after):
            causes.append((f"spec.{path}", "Invalid value: field is immutable"))
    if resource.store_key == ("", "pods") and _fixed_part(before) != _fixed_part(after):
        fields = "`spec.containers[*].image`, `spec.activeDeadlineSeconds` and additions to `spec.tolerations`"
        causes.append(("spec", f"Forbidden: pod updates may not change fields other than {fields}"))
    if resource.store_key in (("", "secrets"), ("", "configmaps")) and old.get("immutable"):
        for field in ("data", "stringData", "binaryData", "immutable"):
            if old.get(field) != new.get(field):
                causes.append((field, "Forbidden: field is immutable when `immutable` is set"))
    if resource.store_key == ("", "secrets") and old.get("type") != new.get("type"):
        causes.append(("type", "Invalid value: field is immutable"))
    added = set(new["metadata"].get("finalizers") or ()) - set(old["metadata"].get("finalizers") or ())
    if added and old["metadata"].get("deletionTimestamp"):
        causes.append(
            ("metadata.finalizers", "Forbidden: no new finalizers can be added if the object is being deleted")
        )
    _refuse(resource, name, causes)


_FIXED: dict[tuple[str, str], tuple[str, ...]] = {
    ("batch", "jobs"): ("template", "selector", "completions", "completionMode", "manualSelector", "podFailurePolicy"),
    ("apps", "deployments"): ("selector",),
    ("", "services"): ("clusterIP",),
    ("", "persistentvolumeclaims"): ("storageClassName", "accessModes", "volumeMode", "selector"),
    ("resource.k8s.io", "resourceclaims"): ("devices",),
    ("resource.k8s.io", "resourceclaimtemplates"): ("spec", "metadata"),
    ("storage.k8s.io", "storageclasses"): (),
    ("jobset.x-k8s.io", "jobsets"): ("replicatedJobs", "network", "successPolicy", "failurePolicy"),
    ("trainer.kubeflow.org", "trainjobs"): ("runtimeRef", "trainer", "initializer", "managedBy"),
    ("ray.io", "rayjobs"): ("rayClusterSpec", "entrypoint", "submissionMode"),
}


def _may_still_change(resource: Resource, old: Object, path: str, before: Object, after: Object) -> bool:
    """Completions of Indexed Jobs move with parallelism; a suspended Job that never ran may be scheduled elsewhere."""
    if resource.store_key == ("", "services"):
        return path == "clusterIP" and not before.get(path)
    if resource.store_key != ("batch", "jobs"):
        return False
    if path == "completions":
        return before.get("completionMode") == "Indexed" and after.get("completions") == after.get("parallelism")
    if path == "template" and before.get("suspend") and not (old.get("status") or {}).get("startTime"):
        loose = ("nodeSelector", "affinity", "tolerations", "schedulingGates")
        return _without(before["template"], loose) == _without(after["template"], loose)
    return False


def _without(template: Object, names: tuple[str, ...]) -> Object:
    return {"spec": {key: value for key, value in template["spec"].items() if key not in names}}


def _fixed_part(spec: Object) -> Object:
    loose = ("activeDeadlineSeconds", "tolerations", "containers", "initContainers", "schedulingGates", "nodeName")
    kept: dict[str, Any] = {key: value for key, value in spec.items() if key not in loose}
    for section in ("containers", "initContainers"):
        kept[section] = [{**item, "image": ""} for item in spec.get(section) or ()]
    return kept


def _refuse(resource: Resource, name: str, causes: Causes) -> None:
    if causes:
        raise invalid(resource.kind, resource.group, name, causes)


def namespace_ends(qualified: str, name: str, namespace: str) -> Exception:
    return forbidden(
        qualified, name, f"unable to create new content in namespace {namespace} because it is being terminated"
    )


def _of_operator(kind: str) -> Callable[[Object, Causes], None]:
    def check(item: Object, causes: Causes) -> None:
        causes += [("spec", problem) for problem in operator_shapes.problems(kind, item)]

    return check


_CHECKS: dict[tuple[str, str], Callable[[Object, Causes], None]] = {
    ("", "pods"): _pod,
    ("batch", "jobs"): _job,
    ("apps", "deployments"): _deployment,
    ("jobset.x-k8s.io", "jobsets"): _of_operator("JobSet"),
    ("trainer.kubeflow.org", "trainjobs"): _of_operator("TrainJob"),
    ("trainer.kubeflow.org", "trainingruntimes"): _of_operator("TrainingRuntime"),
    ("kubeflow.org", "pytorchjobs"): _of_operator("PyTorchJob"),
    ("ray.io", "rayjobs"): _of_operator("RayJob"),
    ("gateway.networking.k8s.io", "httproutes"): _of_operator("HTTPRoute"),
}
