"""What has to be applied to a cluster for its dispatcher: rights from the table of permissions, a hardened pod. Pure.

`${...}` in plain manifests never occurs: every value is known here. The Helm chart is written from the same objects.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from landbridge_dispatch.executors.kubernetes import permissions as work
from landbridge_dispatch.executors.kubernetes.probing import permissions as probing

Object = dict[str, Any]

NAME: Final = "landbridge-dispatcher"
LABELS: Final = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": "landbridge-install"}
KEEPER_PORT: Final = 8480
HTTP_PORT: Final = 8080
_RBAC: Final = "rbac.authorization.k8s.io"
_RESTRICTED: Final = {
    f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
}  # fmt: skip
_USER: Final = 10001


@dataclass(frozen=True, slots=True)
class Installation:
    """What a site decides. `nats_ports` and `api_ports` are where traffic may go besides names (53)."""

    environment: str
    image: str
    nats_url: str
    namespace: str = "landbridge"
    work_namespaces: tuple[str, ...] = ("landbridge-work",)
    bindings: str = ""
    """The site's bindings file, as text."""
    credentials: str = ""
    """Of the broker; empty: a Secret that is there already is used."""
    storage_class: str = ""
    """For the dispatcher's own directory; empty: the cluster's default."""
    makes_namespaces: bool = True
    nats_ports: tuple[int, ...] = (4222,)
    api_ports: tuple[int, ...] = (443, 6443)
    operators: tuple[str, ...] = ()
    """Which operators the dispatcher may use; as in the bindings."""
    routes: tuple[str, ...] = ()
    """What services are reached by from outside: Ingress or HTTPRoute, as in the bindings."""


def manifests(site: Installation) -> list[Object]:
    """Return everything, in the order in which it is applied."""
    made: list[Object] = []
    if site.makes_namespaces:
        made += [namespace(name) for name in (site.namespace, *site.work_namespaces)]
    made.append(_object(site, "v1", "ServiceAccount", {"automountServiceAccountToken": False}))
    for name in site.work_namespaces:
        made += role(name, site.namespace, site.operators, site.routes)
    made += cluster_role(site.namespace, f"{NAME}-{site.namespace}")
    if site.credentials:
        encoded = base64.b64encode(site.credentials.encode()).decode()
        made.append(_object(site, "v1", "Secret", {"type": "Opaque", "data": {"dispatcher.creds": encoded}}))
    made.append(_object(site, "v1", "ConfigMap", {"data": {"bindings.yaml": site.bindings}}))
    made.append(claim(site))
    made.append(service(site))
    made.append(deployment(site))
    made.append(disruption_budget(site))
    made += [network_policy(site)]
    return made


