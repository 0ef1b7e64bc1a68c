"""All that the executor may ask of a cluster's API, line by line. Manifests and documentation are made from this.

Everything but the last line is granted in the namespaces of the work only. Nothing here reads a Secret, enters a pod or
changes rights.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Permission:
    """One rule of a Role. `api_group` is empty for the core group; `why` is for people."""

    api_group: str
    resource: str
    verbs: tuple[str, ...]
    why: str


NAMESPACED: Final = (
    Permission(
        "batch",
        "jobs",
        ("get", "list", "watch", "create", "patch", "delete"),
        "a Job is the slot of a placement: created once, started, stopped and recorded in by patches, then removed",
    ),
    Permission(
        "",
        "pods",
        ("get", "list", "watch", "delete"),
        "to see how work stands, and to end it with its grace",
    ),
    Permission("", "pods/log", ("get",), "logs are read when an authorised person asks, and stored nowhere else"),
    Permission("", "events", ("list",), "why a pod cannot be placed or mounted, or a Job may not make one"),
    Permission("", "services", ("get", "create", "patch"), "addresses of gangs and services; they go with their Job"),
    Permission("apps", "deployments", ("get", "list", "watch", "create", "patch"), "services; they go with their Job"),
    Permission(
        "",
        "configmaps",
        ("create",),
        "wrapper and carrier, which pods mount; immutable, one for each release",
    ),
    Permission("", "persistentvolumeclaims", ("get",), "a claim that is not there is refused before anything starts"),
    Permission("", "serviceaccounts", ("get",), "an identity that is nobody here is refused before anything starts"),
    Permission(
        "resource.k8s.io",
        "resourceclaimtemplates",
        ("get", "create"),
        "classes reached through device classes",
    ),
)
"""A Role in each namespace of the work."""

_WAYS: Final = "the way to a service from outside; it goes with its Job"
ROUTES: Final = {
    "Ingress": (Permission("networking.k8s.io", "ingresses", ("get", "create", "patch"), _WAYS),),
    "HTTPRoute": (Permission("gateway.networking.k8s.io", "httproutes", ("get", "create", "patch"), _WAYS),),
}
"""Added to the Role where the bindings offer a route, by the kind of its object."""

_GANGS: Final = "gangs; created once, suspended to end; they go with their Job"
_FOLLOWED: Final = ("get", "list", "watch", "create", "patch")
OPERATORS: Final = {
    "jobset": (Permission("jobset.x-k8s.io", "jobsets", _FOLLOWED, _GANGS),),
    "kubeflow-training": (Permission("kubeflow.org", "pytorchjobs", _FOLLOWED, _GANGS),),
    "kubeflow-trainer": (
        Permission("trainer.kubeflow.org", "trainjobs", _FOLLOWED, _GANGS),
        Permission(
            "trainer.kubeflow.org", "trainingruntimes", ("get", "create"), "what a TrainJob takes its pods from"
        ),
        Permission(
            "jobset.x-k8s.io",
            "jobsets",
            ("get", "list", "watch"),
            "who made the Jobs of a TrainJob: they are its set's",
        ),
    ),
    "kuberay": (
        Permission("ray.io", "rayjobs", _FOLLOWED, _GANGS),
        Permission(
            "ray.io", "rayclusters", ("get", "list", "watch"), "who made the pods of a RayJob: they are its cluster's"
        ),
    ),
}
"""Added to the Role for the operators that the site offers, and for no others."""

CLUSTER: Final = (
    Permission(
        "authentication.k8s.io",
        "tokenreviews",
        ("create",),
        "to be sure which pod asks the lease keeper; it shows nothing but whether a token that one has is good",
    ),
)
"""A ClusterRole: this resource belongs to no namespace."""
