"""Nodes, reduced to what a contract and probes need."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from landbridge.domain.discovering.quantities import QuantityError, millicores, whole

_PLAIN: Final = ("cpu", "memory", "pods", "ephemeral-storage")
_SPOT: Final = {
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "eks.amazonaws.com/capacityType": "SPOT",
    "karpenter.sh/capacity-type": "spot",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
# Taints that come and go with a node's health; tolerating them would be a mistake.
_PASSING: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")
_DRIVER: Final = (
    "nvidia.com/cuda.driver-version.full",
    "nvidia.com/cuda.driver.version",
    "amd.com/gpu.driver-version",
)
Taint = tuple[str, str, str]
"""Key, value and effect."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node. Amounts are what may be allocated: millicores and bytes. `devices` are extended resources."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    ready: bool
    architecture: str = ""
    os: str = ""
    boot: str = ""
    kernel: str = ""
    kubelet: str = ""
    runtime: str = ""
    provider: str = ""
    cpu: int = 0
    memory: int = 0
    scratch: int = 0
    devices: Mapping[str, int] = field(default_factory=dict)

    @property
    def driver(self) -> str:
        """Version of the accelerators' driver as labels tell it; empty: they do not."""
        for label in _DRIVER:
            if self.labels.get(label):
                return self.labels[label]
        parts = [self.labels.get(f"nvidia.com/cuda.driver.{part}", "") for part in ("major", "minor", "rev")]
        return ".".join(filter(None, parts))

    @property
    def interruptible(self) -> bool:
        return any(self.labels.get(label) == value for label, value in _SPOT.items())

    @property
    def subject(self) -> str:
        """What exactly a proof on this node is about: another boot, kernel, kubelet or driver voids it."""
        told = f"{self.name} boot {self.boot[:8]} kernel {self.kernel} kubelet {self.kubelet}"
        return f"{told} driver {self.driver}" if self.driver else told


def read_node(item: Mapping[str, Any]) -> Node:
    """Read a Node. What is missing or unreadable counts as nothing."""
    metadata, spec, status = item.get("metadata") or {}, item.get("spec") or {}, item.get("status") or {}
    info, allocatable = status.get("nodeInfo") or {}, status.get("allocatable") or {}
    conditions = {one.get("type"): one.get("status") for one in status.get("conditions") or ()}
    taints = tuple(
        (one.get("key", ""), one.get("value") or "", one.get("effect", "")) for one in spec.get("taints") or ()
    )
    return Node(
        name=metadata.get("name", ""),
        labels=metadata.get("labels") or {},
        taints=tuple(taint for taint in taints if not taint[0].startswith(_PASSING)),
        ready=conditions.get("Ready") == "True" and not spec.get("unschedulable"),
        architecture=info.get("architecture", ""),
        os=info.get("operatingSystem", ""),
        boot=info.get("bootID", ""),
        kernel=info.get("kernelVersion", ""),
        kubelet=info.get("kubeletVersion", ""),
        runtime=info.get("containerRuntimeVersion", ""),
        provider=str(spec.get("providerID") or "").partition(":")[0],
        cpu=_amount(allocatable.get("cpu", 0), cores=True),
        memory=_amount(allocatable.get("memory", 0)),
        scratch=_amount(allocatable.get("ephemeral-storage", 0)),
        devices={
            name: amount
            for name, text in allocatable.items()
            if _is_device(name) and (amount := _amount(text)) > 0
        },
    )  # fmt: skip


def _is_device(name: str) -> bool:
    return "/" in name and name not in _PLAIN and not name.startswith("attachable-volumes")


def _amount(text: Any, *, cores: bool = False) -> int:
    try:
        return max(0, millicores(text) if cores else whole(text))
    except QuantityError:
        return 0
