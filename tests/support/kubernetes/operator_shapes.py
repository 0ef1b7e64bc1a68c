"""The published shapes of operators' objects: which fields there are, which must be there, what their webhooks refuse.

A field that is not listed is an error, as strict field validation of a structural schema makes it. Pods within are
judged by the schemas of Kubernetes itself, as the pod of a Job.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import kubernetes_validate

Object = Mapping[str, Any]
POD_VERSION: Final = "1.36"
NAME_MAX: Final = 63
TRAINER_STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
RAYJOB_NAME_MAX: Final = 47
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def problems(kind: str, item: Object) -> list[str]:
    """Return everything that is wrong with an object's name or spec, each with its path."""
    name, spec = item["metadata"]["name"], item.get("spec") or {}
    found = list(_SHAPES[kind](name, spec))
    if len(name) > NAME_MAX or not _LABEL.fullmatch(name):
        found.append(f"metadata.name: expected a DNS label that begins with a letter, found {name}")
    return found


def _fields(at: Object, path: str, allowed: str, required: str = "") -> Iterator[str]:
    known = {*allowed.split(), *required.split()}
    yield from (f"{path}.{name}: unknown field" for name in at if name not in known)
    yield from (f"{path}.{name}: required" for name in required.split() if name not in at)


def _pod(template: Object, path: str, *, restarts: tuple[str, ...]) -> Iterator[str]:
    """Judge a pod template as that of a Pod."""
    yield from _fields(template, path, "metadata", "spec")
    spec = dict(template.get("spec") or {})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    try:
        kubernetes_validate.validate(pod, POD_VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield f"{path}.spec: {error.message}"
    if spec.get("restartPolicy") not in restarts:
        yield f"{path}.spec.restartPolicy: expected one of {restarts}"


def _jobset(name: str, spec: Object) -> Iterator[str]:
    allowed = "network successPolicy failurePolicy startupPolicy suspend coordinator managedBy ttlSecondsAfterFinished"
    yield from _fields(spec, "spec", f"{allowed} replicatedJobs")
    network = spec.get("network") or {}
    yield from _fields(network, "spec.network", "enableDNSHostnames subdomain publishNotReadyAddresses")
    yield from _fields(spec.get("failurePolicy") or {}, "spec.failurePolicy", "maxRestarts restartStrategy rules")
    if "successPolicy" in spec:
        yield from _fields(spec["successPolicy"], "spec.successPolicy", "targetReplicatedJobs", "operator")
    for at, group in enumerate(spec.get("replicatedJobs") or ()):
        path = f"spec.replicatedJobs[{at}]"
        yield from _fields(group, path, "groupName replicas dependsOn", "name template")
        yield from _fields(group["template"], f"{path}.template", "metadata", "spec")
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": group["template"]["spec"]}
        try:
            kubernetes_validate.validate(job, POD_VERSION, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{path}.template.spec: {error.message}"
        last = (group["template"]["spec"].get("completions") or 1) - 1
        longest = f"{name}-{group['name']}-{group.get('replicas', 1) - 1}-{last}-abcde"
        if len(longest) > NAME_MAX:
            yield f"{path}.name: pods would have names of more than {NAME_MAX} characters: {longest}"


def _trainjob(name: str, spec: Object) -> Iterator[str]:
    allowed = "initializer trainer runtimePatches suspend activeDeadlineSeconds managedBy"
    yield from _fields(spec, "spec", allowed, "runtimeRef")
    yield from _fields(spec.get("runtimeRef") or {}, "spec.runtimeRef", "apiGroup kind", "name")
    if (spec.get("runtimeRef") or {}).get("kind") not in ("TrainingRuntime", "ClusterTrainingRuntime"):
        yield "spec.runtimeRef.kind: unsupported runtime"
    yield from _fields(
        spec.get("trainer") or {}, "spec.trainer", "image command args env numNodes resourcesPerNode numProcPerNode"
    )


def _trainingruntime(name: str, spec: Object) -> Iterator[str]:
    yield from _fields(spec, "spec", "mlPolicy podGroupPolicy template")
    policy = spec.get("mlPolicy") or {}
    yield from _fields(policy, "spec.mlPolicy", "numNodes torch flux mpi jax xgboost")
    if len(policy.keys() - {"numNodes"}) > 1:
        yield "spec.mlPolicy: only one of the policies can be configured"
    template = spec.get("template") or {}
    yield from _fields(template, "spec.template", "metadata spec")
    yield from (problem.replace("spec.", "spec.template.spec.", 1) for problem in _jobset(name, template["spec"]))
    for at, group in enumerate(template["spec"]["replicatedJobs"]):
        path = f"spec.template.spec.replicatedJobs[{at}]"
        step = (group["template"].get("metadata", {}).get("labels") or {}).get(TRAINER_STEP)
        containers = {one["name"] for one in group["template"]["spec"]["template"]["spec"]["containers"]}
        if step is not None and group.get("replicas") != 1:
            yield f"{path}.replicas: always must be 1"
        if step == "trainer" and "node" not in containers:
            yield f"{path}.template.spec.template.spec.containers: must contain the required container: node"


def _pytorchjob(name: str, spec: Object) -> Iterator[str]:
    yield from _fields(spec, "spec", "elasticPolicy nprocPerNode", "runPolicy pytorchReplicaSpecs")
    policy = (
        "cleanPodPolicy ttlSecondsAfterFinished activeDeadlineSeconds backoffLimit schedulingPolicy suspend managedBy"
    )
    yield from _fields(spec.get("runPolicy") or {}, "spec.runPolicy", policy)
    if (spec.get("runPolicy") or {}).get("cleanPodPolicy") not in (None, "All", "Running", "None"):
        yield "spec.runPolicy.cleanPodPolicy: expected All, Running or None"
    for role, replica in (spec.get("pytorchReplicaSpecs") or {}).items():
        path = f"spec.pytorchReplicaSpecs.{role}"
        if role not in ("Master", "Worker"):
            yield f"{path}: expected Master or Worker"
        yield from _fields(replica, path, "replicas template restartPolicy")
        if replica["replicas"] != 1 if role == "Master" else replica["replicas"] < 1:
            yield f"{path}.replicas: a master is one, workers are at least one, found {replica['replicas']}"
        if replica.get("restartPolicy") not in (None, "Always", "OnFailure", "Never", "ExitCode"):
            yield f"{path}.restartPolicy: unknown"
        yield from _pod(replica["template"], f"{path}.template", restarts=("Always", "OnFailure", "Never"))
        if "pytorch" not in {container["name"] for container in replica["template"]["spec"]["containers"]}:
            yield f"{path}.template.spec.containers: one must be named pytorch"


def _rayjob(name: str, spec: Object) -> Iterator[str]:
    allowed = (
        "activeDeadlineSeconds backoffLimit rayClusterSpec submitterPodTemplate metadata clusterSelector"
        " submitterConfig managedBy deletionStrategy entrypoint runtimeEnvYAML jobId submissionMode entrypointResources"
        " entrypointNumCpus entrypointNumGpus ttlSecondsAfterFinished shutdownAfterJobFinishes suspend"
    )
    yield from _fields(spec, "spec", allowed)
    if len(name) > RAYJOB_NAME_MAX:
        yield f"metadata.name: at most {RAYJOB_NAME_MAX} characters"
    if spec.get("submissionMode") not in ("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"):
        yield "spec.submissionMode: unknown"
    if spec.get("suspend") and not spec.get("shutdownAfterJobFinishes"):
        yield "spec.suspend: only with shutdownAfterJobFinishes"
    if "rayClusterSpec" not in spec:
        yield "spec.rayClusterSpec: required without clusterSelector"
        return
    yield from _raycluster(name, spec["rayClusterSpec"], "spec.rayClusterSpec")


def _raycluster(name: str, spec: Object, path: str = "spec") -> Iterator[str]:
    allowed = (
        "upgradeStrategy authOptions suspend managedBy autoscalerOptions headServiceAnnotations enableInTreeAutoscaling"
        " gcsFaultToleranceOptions rayVersion workerGroupSpecs"
    )
    yield from _fields(spec, path, allowed, "headGroupSpec")
    head = spec.get("headGroupSpec") or {}
    more = "headService enableIngress resources labels serviceType"
    yield from _fields(head, f"{path}.headGroupSpec", more, "template rayStartParams")
    yield from _pod(head["template"], f"{path}.headGroupSpec.template", restarts=("Always", "OnFailure", "Never"))
    for at, group in enumerate(spec.get("workerGroupSpecs") or ()):
        place = f"{path}.workerGroupSpecs[{at}]"
        more = "suspend replicas idleTimeoutSeconds resources labels scaleStrategy numOfHosts"
        yield from _fields(group, place, more, "groupName minReplicas maxReplicas rayStartParams template")
        yield from _pod(group["template"], f"{place}.template", restarts=("Always", "OnFailure", "Never"))


def _httproute(name: str, spec: Object) -> Iterator[str]:
    yield from _fields(spec, "spec", "parentRefs hostnames rules useDefaultGateways")
    for at, parent in enumerate(spec.get("parentRefs") or ()):
        yield from _fields(parent, f"spec.parentRefs[{at}]", "group kind namespace sectionName port", "name")
    for at, rule in enumerate(spec.get("rules") or ()):
        path = f"spec.rules[{at}]"
        yield from _fields(rule, path, "name matches filters backendRefs timeouts retry sessionPersistence")
        for match in rule.get("matches") or ():
            yield from _fields(match, f"{path}.matches", "path headers queryParams method")
            yield from _fields(match.get("path") or {}, f"{path}.matches.path", "type value")
        for backend in rule.get("backendRefs") or ():
            yield from _fields(backend, f"{path}.backendRefs", "group kind namespace port weight filters", "name")
            if "port" not in backend:
                yield f"{path}.backendRefs.port: required for a Service"


_SHAPES: Final = {
    "HTTPRoute": _httproute,
    "JobSet": _jobset,
    "TrainJob": _trainjob,
    "TrainingRuntime": _trainingruntime,
    "PyTorchJob": _pytorchjob,
    "RayJob": _rayjob,
    "RayCluster": _raycluster,
}
