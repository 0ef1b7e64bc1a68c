"""What probes ask of a cluster's API besides what work needs. Manifests and documentation are made from this."""

from typing import Final

from landbridge_dispatch.executors.kubernetes.permissions import Permission

NAMESPACED: Final = (
    Permission(
        "",
        "pods",
        ("create",),
        "dry runs only: a pod that the contract forbids has to be refused; whoever creates Jobs creates pods anyway",
    ),
    Permission(
        "",
        "serviceaccounts/token",
        ("create",),
        "short-lived tokens are issued for the roles of the contract, and show what these may not do",
    ),
)
"""Added to the Role in each namespace of the work."""

CLUSTER: Final = (
    Permission(
        "",
        "nodes",
        ("get", "list", "watch"),
        "which nodes there are, with which boot, driver and devices: a proof is about a node as it is; and whether"
        " work may run on of which nothing is told",
    ),
    Permission("resource.k8s.io", "resourceslices", ("list",), "how many devices a node has for claims"),
    Permission("resource.k8s.io", "deviceclasses", ("get",), "whose devices a device class stands for"),
)
"""Added to the ClusterRole: these belong to no namespace, and are only read."""
