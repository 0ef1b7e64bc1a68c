"""Whether a pod runs no more whose end its node has not told. Pure.

A slot is given back only when it is sure that nothing of it runs on. That a pod is `Failed`, or is not there any more,
is the word of whoever wrote that: the control plane does so for pods of nodes that it cannot reach, an administrator
for whatever he likes. Only the node knows. Where it cannot or will not tell any more, it must be gone itself, as
Kubernetes asks of whoever owns the machine before anything of it is replaced; or it must have been in touch for long
enough to have ended what its cluster does not have any more.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from landbridge_dispatch.executors.kubernetes.facts import PodFacts

MARGIN_S: Final = 60.0
"""Added to a pod's grace; longer than the 50 s for which a cluster calls a node ready that it does not hear of."""
LOOK_S: Final = 5.0
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
NODE_LOST: Final = "NodeLost"


class Standing(StrEnum):
    """How a node stands, in words for people."""

    UNKNOWN = "cannot be read: see the dispatcher's ClusterRole"
    READY = "has not said that its container has ended"
    SILENT = "is not heard of: remove the Node once its machine is surely off"
    GONE = "is gone"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node as a witness. `mark` is another one when it stood otherwise meanwhile."""

    standing: Standing = Standing.UNKNOWN
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """Pods with what is sure of them. `doubt`: about whom and why it is not; `again_at`: when that may be otherwise."""

    pods: tuple[PodFacts, ...]
    doubt: str = ""
    again_at: float = 0.0


def node_facts(item: Mapping[str, Any] | None) -> NodeFacts:
    """Read a Node; None: it is not there."""
    if item is None:
        return NodeFacts(Standing.GONE)
    conditions = (item.get("status") or {}).get("conditions") or ()
    ready: Mapping[str, Any] = next((each for each in conditions if each.get("type") == "Ready"), {})
    mark = f"{item['metadata'].get('uid', '')} {ready.get('lastTransitionTime', '')}"
    if ready.get("status") == "True":
        return NodeFacts(Standing.READY, mark)
    taints = (item.get("spec") or {}).get("taints") or ()
    if any(taint.get("key") == OUT_OF_SERVICE for taint in taints):
        # Somebody's word that the machine is off; the cluster gives its pods up at that, too.
        return NodeFacts(Standing.GONE, f"out of service {mark}")
    return NodeFacts(Standing.SILENT, mark)


class Witnesses:
    """Nodes over time, by name: one that was there again before it went is another witness, and is waited for anew."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def facts(self, name: str, item: Mapping[str, Any] | None) -> NodeFacts:
        """Return how a node stands that is found as `item` now; None: it is not there."""
        if item is None:
            return replace(node_facts(None), mark=self._marks.get(name, ""))
        found = node_facts(item)
        self._marks[name] = found.mark
        return found


def heard(
    pods: Iterable[PodFacts],
    now: float,
    node: Callable[[str], NodeFacts],
    since: Callable[[str], float],
) -> Heard:
    """Return the pods, those vouched for whose nodes have shown it. `since`: when a state was first seen."""
    told, doubts, times = [], [], []
    for pod in pods:
        if pod.over or not pod.ended:
            told.append(pod)
            continue
        found = node(pod.node) if pod.node else NodeFacts()
        # A node that has the pod, and knows its container, tells its end itself.
        counts = found.standing is Standing.GONE or (found.standing is Standing.READY and not pod.listed)
        due = since(f"{pod.uid} {found.standing} {found.mark}") + pod.grace_s + MARGIN_S if counts else now + LOOK_S
        if counts and now >= due:
            lost = found.standing is Standing.GONE and not pod.status_reason
            told.append(replace(pod, vouched=True, status_reason=NODE_LOST if lost else pod.status_reason))
            continue
        told.append(pod)
        # What stands against it may change before its time has come.
        times.append(min(due, now + LOOK_S))
        doubts.append(f"{'its pod is gone, and ' if pod.gone else ''}node {pod.node} {found.standing}")
    return Heard(tuple(told), "; ".join(dict.fromkeys(doubts)), min(times, default=0.0))
