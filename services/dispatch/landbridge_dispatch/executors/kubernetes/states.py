"""What a cluster's own words mean here: one table, read from top to bottom; the first row that fits counts. Pure.

docs/reference/kubernetes-states.md is written from it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from landbridge_dispatch.executors.kubernetes.facts import PodFacts
from landbridge_dispatch.executors.kubernetes.operators.told import NOT_TOLD, State, Told
from landbridge_dispatch.executors.kubernetes.remains import Remains


class Meaning(StrEnum):
    """What follows for the slot."""

    WAITS = "waits"
    NOT_STARTED = "failed to start"
    DENIED = "given back"
    RUNS = "runs"
    ENDED = "ended"


class Patience(StrEnum):
    """How long a state is looked at before it counts."""

    NONE = "at once"
    SHORT = "30 s"
    LONG = "startWithin"


@dataclass(frozen=True, slots=True)
class Seen:
    """A pod of a slot. `claimed`: it took the slot, so that the workload has started."""

    pod: PodFacts
    remains: Remains
    claimed: bool
    stopping: str = ""
    told: Told = NOT_TOLD
    """What the operator says that runs the slot, if one does."""
    warned: str = ""
    """The reason of the latest warning about the pod, as its events say it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One state of a pod. `outcome` and `reason` as reports tell them; empty: see the text, or what was found.

    `waits_as`: the code of the row from whose first sight patience is counted; empty: this one's.
    """

    code: str
    sign: str
    fits: Callable[[Seen], bool]
    meaning: Meaning
    outcome: str = ""
    reason: str = ""
    patience: Patience = Patience.NONE
    text: str = ""
    waits_as: str = ""


def row_of(seen: Seen) -> Row:
    """Return the row that fits; the last one fits everything."""
    return next(row for row in ROWS if row.fits(seen))


def _ended(seen: Seen) -> bool:
    return seen.claimed and seen.pod.over


def _not_told(seen: Seen) -> bool:
    return seen.claimed and seen.pod.ended and not seen.pod.over


def _never(seen: Seen) -> bool:
    # Whatever runs of it, the keeper lets it take nothing any more.
    return not seen.claimed and seen.pod.ended


def _disrupted(*reasons: str) -> Callable[[Seen], bool]:
    return lambda seen: seen.pod.disruption in reasons and not seen.stopping


def _waiting(*reasons: str) -> Callable[[Seen], bool]:
    return lambda seen: not seen.claimed and seen.pod.waiting in reasons


def _creating(*warnings: str) -> Callable[[Seen], bool]:
    """Fit a container that is not created yet; with warnings: while the latest one about its pod is one of these."""
    waits = _waiting("ContainerCreating", "PodInitializing")
    return lambda seen: waits(seen) and (not warnings or seen.warned in warnings)


def _both(first: Callable[[Seen], bool], second: Callable[[Seen], bool]) -> Callable[[Seen], bool]:
    return lambda seen: first(seen) and second(seen)


_EVICTED: Final = ("EvictionByEvictionAPI", "TerminationByKubelet")
_LOST: Final = ("DeletionByTaintManager", "DeletionByPodGC")
_NO_SANDBOX: Final = ("FailedCreatePodSandBox", "FailedPodSandBoxStatus", "NetworkNotReady")
_NO_VOLUME: Final = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
TELLING: Final = frozenset({*_NO_SANDBOX, *_NO_VOLUME})
"""Warnings that say why a container is not created."""
_NO_SHELL: Final = ("StartError", "ContainerCannotRun", "RunContainerError", "CreateContainerError")


def _evicted(seen: Seen) -> bool:
    return seen.pod.status_reason == "Evicted" or _disrupted(*_EVICTED)(seen)


def _preempted(seen: Seen) -> bool:
    return seen.pod.status_reason == "Preempting" or _disrupted("PreemptionByScheduler")(seen)


def _node_lost(seen: Seen) -> bool:
    return (
        seen.pod.status_reason in ("NodeLost", "NodeShutdown", "Terminated")
        # Of a pod that somebody deletes before its container runs, nodes say the same.
        or (seen.pod.reason == "ContainerStatusUnknown" and not seen.pod.deleting)
        or _disrupted(*_LOST)(seen)
    )


def _without_shell(seen: Seen) -> bool:
    told = f"{seen.pod.waiting_message} {seen.pod.message} {seen.pod.status_message}"
    named = seen.pod.waiting in _NO_SHELL or seen.pod.reason in _NO_SHELL
    return not seen.claimed and named and ("sh" in told.split('"') or "/sh" in told)


def _operator(*states: State) -> Callable[[Seen], bool]:
    return lambda seen: seen.told.state in states


def _removed(seen: Seen) -> bool:
    return (seen.pod.deleting or (seen.pod.gone and not seen.pod.terminated)) and not seen.stopping


E_, N_, D_, W_, R_ = Meaning.ENDED, Meaning.NOT_STARTED, Meaning.DENIED, Meaning.WAITS, Meaning.RUNS

ROWS: Final = (
    # -- it had started ----------------------------------------------------------------------------------------------
    Row("stopped-itself", "the wrapper's word: self-stopped, timeout, moved or preempted",
        lambda seen: _ended(seen) and bool(seen.remains.cause), E_, text="as the wrapper says"),
    Row("stopped", "ended after a stop was ordered", lambda seen: _ended(seen) and bool(seen.stopping), E_, "cancelled",
        text="as the order says"),
    Row("succeeded", "pod `Succeeded`", lambda seen: _ended(seen) and seen.pod.succeeded, E_,
        text="completed, or failed by acceptance"),
    Row("evicted", "pod `Evicted`, or its condition `DisruptionTarget` says EvictionByEvictionAPI or"
        " TerminationByKubelet", _both(_ended, _evicted), E_, "failed", "evicted", text="the cluster evicted it"),
    Row("preempted-by-cluster", "pod `Preempting`, or `DisruptionTarget` says PreemptionByScheduler",
        _both(_ended, _preempted), E_, "failed", "preempted-by-cluster",
        text="the cluster's scheduler took its place for other work"),
    Row("node-lost", "pod `NodeLost`, `NodeShutdown`, `Terminated`, container `ContainerStatusUnknown` of a"
        " pod that nobody deletes, or `DisruptionTarget` says DeletionByTaintManager or DeletionByPodGC",
        _both(_ended, _node_lost), E_, "failed", "node-lost", text="its node was lost or shut down"),
    Row("out-of-memory", "container `OOMKilled`", lambda seen: _ended(seen) and seen.pod.reason == "OOMKilled", E_,
        "failed", "out-of-memory", text="used more memory than it may"),
    Row("ended-with-its-cluster", "pod deleted after the operator had said that the gang has ended (RayJob"
        " `Complete` or `Failed`)", lambda seen: _ended(seen) and seen.pod.deleting and seen.told.over, E_,
        text="by the driver's exit code, signal and acceptance"),
    Row("removed", "pod deleted, and nobody here ordered it", _both(_ended, _removed), E_, "failed",
        "removed-externally", text="somebody deleted its pod"),
    Row("exited", "container `Completed` or `Error`", lambda seen: _ended(seen) and seen.pod.terminated, E_,
        text="by exit code, signal and acceptance"),
    Row("failed-without-a-word", "pod `Failed`, and its node, ready all the while, tells of no container of it",
        _ended, E_, "failed", "node-lost", text="its node told nothing of its end"),
    Row("end-not-told", "pod `Failed` or gone, and its node has not said that its container has ended: see below",
        _not_told, R_, text="counts as running until it is sure that it does not"),
    # -- it never started --------------------------------------------------------------------------------------------
    Row("refused-by-the-keeper", "the wrapper's word: not-started",
        lambda seen: _never(seen) and seen.remains.not_started is not None, D_, text="as the wrapper says"),
    Row("evicted-before", "as `evicted`, before the start", _both(_never, _evicted), N_, reason="evicted",
        text="the cluster evicted it before it had started"),
    Row("preempted-before", "as `preempted-by-cluster`, before the start", _both(_never, _preempted), N_,
        reason="preempted-by-cluster", text="the scheduler took its place before it had started"),
    Row("lost-before", "as `node-lost`, before the start", _both(_never, _node_lost), N_, reason="node-lost",
        text="its node was lost before it had started"),
    Row("not-wrappable", "as `start-error`, and its message speaks of sh", _without_shell, N_,
        reason="image-not-wrappable", text="the image has no sh for the wrapper to run in, so that neither lease nor"
        " policy could be kept: use an image with sh, or let the site name a wrapper image"),
    Row("start-error", "container `StartError`, `ContainerCannotRun`, `RunContainerError`, `CreateContainerError`",
        lambda seen: not seen.claimed and (seen.pod.waiting in _NO_SHELL or seen.pod.reason in _NO_SHELL), N_,
        reason="failed-to-start", text="the container cannot be started"),
    Row("node-refused", "pod `Failed` by its node (`OutOfcpu`, `NodeAffinity`, `UnexpectedAdmissionError`, …)",
        lambda seen: _never(seen) and bool(seen.pod.status_reason) and not seen.pod.terminated, N_,
        reason="node-refused", text="the node did not admit it"),
    Row("removed-before", "pod deleted before the start, and nobody here ordered it", _both(_never, _removed), N_,
        reason="removed-externally", text="somebody deleted its pod before it had started"),
    Row("ended-before", "container ended before the keeper had allowed a start", _never, N_, reason="failed-to-start",
        text="the wrapper ended before the start"),
    Row("image-name", "container `InvalidImageName` or `ErrImageNeverPull`",
        _waiting("InvalidImageName", "ErrImageNeverPull"), N_, reason="image-not-accepted",
        text="the image cannot be used"),
    Row("image-pull", "container `ErrImagePull` or `ImagePullBackOff`",
        _waiting("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed"), N_,
        reason="image-pull-failed", patience=Patience.SHORT, text="the image cannot be pulled"),
    Row("configuration", "container `CreateContainerConfigError`", _waiting("CreateContainerConfigError"), N_,
        reason="secret-unavailable", patience=Patience.SHORT, text="a Secret or ConfigMap is missing, or a key of it"),
    Row("operator-failed", "the operator says that the gang has failed (condition `Failed` of a JobSet, TrainJob or"
        " PyTorchJob, RayJob"
        " `Failed` or `ValidationFailed`), and no member has taken the slot",
        lambda seen: not seen.claimed and _operator(State.FAILED)(seen), N_, reason="failed-to-start",
        patience=Patience.SHORT, text="the operator failed before it had started"),
    Row("operator-done", "the operator says that the gang has ended, and no member has taken the slot",
        lambda seen: not seen.claimed and _operator(State.SUCCEEDED)(seen), N_, reason="failed-to-start",
        patience=Patience.SHORT, text="the operator ended it before it had started"),
    Row("operator-object-gone", "the operator's object is not there, and no pod either",
        lambda seen: not seen.claimed and not seen.pod.uid and _operator(State.GONE)(seen), N_,
        reason="removed-externally", patience=Patience.SHORT, text="somebody removed the operator's object"),
    Row("operator-suspended", "the operator says that it is suspended (a queue lets it start later)",
        lambda seen: not seen.claimed and not seen.pod.uid and _operator(State.SUSPENDED)(seen), W_,
        text="waits in a queue of the cluster"),
    Row("unschedulable", "pod not scheduled: `Unschedulable`, `SchedulingGated`",
        lambda seen: not seen.claimed and bool(seen.pod.scheduled), W_, text="waits for a node: the scheduler's words"),
    Row("no-volume", "container `ContainerCreating` or `PodInitializing` for longer than expected, and the pod's latest"
        " warning is `FailedMount`, `FailedAttachVolume` or `FailedMapVolume`", _creating(*_NO_VOLUME), N_,
        reason="connection-unavailable", patience=Patience.LONG, text="a volume cannot be mounted",
        waits_as="creating"),
    Row("no-sandbox", "as `no-volume`, with the warning `FailedCreatePodSandBox`, `FailedPodSandBoxStatus` or"
        " `NetworkNotReady`", _creating(*_NO_SANDBOX), N_, reason="sandbox-unavailable", patience=Patience.LONG,
        text="its node cannot make the pod's sandbox: look at its network plugin and container runtime",
        waits_as="creating"),
    Row("creating", "container `ContainerCreating` or `PodInitializing` for longer than expected, and no warning says"
        " why", _creating(), N_, reason="not-created", patience=Patience.LONG,
        text="its node did not create the container in time, and does not say why"),
    # -- it goes on --------------------------------------------------------------------------------------------------
    Row("running", "the pod that took the slot runs", lambda seen: seen.claimed, R_, text="runs"),
    Row("waiting", "anything else before the start", lambda _seen: True, W_, text="is being started"),
)  # fmt: skip
"""The table."""
