"""What a pod's status says, reduced to what decisions need. Everything in it may be absent. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from landbridge_dispatch.executors.kubernetes import names

_INITIALIZING: Final = "PodInitializing"
GONE: Final = "gone"
"""Marks a pod as it was last, which is not there any more."""
TERMINAL: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class PodFacts:
    """One pod. `waiting` and `reason` are the container's own words, `disruption` why the cluster took it away.

    `gone`: it is not there any more. `listed`: it is, and its node tells of its container. `vouched`: how its node
    stands shows that nothing of it runs.
    """

    uid: str
    name: str = ""
    rank: int = 0
    phase: str = "Pending"
    status_reason: str = ""
    status_message: str = ""
    deleting: bool = False
    gone: bool = False
    listed: bool = False
    vouched: bool = False
    grace_s: float = 0.0
    node: str = ""
    scheduled: str = ""
    """Why it has no node, in the scheduler's words."""
    disruption: str = ""
    disruption_message: str = ""
    waiting: str = ""
    waiting_message: str = ""
    running: bool = False
    ready: bool = False
    terminated: bool = False
    reason: str = ""
    message: str = ""
    exit_code: int = 0
    finished_at: float = 0.0
    created_at: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether its cluster counts it as ended, which need not be so: enough where it never took its slot."""
        return self.terminated or self.gone or self.phase in TERMINAL

    @property
    def over(self) -> bool:
        """Whether its workload surely runs no more: phases are written by others, too."""
        return self.terminated or self.vouched

    @property
    def succeeded(self) -> bool:
        """Whether its cluster says so, and its node, too."""
        return self.phase == "Succeeded" and self.terminated

    @property
    def may_run(self) -> bool:
        """Whether something of it may run, as far as its cluster has told of a container."""
        return not self.over and (self.running or not self.ended)


def pod_facts(pod: Mapping[str, Any]) -> PodFacts:
    """Read a pod."""
    metadata, status, spec = pod["metadata"], pod.get("status") or {}, pod.get("spec") or {}
    conditions = {item.get("type"): item for item in status.get("conditions") or ()}
    scheduled, disruption = conditions.get("PodScheduled", {}), conditions.get("DisruptionTarget", {})
    work = _container(status.get("containerStatuses"), names.CONTAINERS)
    state = work.get("state") or {}
    ended, waits = state.get("terminated") or {}, _waiting(status, state)
    return PodFacts(
        uid=metadata["uid"],
        name=metadata["name"],
        rank=names.rank_of(pod),
        phase=status.get("phase") or "Pending",
        status_reason=status.get("reason") or "",
        status_message=status.get("message") or "",
        deleting=bool(metadata.get("deletionTimestamp")),
        gone=GONE in pod,
        listed=bool(work) and GONE not in pod,
        grace_s=float(spec.get("terminationGracePeriodSeconds") or 0),
        node=spec.get("nodeName") or "",
        scheduled=_told(scheduled) if scheduled.get("status") == "False" else "",
        disruption=disruption.get("reason") or "" if disruption.get("status") == "True" else "",
        disruption_message=disruption.get("message") or "",
        waiting=waits.get("reason") or "",
        waiting_message=waits.get("message") or "",
        running="running" in state,
        ready=bool(work.get("ready")),
        terminated=bool(ended),
        reason=ended.get("reason") or "",
        message=ended.get("message") or "",
        exit_code=int(ended.get("exitCode") or 0),
        finished_at=moment(ended.get("finishedAt")),
        created_at=moment(metadata.get("creationTimestamp")),
    )


def moment(text: object) -> float:
    """Return seconds since the epoch; 0 for none."""
    if not isinstance(text, str) or not text:
        return 0.0
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def condition(item: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return a condition of an object that holds; empty where it does not."""
    for found in (item.get("status") or {}).get("conditions") or ():
        if found.get("type") == kind and found.get("status") == "True":
            return dict(found)
    return {}


def _waiting(status: Mapping[str, Any], state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return why the workload's container waits: itself, or for one of those that go before it."""
    waits = state.get("waiting") or {}
    if state and waits.get("reason") != _INITIALIZING:
        return waits
    for name in (names.SHELL_CONTAINER, names.CARRIER):
        before = (_container(status.get("initContainerStatuses"), {name}).get("state") or {}).get("waiting") or {}
        if before and before.get("reason") not in (_INITIALIZING, "CrashLoopBackOff"):
            return dict(before)
    return waits


def _container(statuses: Any, named: Collection[str]) -> Mapping[str, Any]:
    return next((status for status in statuses or () if status.get("name") in named), {})


def _told(condition_: Mapping[str, Any]) -> str:
    reason, message = condition_.get("reason") or "", condition_.get("message") or ""
    return f"{reason}: {message}" if message else reason
