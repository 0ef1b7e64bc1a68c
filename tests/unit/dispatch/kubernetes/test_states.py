"""Every row of the table, seen through what really decides: the Job and its pods as the cluster shows them."""

from typing import Any

import pytest

from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.facts import PodFacts, pod_facts
from landbridge_dispatch.executors.kubernetes.operators.told import NOT_TOLD, State, Told
from landbridge_dispatch.executors.kubernetes.progress import Progress, progress
from landbridge_dispatch.executors.kubernetes.remains import read_remains
from landbridge_dispatch.executors.kubernetes.states import ROWS, Meaning, Seen, row_of
from landbridge_dispatch.executors.kubernetes.vouching import NodeFacts, Standing, heard
from unit.dispatch.kubernetes.things import a_job, a_pod

NOW = 2_000_000_000.0
READY = NodeFacts(Standing.READY)


def disrupted(reason: str) -> tuple[dict[str, str], ...]:
    return ({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "by the cluster"},)


def unscheduled(reason: str, message: str) -> tuple[dict[str, str], ...]:
    return ({"type": "PodScheduled", "status": "False", "reason": reason, "message": message},)


ERROR = {"reason": "Error", "exitCode": 1}
KILLED = {"reason": "Error", "exitCode": 143}
NO_SHELL = {"reason": "StartError", "exitCode": 128, "message": 'exec: "/bin/sh": stat /bin/sh: no such file'}
FAILED = {"phase": "Failed"}
UNKNOWN = {"reason": "ContainerStatusUnknown", "exitCode": 137}
"""What a node says of a container that never ran, when its pod is deleted."""

RUNNING = {"name": names.CONTAINER, "state": {"running": {"startedAt": "2026-12-01T10:00:05Z"}}}
CREATING: dict[str, Any] = {"phase": "Pending", "waiting": ("ContainerCreating", "")}
WARNED = {"no-volume": "FailedMount", "no-sandbox": "FailedCreatePodSandBox"}
"""What the events of a pod say, by the row that it leads to."""

# Row code → pod, whether it took the slot, what follows: (outcome, reason) of an end, or (meaning, reason).
STARTED: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "stopped-itself": ({**FAILED, "exited": KILLED | {"message": "status 143\ncause timeout"}}, ("failed", "timeout")),
    "stopped": ({**FAILED, "exited": KILLED, "deleting": True}, ("cancelled", "cancelled")),
    "succeeded": ({"phase": "Succeeded", "exited": {"reason": "Completed", "exitCode": 0}}, ("completed", "")),
    "evicted": ({**FAILED, "exited": KILLED, "conditions": disrupted("TerminationByKubelet")}, ("failed", "evicted")),
    "preempted-by-cluster": ({**FAILED, "exited": KILLED, "conditions": disrupted("PreemptionByScheduler")},
                             ("failed", "preempted-by-cluster")),
    "node-lost": ({**FAILED, "exited": KILLED, "conditions": disrupted("DeletionByTaintManager")},
                  ("failed", "node-lost")),
    "out-of-memory": ({**FAILED, "exited": {"reason": "OOMKilled", "exitCode": 137}}, ("failed", "out-of-memory")),
    "removed": ({**FAILED, "exited": KILLED, "deleting": True}, ("failed", "removed-externally")),
    "exited": ({**FAILED, "exited": ERROR | {"exitCode": 3, "message": "status 3"}}, ("failed", "exit-code")),
    "failed-without-a-word": (FAILED, ("failed", "node-lost")),
    "end-not-told": ({**FAILED, "containerStatuses": [RUNNING]}, ("", "")),
    "running": ({}, ("", "")),
}  # fmt: skip
BEFORE: dict[str, tuple[dict[str, Any], tuple[Meaning, str]]] = {
    "refused-by-the-keeper": ({**FAILED, "exited": {"exitCode": 78, "message": "not-started no-lease none that does"}},
                              (Meaning.DENIED, "no-lease")),
    "evicted-before": ({**FAILED, "reason": "Evicted"}, (Meaning.NOT_STARTED, "evicted")),
    "preempted-before": ({**FAILED, "reason": "Preempting"}, (Meaning.NOT_STARTED, "preempted-by-cluster")),
    "lost-before": ({**FAILED, "reason": "NodeLost"}, (Meaning.NOT_STARTED, "node-lost")),
    "not-wrappable": ({**FAILED, "exited": NO_SHELL}, (Meaning.NOT_STARTED, "image-not-wrappable")),
    "start-error": ({"phase": "Pending", "waiting": ("CreateContainerError", "no such device")},
                    (Meaning.NOT_STARTED, "failed-to-start")),
    "node-refused": ({**FAILED, "reason": "OutOfcpu"}, (Meaning.NOT_STARTED, "node-refused")),
    "removed-before": ({**FAILED, "deleting": True, "exited": UNKNOWN}, (Meaning.NOT_STARTED, "removed-externally")),
    "ended-before": ({**FAILED, "exited": ERROR}, (Meaning.NOT_STARTED, "failed-to-start")),
    "image-name": ({"phase": "Pending", "waiting": ("InvalidImageName", "")},
                   (Meaning.NOT_STARTED, "image-not-accepted")),
    "image-pull": ({"phase": "Pending", "waiting": ("ImagePullBackOff", "back-off")},
                   (Meaning.NOT_STARTED, "image-pull-failed")),
    "configuration": ({"phase": "Pending", "waiting": ("CreateContainerConfigError", "secret not found")},
                      (Meaning.NOT_STARTED, "secret-unavailable")),
    "unschedulable": ({"phase": "Pending", "conditions": unscheduled("Unschedulable", "0/3 nodes: 3 lack gpu")},
                      (Meaning.WAITS, "")),
    "no-volume": (CREATING, (Meaning.NOT_STARTED, "connection-unavailable")),
    "no-sandbox": (CREATING, (Meaning.NOT_STARTED, "sandbox-unavailable")),
    "creating": (CREATING, (Meaning.NOT_STARTED, "not-created")),
    "waiting": ({"phase": "Pending"}, (Meaning.WAITS, "")),
}  # fmt: skip


