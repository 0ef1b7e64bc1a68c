"""A pod that took its slot has ended when that is sure: its node says so, or cannot, and shows it otherwise."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from landbridge.domain.ownership.policy import KILL_MARGIN_MS
from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.facts import GONE
from landbridge_dispatch.executors.kubernetes.operators.told import NOT_TOLD, State, Told
from landbridge_dispatch.executors.kubernetes.progress import Progress, progress
from landbridge_dispatch.executors.kubernetes.serving import service_progress
from landbridge_dispatch.executors.kubernetes.vouching import (
    MARGIN_S,
    OUT_OF_SERVICE,
    NodeFacts,
    Standing,
    Witnesses,
    node_facts,
)
from landbridge_dispatch.specification import STOP_GRACE_MS
from unit.dispatch.kubernetes.things import a_job, a_pod

GRACE_S = (STOP_GRACE_MS + KILL_MARGIN_MS) / 1000
"""Of pods here."""
WAIT_S = GRACE_S + MARGIN_S
BEGAN = 1_000_000.0
RUNNING = {"name": names.CONTAINER, "state": {"running": {"startedAt": "2026-12-01T10:00:05Z"}}}
EXITED = {"name": names.CONTAINER, "state": {"terminated": {"reason": "Error", "exitCode": 143}}}
BY_POD_GC = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "node is gone"}


@dataclass
class Looking:
    """A slot that is looked at again and again."""

    claims: dict[str, str] = field(default_factory=lambda: {"0": "pod-1"})
    spec: dict[str, Any] = field(default_factory=dict)
    node: NodeFacts = field(default_factory=lambda: NodeFacts(Standing.READY, "1"))
    _seen: dict[str, float] = field(default_factory=dict)

    def at(self, seconds: float, *pods: dict[str, Any], told: Told = NOT_TOLD, stopping: str = "") -> Progress:
        job = a_job(claims=self.claims, **self.spec)
        if stopping:
            job["metadata"]["annotations"][names.STOP] = records.encode(records.Stop(stopping, 1000, 1.0))
        now = BEGAN + seconds
        since = lambda code: self._seen.setdefault(code, now)  # noqa: E731
        return progress(job, pods, now, long_s=600, since=since, told=told, node=lambda _name: self.node)


def failed(*statuses: dict[str, Any], **fields: Any) -> dict[str, Any]:
    pod = a_pod(phase="Failed", containerStatuses=list(statuses), **fields)
    pod["spec"]["terminationGracePeriodSeconds"] = int(GRACE_S)
    return pod


def node(ready: str, *taints: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-12-01T10:00:00Z"}]
    return {
        "metadata": {"name": "n", "uid": "u"},
        "spec": {"taints": [{"key": key} for key in taints]},
        "status": {"conditions": conditions},
    }


def test_a_pod_that_counts_as_failed_while_its_container_runs_has_not_ended() -> None:
    slot = Looking()
    for seconds in (0, WAIT_S, 10 * WAIT_S):
        found = slot.at(seconds, failed(RUNNING))
        assert (found.end, found.grave) == (None, None)
        assert found.again_at > BEGAN + seconds
        assert found.provider == "Failed; node node-1 has not said that its container has ended"

    end = slot.at(11 * WAIT_S, failed(EXITED)).end
    assert end is not None
    assert (end.outcome, end.signal) == ("failed", 15)


@pytest.mark.parametrize("gone", [False, True])
def test_a_node_that_is_gone_takes_its_pods_with_it_after_their_grace(gone: bool) -> None:
    slot = Looking(node=NodeFacts(Standing.GONE))
    pod = failed(RUNNING, conditions=(BY_POD_GC,)) | ({GONE: True} if gone else {})
    assert slot.at(0, pod).end is None
    assert slot.at(WAIT_S - 1, pod).end is None
    found = slot.at(WAIT_S, pod)
    assert found.end is not None
    assert (found.end.outcome, found.end.reason, found.vouched) == ("failed", "node-lost", True)


def test_a_pod_that_left_no_trace_was_lost_with_its_node_or_removed() -> None:
    lost, removed = Looking(node=NodeFacts(Standing.GONE)), Looking()
    ends = []
    for slot in (lost, removed):
        assert slot.at(0).end is None
        assert slot.at(WAIT_S - 1).end is None
        found = slot.at(WAIT_S)
        assert found.vouched
        ends.append(found.end)
    assert [(end.outcome, end.reason) for end in ends if end is not None] == [
        ("failed", "node-lost"),
        ("failed", "removed-externally"),
    ]


@pytest.mark.parametrize("standing", [Standing.SILENT, Standing.UNKNOWN])
def test_of_a_node_that_is_not_heard_of_nothing_is_sure_however_long_it_takes(standing: Standing) -> None:
    slot = Looking(node=NodeFacts(standing))
    for pods in ((), (failed(RUNNING),), (failed(),)):
        for seconds in (0, WAIT_S, 100 * WAIT_S):
            found = slot.at(seconds, *pods)
            assert found.end is None
            assert standing in found.provider
            assert found.again_at <= BEGAN + seconds + 5


def test_time_counts_anew_when_the_node_stood_otherwise_meanwhile() -> None:
    slot = Looking()
    assert slot.at(0).end is None
    slot.node = NodeFacts(Standing.SILENT, "2")
    assert slot.at(WAIT_S - 5).end is None
    slot.node = NodeFacts(Standing.READY, "3")
    assert slot.at(WAIT_S).end is None
    assert slot.at(2 * WAIT_S - 1).end is None
    assert slot.at(2 * WAIT_S).end is not None


def test_a_node_that_is_ready_and_tells_of_no_container_has_none() -> None:
    """So it refuses a pod when it comes back after a restart and cannot have it any more."""
    slot = Looking()
    refused = failed(reason="NodeAffinity")
    assert slot.at(0, refused).end is None
    end = slot.at(WAIT_S, refused).end
    assert end is not None
    assert (end.outcome, end.reason) == ("failed", "node-lost")


def test_success_is_only_what_a_node_has_seen() -> None:
    slot = Looking()
    written = a_pod(phase="Succeeded", containerStatuses=[])
    assert slot.at(0, written).end is None
    end = slot.at(WAIT_S, written).end
    assert end is not None
    assert end.outcome == "failed"


def test_one_of_a_gang_of_which_nothing_is_sure_keeps_all_from_being_over() -> None:
    slot = Looking({"0": "pod-0", "1": "pod-1"}, {"type": "distributed-job", "replicas": 2})
    first = a_pod(uid="pod-0", rank=0, phase="Failed", exited={"reason": "Error", "exitCode": 9, "message": "status 9"})
    assert slot.at(0, first).end is None
    assert slot.at(WAIT_S - 1, first, failed(RUNNING, uid="pod-1", rank=1)).end is None
    end = slot.at(WAIT_S, first, failed(EXITED, uid="pod-1", rank=1)).end
    assert end is not None
    assert end.outcome == "failed"


def test_what_was_ordered_is_told_of_a_stopped_pod_that_left_no_trace() -> None:
    slot = Looking()
    assert slot.at(0, stopping="cancelled").end is None
    end = slot.at(WAIT_S, stopping="cancelled").end
    assert end is not None
    assert (end.outcome, end.reason) == ("cancelled", "cancelled")


@pytest.mark.parametrize(
    ("state", "operator", "sure"),
    [
        (State.SUCCEEDED, "jobset", True),
        (State.FAILED, "kuberay", True),
        (State.FAILED, "jobset", False),
        (State.RUNS, "kuberay", False),
    ],
)
def test_an_operator_that_has_seen_the_end_vouches_for_pods_that_it_took_away(
    state: State, operator: str, sure: bool
) -> None:
    slot = Looking(node=NodeFacts(Standing.SILENT))
    job = a_job(claims=slot.claims)
    record = records.record_of(job)
    assert record is not None
    job["metadata"]["annotations"][names.RECORD] = records.encode(replace(record, operator=operator))
    found = progress(
        job, [], BEGAN, long_s=600, since=lambda _code: BEGAN, told=Told(state, "words"), node=lambda _name: slot.node
    )
    assert (found.end is not None) is sure


def test_a_service_has_not_ended_while_a_pod_of_it_may_run() -> None:
    job = a_job(claims={"0": "deployment"}, type="service", ports={"web": {"port": 80}})
    noted = job["metadata"]["annotations"]
    noted[names.BEGUN] = "1.0"
    noted[names.STOP] = records.encode(records.Stop("cancelled", 1000, 1.0))
    record = records.record_of(job)
    assert record is not None
    removed = failed(RUNNING) | {GONE: True}

    def at(seconds: float, *pods: dict[str, Any]) -> Progress:
        return service_progress(
            job,
            record,
            None,
            pods,
            BEGAN + seconds,
            since=lambda _code: BEGAN,
            node=lambda _name: NodeFacts(Standing.READY),
        )

    assert at(0, a_pod()).end is None
    assert at(0, removed).end is None
    assert at(10 * WAIT_S, failed(RUNNING)).end is None
    for found in (at(WAIT_S, removed), at(0, failed(EXITED)), at(0, failed(reason="Evicted")), at(0)):
        assert found.end is not None
        assert found.end.reason == "cancelled"


def test_nodes_are_witnesses_as_they_stand() -> None:
    assert node_facts(None).standing is Standing.GONE
    assert node_facts(node("True")) == NodeFacts(Standing.READY, "u 2026-12-01T10:00:00Z")
    assert node_facts(node("Unknown")).standing is Standing.SILENT
    assert node_facts(node("False")).standing is Standing.SILENT
    assert node_facts({"metadata": {"name": "n"}}).standing is Standing.SILENT
    assert node_facts(node("Unknown", OUT_OF_SERVICE)).standing is Standing.GONE
    assert node_facts(node("True", OUT_OF_SERVICE)).standing is Standing.READY


def test_a_node_that_was_there_again_before_it_went_is_waited_for_anew() -> None:
    witnesses, slot = Witnesses(), Looking()
    pod = failed(RUNNING, conditions=(BY_POD_GC,))
    slot.node = witnesses.facts("node-1", None)
    assert slot.at(0, pod).end is None
    slot.node = witnesses.facts("node-1", node("True"))
    assert slot.at(WAIT_S - 1, pod).end is None
    slot.node = witnesses.facts("node-1", None)
    assert slot.at(WAIT_S + 1, pod).end is None
    assert slot.at(2 * WAIT_S, pod).end is None
    assert slot.at(2 * WAIT_S + 2, pod).end is not None
