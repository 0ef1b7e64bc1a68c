"""The draft: a contract document that holds by itself, remarks beside its values, and what a person has to decide."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from landbridge.domain import units
from landbridge.domain.discovering.nodes import Node, read_node
from landbridge.domain.discovering.offers import find_offers
from landbridge.domain.discovering.quantities import QuantityError, millicores, whole
from landbridge.domain.discovering.survey import Object, Survey

REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
ENFORCE: Final = "pod-security.kubernetes.io/enforce"
# Operators by the kind that they define, with its group: other software defines kinds in the same groups.
OPERATORS: Final = {
    "jobsets.jobset.x-k8s.io": "jobset",
    "localqueues.kueue.x-k8s.io": "kueue",
    "pytorchjobs.kubeflow.org": "kubeflow-training",
    "trainjobs.trainer.kubeflow.org": "kubeflow-trainer",
    "rayjobs.ray.io": "kuberay",
    "leaderworkersets.leaderworkerset.x-k8s.io": "leaderworkerset",
    "httproutes.gateway.networking.k8s.io": "gateway-api",
    "services.serving.knative.dev": "knative-serving",
    "inferenceservices.serving.kserve.io": "kserve",
    "queues.scheduling.volcano.sh": "volcano",
}
OPERATOR_GROUPS: Final = frozenset(kind.partition(".")[2] for kind in OPERATORS)
GANG_OPERATORS: Final = ("jobset", "kubeflow-trainer", "kubeflow-training")
_PROVIDERS: Final = {"aws": "aws", "gce": "gcp", "azure": "azure", "openstack": "openstack", "vsphere": "vsphere"}


@dataclass(frozen=True, slots=True)
class Draft:
    """`remarks` by path stand beside the values; `questions` are what no API tells."""

    document: Mapping[str, Any]
    remarks: Mapping[str, str]
    questions: tuple[str, ...]


def draft_contract(survey: Survey, name: str) -> Draft:
    """Return a draft of an environment contract, version 1."""
    nodes = [read_node(item) for item in survey.nodes]
    remarks: dict[str, str] = {}
    spec: dict[str, Any] = {}
    if location := _location(nodes):
        spec["location"] = location
        remarks["spec.location.regions"] = "from the nodes' labels"
    spec["runtime"] = _runtime(survey, nodes, remarks)
    spec["workloads"] = ["job", "distributed-job", "service"]
    classes: dict[str, Any] = {}
    for offer in find_offers(nodes, survey.device_classes, survey.resource_slices):
        classes[offer.name] = dict(offer.value)
        remarks |= {f"spec.classes.{offer.name}.{field}": told for field, told in offer.remarks.items()}
    if classes:
        spec["classes"] = classes
    if storage := _storage(survey.storage_classes, remarks):
        spec["storage"] = storage
    if boundaries := _boundaries(survey, remarks):
        spec["boundaries"] = boundaries
    if quotas := _quotas(survey.quotas, classes, remarks):
        spec["quotas"] = quotas
    document = {
        "apiVersion": "landbridge/v1",
        "kind": "EnvironmentContract",
        "metadata": {"name": name, "version": 1},
        "spec": spec,
    }
    return Draft(document, remarks, tuple(_questions(survey, nodes, spec)))


def _location(nodes: Sequence[Node]) -> dict[str, Any]:
    regions, zones = ({node.labels[label] for node in nodes if node.labels.get(label)} for label in (REGION, ZONE))
    providers = {_PROVIDERS[node.provider] for node in nodes if node.provider in _PROVIDERS}
    location: dict[str, Any] = {}
    if regions:
        location["regions"] = sorted(regions)[:50]
    if len(providers) == 1:
        location["provider"] = providers.pop()
    if zones:
        location["zones"] = sorted(zones)[:50]
    return location


def _runtime(survey: Survey, nodes: Sequence[Node], remarks: dict[str, str]) -> dict[str, Any]:
    runtime: dict[str, Any] = {"executor": "kubernetes"}
    if found := re.match(r"v?([0-9]+\.[0-9]+)", str(survey.version.get("gitVersion", ""))):
        runtime["kubernetes"] = found[1]
        remarks["spec.runtime.kubernetes"] = f"the API server says {survey.version['gitVersion']}"
    if architectures := sorted({node.architecture for node in nodes if node.architecture}):
        runtime["architectures"] = architectures[:20]
    if operators := sorted({OPERATORS[kind] for kind in survey.kinds if kind in OPERATORS}):
        runtime["operators"] = operators
        remarks["spec.runtime.operators"] = "by the kinds that they define"
    if "kuberay" in operators:
        runtime["via"] = {"ray": {"operator": "kuberay"}}
        remarks["spec.runtime.via.ray.operator"] = "put kuberay into kubernetes.operators of the bindings, too"
    if len(systems := {node.os for node in nodes if node.os}) == 1:
        runtime["os"] = systems.pop()[:40]
    versions: dict[str, str] = {}
    for label, found_there in (
        ("container-runtime", {node.runtime for node in nodes}),
        ("kernel", {node.kernel for node in nodes}),
        ("accelerator-driver", {node.driver for node in nodes}),
    ):
        told = sorted(filter(None, found_there))
        if len(told) == 1:
            versions[label] = told[0]
    if versions:
        runtime["versions"] = versions
        remarks["spec.runtime.versions.kernel"] = "what all nodes have alike"
    return runtime


def _storage(classes: Iterable[Object], remarks: dict[str, str]) -> dict[str, Any]:
    offers: dict[str, Any] = {}
    for item in classes:
        name = item["metadata"]["name"]
        key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "storage"
        offer: dict[str, Any] = {"storageClass": name}
        encrypted = str((item.get("parameters") or {}).get("encrypted", "")).lower()
        if encrypted in ("true", "false"):
            offer["encrypted"] = encrypted == "true"
        offers[key] = offer
        told = [str(item.get("provisioner", ""))]
        if (item["metadata"].get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class") == "true":
            told.append("the default")
        if encrypted not in ("true", "false"):
            told.append("say whether it is encrypted")
        remarks[f"spec.storage.{key}.storageClass"] = "; ".join(filter(None, told))
    return dict(sorted(offers.items())[:50])


def _boundaries(survey: Survey, remarks: dict[str, str]) -> dict[str, Any]:
    boundaries: dict[str, Any] = {}
    if not survey.namespace:
        return boundaries
    level = (survey.namespace_object.get("metadata") or {}).get("labels", {}).get(ENFORCE, "")
    if level in ("privileged", "baseline", "restricted"):
        boundaries["admission"] = {"podSecurity": level}
        remarks["spec.boundaries.admission.podSecurity"] = f"by the label of namespace {survey.namespace}"
    if _denies(survey.network_policies):
        boundaries["network"] = {"default": "deny"}
        remarks["spec.boundaries.network.default"] = "by its NetworkPolicy; a probe will show whether it has effect"
    boundaries["tenancy"] = {"namespace": survey.namespace}
    return boundaries


def _denies(policies: Iterable[Object]) -> bool:
    """Whether traffic out of every pod is denied unless a rule allows it."""
    for item in policies:
        spec = item.get("spec") or {}
        everything = not (spec.get("podSelector") or {})
        if everything and "Egress" in (spec.get("policyTypes") or ()) and not spec.get("egress"):
            return True
    return False


def _quotas(items: Iterable[Object], classes: Mapping[str, Any], remarks: dict[str, str]) -> dict[str, str]:
    """Return the tightest limit of all quotas of the namespace, by the names of the contract."""
    by_resource = {
        f"requests.{via['resource']}": name
        for name, offer in classes.items()
        if (via := offer.get("via") or {}).get("resource")
    }
    found: dict[str, int] = {}
    for item in items:
        for resource, text in ((item.get("spec") or {}).get("hard") or {}).items():
            name = _QUOTAS.get(resource) or by_resource.get(resource)
            try:
                amount = millicores(text) if name == "cpu" else whole(text)
            except QuantityError:
                continue
            if name:
                found[name] = min(amount, found.get(name, amount))
                remarks[f"spec.quotas.{name}"] = f"{resource} of ResourceQuota {item['metadata']['name']}"
    written = {"cpu": units.format_cpu, "memory": units.format_bytes}
    return {name: written.get(name, str)(amount) for name, amount in sorted(found.items())}


_QUOTAS: Final = {
    "cpu": "cpu",
    "requests.cpu": "cpu",
    "memory": "memory",
    "requests.memory": "memory",
    "pods": "running",
    "count/pods": "running",
    "count/jobs.batch": "running",
}


def _questions(survey: Survey, nodes: Sequence[Node], spec: Mapping[str, Any]) -> Iterable[str]:
    yield "owner: which team answers for it, and how it is reached"
    yield "location.jurisdictions and operatedBy: whose law applies, and who operates it"
    if not (spec.get("location") or {}).get("regions"):
        yield f"location.regions: no node has the label {REGION}"
    yield "boundaries.securityTier: open, standard or restricted; probes try what the tier forbids"
    yield "boundaries.identity.roles: which ServiceAccount each logical role is"
    if "admission" not in (spec.get("boundaries") or {}):
        yield "boundaries.admission.podSecurity: the namespace of the work carries no pod security label"
    if "network" not in (spec.get("boundaries") or {}):
        yield "boundaries.network.default: no NetworkPolicy denies traffic in the namespace of the work"
    yield "connections: which data, registries and stores are reached from here, and by which projects"
    yield "cost, quotas, maintenance, objectives, support.until: what is absent is unknown, never zero"
    if any(offer.get("count") for offer in (spec.get("classes") or {}).values()):
        yield "precision and interconnect of accelerator classes: no label tells them"
    if able := [name for name in GANG_OPERATORS if name in (spec["runtime"].get("operators") or ())]:
        yield f"runtime.via.ranks: gangs run as Indexed Jobs unless it names an operator: {', '.join(able)}"
    if survey.runtime_classes:
        names = ", ".join(item["metadata"]["name"] for item in survey.runtime_classes)
        yield f"runtime classes that a class may need in the site's bindings: {names}"
    for item in survey.limit_ranges:
        yield f"LimitRange {item['metadata']['name']}: {_limits(item)}"
    away = [node.name for node in nodes if not node.ready]
    if away:
        yield f"not counted, because not ready or cordoned: {', '.join(away[:10])}{' …' if len(away) > 10 else ''}"
    for plural, why in sorted(survey.unread.items()):
        yield f"{plural} could not be read ({why}); what depends on them is missing here"


def _limits(item: Object) -> str:
    told = []
    for limit in (item.get("spec") or {}).get("limits") or ():
        if limit.get("max"):
            most = ", ".join(f"{name} {amount}" for name, amount in sorted(limit["max"].items()))
            told.append(f"at most {most} for a {limit['type']}")
    return "; ".join(told) or "sets defaults only"