# Row code → what the operator says, the pod if there is one, whether it took the slot, what follows as above.
BY_OPERATOR: dict[str, tuple[State, dict[str, Any] | None, tuple[Any, str]]] = {
    "ended-with-its-cluster": (
        State.SUCCEEDED, {**FAILED, "exited": KILLED | {"message": "status 0"}, "deleting": True}, ("completed", ""),
    ),
    "operator-failed": (State.FAILED, {"phase": "Running"}, (Meaning.NOT_STARTED, "failed-to-start")),
    "operator-done": (State.SUCCEEDED, None, (Meaning.NOT_STARTED, "failed-to-start")),
    "operator-object-gone": (State.GONE, None, (Meaning.NOT_STARTED, "removed-externally")),
    "operator-suspended": (State.SUSPENDED, None, (Meaning.WAITS, "")),
}  # fmt: skip


def decided(
    job: dict[str, Any],
    pods: list[dict[str, Any]],
    since: float = 0.0,
    told: Told = NOT_TOLD,
    warned: str | None = "",
) -> Progress:
    return progress(
        job,
        pods,
        NOW,
        long_s=600,
        since=lambda _code: since,
        told=told,
        warned=lambda _uid: warned,
        node=lambda _name: READY,
    )


def test_every_row_has_a_case() -> None:
    assert {row.code for row in ROWS} == STARTED.keys() | BEFORE.keys() | BY_OPERATOR.keys()


@pytest.mark.parametrize("code", BY_OPERATOR)
def test_of_what_an_operator_says(code: str) -> None:
    state, fields, (meaning, reason) = BY_OPERATOR[code]
    claimed = not isinstance(meaning, Meaning)
    job, told = a_job(claims={"0": "pod-1"} if claimed else None), Told(state, "the operator's words")
    pods = [a_pod(**fields)] if fields is not None else []
    facts = pod_facts(pods[0]) if pods else PodFacts(uid="")
    row = row_of(Seen(facts, read_remains(facts.message), claimed=claimed, told=told))
    assert row.code == code

    found = decided(job, pods, told=told)

    if claimed:
        assert found.end is not None
        assert (found.end.outcome, found.end.reason) == (meaning, reason)
    else:
        assert row.meaning is meaning
        assert (found.grave is None) is (meaning is Meaning.WAITS)
        assert found.grave is None or found.grave.reason == reason
        assert pods or "the operator's words" in (
            found.provider or found.grave.message if found.grave else found.provider
        )


