"""What is served: resources by group, version and plural name, and their discovery documents."""

from dataclasses import dataclass, field
from typing import Any

from support.kubernetes.errors import Object

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Resource:
    """One served resource."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    subresources: frozenset[str] = frozenset()
    custom: bool = False
    create_only: bool = False
    """A review: answered, not kept."""
    selectable: tuple[str, ...] = ()
    """Fields that field selectors may name, besides metadata."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def store_key(self) -> tuple[str, str]:
        """All versions of a resource share their objects."""
        return self.group, self.plural


_POD_FIELDS = ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
               "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName")  # fmt: skip
_EVENT_FIELDS = (
    *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion", "fieldPath")),
    "involvedObject.resourceVersion", "reason", "reportingComponent", "source", "type",
)  # fmt: skip


def _r(group: str, plural: str, kind: str, sub: str = "", **more: Any) -> Resource:
    return Resource(group, more.pop("version", "v1"), plural, kind, subresources=frozenset(sub.split()), **more)


BUILT_IN = (
    _r("", "namespaces", "Namespace", "status finalize", namespaced=False, selectable=("status.phase",)),
    _r("", "nodes", "Node", "status", namespaced=False, selectable=("spec.unschedulable",)),
    _r("", "pods", "Pod", "status log eviction binding ephemeralcontainers", selectable=_POD_FIELDS),
    _r("", "services", "Service", "status"),
    _r("", "secrets", "Secret", selectable=("type",)),
    _r("", "configmaps", "ConfigMap"),
    _r("", "serviceaccounts", "ServiceAccount", "token"),
    _r("", "persistentvolumeclaims", "PersistentVolumeClaim", "status"),
    _r("", "persistentvolumes", "PersistentVolume", "status", namespaced=False),
    _r("", "events", "Event", selectable=_EVENT_FIELDS),
    _r("", "endpoints", "Endpoints"),
    _r("", "resourcequotas", "ResourceQuota", "status"),
    _r("", "limitranges", "LimitRange"),
    _r("apps", "deployments", "Deployment", "status scale"),
    _r("apps", "replicasets", "ReplicaSet", "status scale"),
    _r("apps", "statefulsets", "StatefulSet", "status scale"),
    _r("apps", "daemonsets", "DaemonSet", "status"),
    _r("batch", "jobs", "Job", "status", selectable=("status.successful",)),
    _r("batch", "cronjobs", "CronJob", "status"),
    _r("networking.k8s.io", "networkpolicies", "NetworkPolicy"),
    _r("networking.k8s.io", "ingresses", "Ingress", "status"),
    _r("networking.k8s.io", "ingressclasses", "IngressClass", namespaced=False),
    _r("discovery.k8s.io", "endpointslices", "EndpointSlice"),
    _r("rbac.authorization.k8s.io", "roles", "Role"),
    _r("rbac.authorization.k8s.io", "rolebindings", "RoleBinding"),
    _r("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", namespaced=False),
    _r("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    _r("storage.k8s.io", "storageclasses", "StorageClass", namespaced=False),
    _r("storage.k8s.io", "csidrivers", "CSIDriver", namespaced=False),
    _r("node.k8s.io", "runtimeclasses", "RuntimeClass", namespaced=False),
    _r("scheduling.k8s.io", "priorityclasses", "PriorityClass", namespaced=False),
    _r("policy", "poddisruptionbudgets", "PodDisruptionBudget", "status"),
    _r("coordination.k8s.io", "leases", "Lease"),
    _r("resource.k8s.io", "deviceclasses", "DeviceClass", namespaced=False),
    _r("resource.k8s.io", "resourceslices", "ResourceSlice", namespaced=False,
       selectable=("spec.nodeName", "spec.driver")),
    _r("resource.k8s.io", "resourceclaims", "ResourceClaim", "status"),
    _r("resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"),
    _r("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "status", namespaced=False),
    _r("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False,
       create_only=True),
    _r("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", namespaced=False, create_only=True),
    _r("authentication.k8s.io", "tokenreviews", "TokenReview", namespaced=False, create_only=True),
)  # fmt: skip


@dataclass
class Served:
    """The resources that are served now; a definition adds its own."""

    found: dict[tuple[str, str, str], Resource] = field(
        default_factory=lambda: {(item.group, item.version, item.plural): item for item in BUILT_IN}
    )

    def get(self, group: str, version: str, plural: str) -> Resource | None:
        return self.found.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        return next(
            (item for item in self.found.values() if (item.api_version, item.kind) == (api_version, kind)), None
        )

    def by_key(self, key: tuple[str, str]) -> Resource | None:
        return next((item for item in self.found.values() if item.store_key == key), None)

    def drop(self, group: str, plurals: set[str]) -> None:
        """Serve these no more, as a release or a provider that lacks them."""
        for key in [key for key in self.found if key[0] == group and (not plurals or key[2] in plurals)]:
            del self.found[key]

    def define(self, definition: Object) -> None:
        """Serve what a CustomResourceDefinition describes."""
        spec = definition["spec"]
        for version in spec["versions"]:
            if not version.get("served"):
                continue
            item = Resource(
                group=spec["group"],
                version=version["name"],
                plural=spec["names"]["plural"],
                kind=spec["names"]["kind"],
                namespaced=spec["scope"] == "Namespaced",
                subresources=frozenset(version.get("subresources") or {}),
                custom=True,
                selectable=tuple(f["jsonPath"].lstrip(".") for f in version.get("selectableFields") or ()),
            )
            self.found[item.group, item.version, item.plural] = item

    def undefine(self, definition: Object) -> None:
        spec = definition["spec"]
        self.drop(spec["group"], {spec["names"]["plural"]})

    def groups(self) -> Object:
        """/apis"""
        versions: dict[str, list[str]] = {}
        for group, version, _ in self.found:
            if group and version not in versions.setdefault(group, []):
                versions[group].append(version)
        groups = [
            {
                "name": group,
                "versions": [{"groupVersion": f"{group}/{v}", "version": v} for v in found],
                "preferredVersion": {"groupVersion": f"{group}/{found[0]}", "version": found[0]},
            }
            for group, found in versions.items()
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def of_group(self, group: str, version: str) -> Object | None:
        """/api/v1 and /apis/<group>/<version>; None where nothing of it is served."""
        listed = []
        for item in self.found.values():
            if (item.group, item.version) != (group, version):
                continue
            verbs = ["create"] if item.create_only else list(VERBS)
            about = {"singularName": item.kind.lower(), "namespaced": item.namespaced, "kind": item.kind}
            listed.append({"name": item.plural, **about, "verbs": verbs})
            listed += [
                {"name": f"{item.plural}/{sub}", **about, "singularName": "", "verbs": ["get", "patch", "update"]}
                for sub in sorted(item.subresources)
            ]
        if not listed:
            return None
        name = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": listed}
