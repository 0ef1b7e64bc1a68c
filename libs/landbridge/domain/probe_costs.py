"""What running a probe costs an environment, in words for people. Pure."""

from collections.abc import Mapping
from typing import Final

from landbridge.domain import probe_kinds as kinds

_CLUSTER: Final[Mapping[str, str]] = {
    kinds.WORKLOAD: "a pod",
    kinds.CAPACITY: "a pod and a device for each node",
    kinds.CONNECTION: "a pod, 16 MiB",
    kinds.BANDWIDTH: "none: by the connection's pod",
    kinds.STORAGE: "a pod and 1 Gi",
    kinds.BOUNDARY: "dry runs and questions",
    kinds.SELF_STOP: "a pod for 8 s",
}
_PROCESS: Final[Mapping[str, str]] = {
    kinds.WORKLOAD: "a process",
    kinds.CONNECTION: "a file of 64 bytes",
    kinds.BOUNDARY: "none: nothing is started",
    kinds.SELF_STOP: "a process for 3 s",
}
_EVERYWHERE: Final[Mapping[str, str]] = {
    kinds.CLOCK: "none",
    kinds.CAPACITY: "none",
    kinds.CARBON: "a request to its source",
}


def cost_of(executor: str, kind: str) -> str:
    """Return what a probe of a kind costs where an executor runs it; empty where nobody has said."""
    own = {"kubernetes": _CLUSTER, "process": _PROCESS}.get(executor, {})
    return own.get(kind) or _EVERYWHERE.get(kind, "")