def test_what_only_the_operator_saw_counts_where_the_pods_are_gone() -> None:
    job = a_job(claims={"0": "pod-1"}, acceptance=[{"metric": "auc", "atLeast": 0.8}])
    done = decided(a_job(claims={"0": "pod-1"}), [], told=Told(State.SUCCEEDED, "Complete")).end
    unproven = decided(job, [], told=Told(State.SUCCEEDED, "Complete")).end
    failed = decided(job, [], told=Told(State.FAILED, "Failed (AppFailed)")).end
    assert done is not None
    assert unproven is not None
    assert failed is not None
    assert (done.outcome, done.exit_code) == ("completed", None)
    assert (unproven.outcome, unproven.reason) == ("failed", "acceptance-not-met")
    assert (failed.outcome, failed.reason, failed.message) == ("failed", "operator-failed", "Failed (AppFailed)")


@pytest.mark.parametrize("code", STARTED)
def test_of_work_that_has_started(code: str) -> None:
    fields, (outcome, reason) = STARTED[code]
    pod, job = a_pod(**fields), a_job(claims={"0": "pod-1"})
    stopping = "cancelled" if code == "stopped" else ""
    if stopping:
        job["metadata"]["annotations"][names.STOP] = records.encode(records.Stop(stopping, 1000, 1.0))
    [facts] = heard([pod_facts(pod)], NOW, lambda _name: READY, lambda _code: 0.0).pods
    assert row_of(Seen(facts, read_remains(facts.message), claimed=True, stopping=stopping)).code == code

    end = decided(job, [pod]).end

    assert (end is None) is (code in ("running", "end-not-told"))
    if end is not None:
        assert (end.outcome, end.reason) == (outcome, reason)


@pytest.mark.parametrize("code", BEFORE)
def test_of_work_that_has_not_started(code: str) -> None:
    fields, (meaning, reason) = BEFORE[code]
    pod = a_pod(**fields)
    facts = pod_facts(pod)
    warned = WARNED.get(code, "")
    row = row_of(Seen(facts, read_remains(facts.message), claimed=False, warned=warned))
    assert (row.code, row.meaning) == (code, meaning)

    grave = decided(a_job(), [pod], warned=warned).grave

    assert (grave is None) is (meaning is Meaning.WAITS)
    if grave is not None:
        assert (grave.reason, grave.denied) == (reason, meaning is Meaning.DENIED)


def test_the_schedulers_words_are_kept() -> None:
    pod = a_pod(phase="Pending", conditions=unscheduled("Unschedulable", "0/3 nodes: 3 lack gpu"))
    assert decided(a_job(), [pod]).provider == "Unschedulable: 0/3 nodes: 3 lack gpu"


def test_a_state_that_may_pass_is_looked_at_again_before_it_counts() -> None:
    pod = a_pod(phase="Pending", waiting=("ErrImagePull", "timeout"))
    early = decided(a_job(), [pod], since=NOW - 5)
    assert (early.grave, early.again_at) == (None, NOW + 25)
    late = decided(a_job(), [pod], since=NOW - 30)
    assert late.grave is not None


def test_why_a_container_is_not_created_is_asked_before_it_is_given_up_and_counted_from_its_first_sight() -> None:
    codes: dict[str, float] = {"creating": NOW - 600}
    pods, job = [a_pod(**CREATING)], a_job()

    def after(warned: str | None) -> Progress:
        return progress(job, pods, NOW, long_s=600, since=lambda code: codes.get(code, NOW), warned=lambda _uid: warned)

    unasked, told = after(None), after("FailedCreatePodSandBox")
    assert (unasked.grave, unasked.again_at) == (None, NOW + 1)
    assert told.grave is not None
    assert told.grave.reason == "sandbox-unavailable"
    early = decided(job, pods, since=NOW - 599, warned="FailedCreatePodSandBox")
    assert (early.grave, early.again_at) == (None, NOW + 1)


def test_a_pod_that_is_gone_without_an_order_was_removed_externally_and_is_not_cancelled() -> None:
    end = decided(a_job(claims={"0": "pod-1"}), []).end
    assert end is not None
    assert (end.outcome, end.reason) == ("failed", "removed-externally")