def namespace(name: str) -> Object:
    """Return a namespace that takes Restricted pods only."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(_RESTRICTED)}}


def rules(permissions: Iterable[work.Permission]) -> list[Object]:
    """Return the rules of a role: one for each line of the table, verbs of the same resource together."""
    verbs: dict[tuple[str, str], dict[str, None]] = {}
    for item in permissions:
        verbs.setdefault((item.api_group, item.resource), {}).update(dict.fromkeys(item.verbs))
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": list(found)}
        for (group, resource), found in verbs.items()
    ]


def role(where: str, home: str, operators: Sequence[str] = (), routes: Sequence[str] = ()) -> list[Object]:
    """Return Role and binding for one namespace of the work."""
    metadata = {"name": NAME, "namespace": where, "labels": dict(LABELS)}
    offered = (*(work.ROUTES[kind] for kind in routes), *(work.OPERATORS[name] for name in operators))
    granted = rules((*work.NAMESPACED, *probing.NAMESPACED, *(line for lines in offered for line in lines)))
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": granted},
        {**_binding("Role", NAME, home), "metadata": dict(metadata)},
    ]


def cluster_role(home: str, name: str) -> list[Object]:
    """Return what belongs to no namespace: reviews of tokens, and reading nodes."""
    metadata = {"name": name, "labels": dict(LABELS)}
    granted = rules((*work.CLUSTER, *probing.CLUSTER))
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": granted},
        {**_binding("ClusterRole", name, home), "metadata": dict(metadata)},
    ]


def _binding(kind: str, name: str, home: str) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": home}],
    }


def claim(site: Installation) -> Object:
    """Return the claim for what the dispatcher keeps: reports that wait for the link, its plan of probes."""
    spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if site.storage_class:
        spec["storageClassName"] = site.storage_class
    return _object(site, "v1", "PersistentVolumeClaim", {"spec": spec})


def service(site: Installation) -> Object:
    """Return the address at which pods ask for the lease."""
    spec = {
        "selector": {"app.kubernetes.io/name": NAME},
        "ports": [{"name": "keeper", "port": KEEPER_PORT, "targetPort": "keeper"}],
    }
    return _object(site, "v1", "Service", {"spec": spec})


def deployment(site: Installation) -> Object:
    """Return the dispatcher: one, and never two at a time, since its directory and its connection are one."""
    spec = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
        "template": {"metadata": {"labels": dict(LABELS)}, "spec": _pod(site)},
    }
    return _object(site, "apps/v1", "Deployment", {"spec": spec})


def _pod(site: Installation) -> Object:
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 45,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(site)],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": NAME}},
            {"name": "bindings", "configMap": {"name": NAME}},
            {"name": "credentials", "secret": {"secretName": NAME, "defaultMode": 0o440}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }


def _container(site: Installation) -> Object:
    settings = {
        "LANDBRIDGE_ENVIRONMENT": site.environment,
        "LANDBRIDGE_NATS_URL": site.nats_url,
        "LANDBRIDGE_NATS_CREDS": "/credentials/dispatcher.creds",
        "LANDBRIDGE_DATA_DIR": "/data",
        "LANDBRIDGE_BINDINGS": "/bindings/bindings.yaml",
        "LANDBRIDGE_HTTP_HOST": "0.0.0.0",  # noqa: S104 - probes of the kubelet; the NetworkPolicy lets nobody else
        "LANDBRIDGE_HTTP_PORT": str(HTTP_PORT),
    }
    return {
        "name": "dispatcher",
        "image": site.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["landbridge-dispatcher"],
        "env": [{"name": name, "value": value} for name, value in settings.items()],
        "ports": [
            {"name": "keeper", "containerPort": KEEPER_PORT},
            {"name": "http", "containerPort": HTTP_PORT},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "192Mi"}, "limits": {"cpu": "2", "memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "startupProbe": {**_health("startupz"), "periodSeconds": 2, "failureThreshold": 90},
        # Not ready means that the link is cut; it must not be restarted for that.
        "readinessProbe": {**_health("readyz"), "periodSeconds": 5},
        "livenessProbe": {**_health("livez"), "periodSeconds": 10, "failureThreshold": 6},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "bindings", "mountPath": "/bindings", "readOnly": True},
            {"name": "credentials", "mountPath": "/credentials", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of its own, below a read-only root
        ],
    }


def _health(path: str) -> Object:
    return {"httpGet": {"path": f"/{path}", "port": "http"}, "timeoutSeconds": 2}


def disruption_budget(site: Installation) -> Object:
    """Return the budget. There is one pod: it may be moved, since work goes on meanwhile and the Jobs tell the rest."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app.kubernetes.io/name": NAME}}}
    return _object(site, "policy/v1", "PodDisruptionBudget", {"spec": spec})


def network_policy(site: Installation) -> Object:
    """Return what the dispatcher's pod may reach, and that only the work's pods reach it, at the keeper's port."""
    spaces = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(site.work_namespaces)}
    spec = {
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {
                "from": [{"namespaceSelector": {"matchExpressions": [spaces]}}],
                "ports": [{"protocol": "TCP", "port": KEEPER_PORT}],
            }
        ],
        "egress": [
            {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
            {"ports": [{"protocol": "TCP", "port": port} for port in (*site.api_ports, *site.nats_ports)]},
        ],
    }
    return _object(site, "networking.k8s.io/v1", "NetworkPolicy", {"spec": spec})


def _object(site: Installation, version: str, kind: str, rest: Mapping[str, Any]) -> Object:
    metadata = {"name": NAME, "namespace": site.namespace, "labels": dict(LABELS)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def table(permissions: Sequence[work.Permission]) -> list[str]:
    """Return the rows of a table for people: resource, verbs, why."""
    rows = []
    for item in permissions:
        resource = f"{item.resource}.{item.api_group}" if item.api_group else item.resource
        rows.append(f"| `{resource}` | {', '.join(item.verbs)} | {item.why} |")
    return rows