def test_a_pod_that_is_gone_after_an_order_was_stopped() -> None:
    job = a_job(claims={"0": "pod-1"})
    job["metadata"]["annotations"][names.STOP] = records.encode(records.Stop("cancelled", 1000, 1.0))
    end = decided(job, []).end
    assert end is not None
    assert (end.outcome, end.reason) == ("cancelled", "cancelled")


@pytest.mark.parametrize(("ordered", "told"), [("cancelled", "cancelled"), ("", "stopped")])
def test_a_stop_between_claim_and_start_is_told_by_the_reason_of_its_order(ordered: str, told: str) -> None:
    job = a_job(claims={"0": "pod-1"})
    if ordered:
        job["metadata"]["annotations"][names.STOP] = records.encode(records.Stop(ordered, 1000, 1.0))
    early = {"exitCode": 78, "message": "not-started stopped stopped before it had started"}
    grave = decided(job, [a_pod(phase="Failed", exited=ERROR | early, deleting=True)]).grave
    assert grave is not None
    assert (grave.reason, grave.denied) == (told, True)


def test_a_second_pod_of_the_job_is_not_the_one_that_counts() -> None:
    job = a_job(claims={"0": "pod-1"})
    other = a_pod(uid="pod-2", phase="Failed", exited=ERROR)
    assert decided(job, [a_pod(), other]).end is None


def test_a_gang_ends_when_none_runs_and_the_first_that_failed_tells() -> None:
    job = a_job(claims={"0": "pod-0", "1": "pod-1"}, type="distributed-job", replicas=2)
    first = a_pod(uid="pod-1", rank=1, phase="Failed", exited=ERROR | {"exitCode": 9, "message": "status 9"})
    running = a_pod(uid="pod-0", rank=0)
    assert decided(job, [running, first]).end is None
    ended = a_pod(uid="pod-0", rank=0, phase="Failed", exited=KILLED | {"message": "status 143"}, deleting=True)
    end = decided(job, [ended, first]).end
    assert end is not None
    assert (end.outcome, end.exit_code) == ("failed", 9)


def test_a_gang_is_completed_only_when_every_member_is() -> None:
    done = {"reason": "Completed", "exitCode": 0}
    job = a_job(claims={"0": "pod-0", "1": "pod-1"}, type="distributed-job", replicas=2)
    pods = [a_pod(uid=f"pod-{rank}", rank=rank, phase="Succeeded", exited=done) for rank in range(2)]
    end = decided(job, pods).end
    assert end is not None
    assert end.outcome == "completed"
    lacking = decided(job, pods[:1]).end
    assert lacking is not None
    assert lacking.reason == "removed-externally"


def test_a_gang_has_not_ended_while_a_member_has_still_to_take_its_rank() -> None:
    done = {"reason": "Completed", "exitCode": 0}
    job = a_job(claims={"0": "pod-0"}, type="distributed-job", replicas=2)
    first = a_pod(uid="pod-0", rank=0, phase="Succeeded", exited=done)
    assert decided(job, [first, a_pod(uid="pod-1", rank=1)]).end is None
    failed = a_pod(uid="pod-1", rank=1, phase="Failed", exited=ERROR)
    end = decided(job, [first, failed]).end
    assert end is not None
    assert (end.outcome, end.reason) == ("failed", "failed-to-start")


def test_acceptance_is_judged_by_what_the_wrapper_measured() -> None:
    told = "status 0\noutput model 12 " + "a" * 64 + '\nmetric {"name": "auc", "value": 0.5}'
    done = {"reason": "Completed", "exitCode": 0, "message": told}
    job = a_job(
        claims={"0": "pod-1"},
        outputs={"model": {"connection": "models"}},
        acceptance=[{"metric": "auc", "atLeast": 0.8}, {"output": "model", "exists": True}],
    )
    end = decided(job, [a_pod(phase="Succeeded", exited=done)]).end
    assert end is not None
    assert (end.outcome, end.reason) == ("failed", "acceptance-not-met")
    assert [item["met"] for item in end.acceptance] == [False, True]
    assert end.outputs["model"]["bytes"] == 12


def test_what_was_decided_once_is_not_decided_again() -> None:
    job = a_job(claims={"0": "pod-1"})
    job["metadata"]["annotations"][names.END] = records.encode(records.End(outcome="completed"))
    assert decided(job, []) == Progress()
