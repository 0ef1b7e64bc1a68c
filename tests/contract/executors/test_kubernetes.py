"""What only a cluster can do to work, and what its executor must not do to a cluster."""

import asyncio
from typing import Any

import pytest

from contract.executors.cluster import NAMESPACE, KubernetesHarness
from contract.executors.harness import Behaviour, Watcher, a_lease, a_work, make_executor, run, stop
from landbridge.domain.ownership.environment_model import FINAL, FinalReport, ReportState, SlotPhase
from landbridge.schema.wire.report_v1 import AttemptOutcome
from landbridge_dispatch.executors.kubernetes import events, names, progress, reconciling
from landbridge_dispatch.executors.protocol import Burial, RefusalCode, RefusedError, SlotView, Work
from support.wait import wait_until


def name_of(work: Work) -> str:
    return names.name_of(work.key)


def job_of(harness: KubernetesHarness, work: Work) -> dict[str, Any]:
    found = harness.cluster.get("jobs", name_of(work), namespace=NAMESPACE)
    assert found is not None
    return found


async def running(harness: KubernetesHarness, watcher: Watcher, **spec: Any) -> tuple[Work, dict[str, Any]]:
    """Work that runs, and its pod."""
    work = a_work(harness.command(Behaviour(seconds=60, log="once")), **spec)
    await run(harness.executor, work)
    await watcher.until(work.key, SlotPhase.RUNNING, timeout_s=30)
    await wait_until((harness.directory(work.key) / "ready").exists, "the workload is ready", timeout_s=30)
    [pod] = harness.cluster.pods_of(name_of(work), namespace=NAMESPACE)
    return work, pod


# -- two pods, no owner ------------------------------------------------------------------------------------------------


async def test_of_two_pods_of_one_slot_only_the_first_starts(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    work, pod = await running(kubernetes, cluster_watcher)
    second = {"metadata": {**pod["metadata"], "name": "second"}, "spec": {**pod["spec"]}}
    for field in ("uid", "resourceVersion", "creationTimestamp", "finalizers"):
        second["metadata"].pop(field, None)
    second["spec"].pop("nodeName", None)
    kubernetes.cluster.put("pods", second, namespace=NAMESPACE)

    def ended() -> dict[str, Any] | None:
        found = kubernetes.cluster.get("pods", "second", namespace=NAMESPACE)
        return found if found is not None and found["status"].get("phase") == "Failed" else None

    state = (await wait_until(ended, "the second pod has ended", timeout_s=30))["status"]["containerStatuses"][0][
        "state"
    ]

    assert state["terminated"]["message"].startswith("not-started slot-taken")
    assert "once" not in kubernetes.cluster.server.logs.texts.get((NAMESPACE, "second", names.CONTAINER), "")
    view = await kubernetes.executor.look(work.key)
    assert view is not None
    assert view.phase is SlotPhase.RUNNING


async def test_an_object_that_is_not_its_own_is_left_alone(kubernetes: KubernetesHarness) -> None:
    work = a_work(kubernetes.command(Behaviour()))
    kubernetes.cluster.controllers.jobs = False
    theirs = {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "theirs"}]}},
    }
    kubernetes.cluster.put("jobs", {"metadata": {"name": name_of(work)}, "spec": theirs}, namespace=NAMESPACE)
    before = job_of(kubernetes, work)

    [found] = await kubernetes.executor.occupy([work])
    await kubernetes.executor.start([work.key])
    await stop(kubernetes.executor, work)
    await kubernetes.executor.remove([work.key])

    assert isinstance(found, SlotView)
    assert found.spec_sha256 != work.spec_sha256
    after = job_of(kubernetes, work)
    assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
    assert "landbridge.io/term" not in (after["metadata"].get("annotations") or {})


async def test_a_tombstone_holds_in_every_namespace(kubernetes: KubernetesHarness) -> None:
    work = a_work(kubernetes.command(Behaviour()))
    report = FinalReport(ReportState.RELINQUISHED, "", "not-here")
    await kubernetes.executor.bury([Burial(work.key, report, 3)])

    [found] = await kubernetes.executor.occupy([work])

    assert isinstance(found, SlotView)
    assert (found.phase, found.final) == (SlotPhase.TOMBSTONE, report)


# -- things that are taken away ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["Background", "Orphan"])
async def test_a_slot_deleted_behind_our_back_is_told_as_empty_once_nothing_of_it_runs(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher, policy: str
) -> None:
    work, _ = await running(kubernetes, cluster_watcher)
    kubernetes.cluster.delete("jobs", name_of(work), namespace=NAMESPACE, policy=policy)

    await cluster_watcher.until(work.key, SlotPhase.EMPTY, timeout_s=60)

    left = [
        pod for pod in kubernetes.cluster.all_of("pods", namespace=NAMESPACE) if pod["status"]["phase"] == "Running"
    ]
    assert left == []


async def test_a_pod_deleted_behind_our_back_is_removed_externally_and_never_cancelled(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    work, pod = await running(kubernetes, cluster_watcher)
    kubernetes.cluster.delete("pods", pod["metadata"]["name"], namespace=NAMESPACE)

    view = await cluster_watcher.end(work.key, timeout_s=60)

    assert view.report is not None
    assert (view.report.outcome, view.reason) == (AttemptOutcome.FAILED, "removed-externally")


async def test_what_the_cluster_evicts_is_told_as_evicted(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    work, pod = await running(kubernetes, cluster_watcher)
    told = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "drained"}
    name = pod["metadata"]["name"]
    kubernetes.cluster.set_pod_status(name, {"conditions": [told]}, namespace=NAMESPACE)
    kubernetes.node.keeps_conditions = True
    kubernetes.cluster.delete("pods", name, namespace=NAMESPACE)

    view = await cluster_watcher.end(work.key, timeout_s=60)

    assert view.reason == "evicted"
    assert view.report is not None
    assert "drained" in view.report.message


async def test_an_end_is_told_the_same_while_its_pod_is_there_and_when_it_is_gone(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    work = a_work(kubernetes.command(Behaviour(exit_code=3)))
    await run(kubernetes.executor, work)
    first = await cluster_watcher.end(work.key, timeout_s=60)
    [pod] = kubernetes.cluster.pods_of(name_of(work), namespace=NAMESPACE)
    assert first.report is not None
    assert first.report.resolved is not None
    assert first.report.resolved.host == pod["spec"]["nodeName"]

    kubernetes.cluster.delete("pods", pod["metadata"]["name"], namespace=NAMESPACE, force=True)

    [again] = await kubernetes.executor.inventory()
    assert again.report == first.report
    await kubernetes.executor.close()
    kubernetes.executor = make_executor(kubernetes.home)
    await kubernetes.executor.open()
    assert await kubernetes.executor.look(work.key) == again, "whoever comes next tells it no differently"


# -- what keeps it from starting ---------------------------------------------------------------------------------------


async def pending(harness: KubernetesHarness, status: dict[str, Any]) -> Work:
    """Work whose pod is there and goes no further than the status says."""
    harness.node.accepts = False
    work = a_work(harness.command(Behaviour(log="must not run")))
    await run(harness.executor, work)
    await wait_until(lambda: harness.cluster.pods_of(name_of(work), namespace=NAMESPACE), "its pod is there")
    [pod] = harness.cluster.pods_of(name_of(work), namespace=NAMESPACE)
    harness.cluster.set_pod_status(pod["metadata"]["name"], status, namespace=NAMESPACE)
    return work


async def test_the_schedulers_words_are_shown_while_it_waits(kubernetes: KubernetesHarness) -> None:
    words = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: lack gpu"}
    work = await pending(kubernetes, {"conditions": [words]})

    async def shown() -> bool:
        view = await kubernetes.executor.look(work.key)
        return view is not None and view.report is not None and "0/3 nodes: lack gpu" in view.report.message

    await wait_until(shown, "the scheduler's words are shown")
    view = await kubernetes.executor.look(work.key)
    assert view is not None
    assert view.phase is SlotPhase.CREATED


async def test_an_image_that_cannot_be_pulled_fails_the_start_after_a_while(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SHORT_S", 0.5)
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
    work = await pending(kubernetes, {"containerStatuses": [{"name": names.CONTAINER, "state": waiting}]})

    view = await cluster_watcher.end(work.key)

    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "image-pull-failed", False)
    assert job_of(kubernetes, work)["spec"]["suspend"] is True
    await wait_until(
        lambda: not kubernetes.cluster.pods_of(name_of(work), namespace=NAMESPACE), "its pod is taken away again"
    )


async def test_what_keeps_a_container_from_being_created_is_told_by_the_warnings_that_say_so(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "STUCK_S", 0.2)
    monkeypatch.setattr(events, "AGAIN_S", 0.5)
    kubernetes.executor._reconciler._long_s = 2.0  # type: ignore[attr-defined]
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    work = await pending(kubernetes, {"containerStatuses": [{"name": names.CONTAINER, "state": waiting}]})
    [pod] = kubernetes.cluster.pods_of(name_of(work), namespace=NAMESPACE)
    for reason, message in (
        ("FailedCreatePodSandBox", "plugin type=bridge failed: no address"),
        ("MissingClusterDNS", "kubelet does not have ClusterDNS IP configured"),
    ):
        kubernetes.cluster.event("pods", pod["metadata"]["name"], reason, message, namespace=NAMESPACE)

    async def shown() -> bool:
        view = await kubernetes.executor.look(work.key)
        return view is not None and view.report is not None and "no address" in view.report.message

    await wait_until(shown, "what says why is shown, although another warning is younger")
    view = await cluster_watcher.end(work.key)

    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "sandbox-unavailable", False)


async def test_a_quota_that_lets_no_pod_be_made_is_told_in_the_clusters_words(
    kubernetes: KubernetesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "STUCK_S", 0.2)
    monkeypatch.setattr(events, "AGAIN_S", 0.5)
    kubernetes.cluster.controllers.jobs = False
    work = a_work(kubernetes.command(Behaviour()))
    await run(kubernetes.executor, work)
    words = "exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10"
    kubernetes.cluster.event("jobs", name_of(work), "FailedCreate", words, namespace=NAMESPACE)

    async def shown() -> bool:
        view = await kubernetes.executor.look(work.key)
        return view is not None and view.report is not None and f"FailedCreate: {words}" in view.report.message

    await wait_until(shown, "the quota is told")


@pytest.mark.parametrize(
    ("missing", "spec", "code"),
    [
        ("persistentvolumeclaims", {"inputs": {"x": {"connection": "events"}}}, RefusalCode.CONNECTION_UNAVAILABLE),
        ("serviceaccounts", {}, RefusalCode.IDENTITY),
    ],
)
async def test_what_is_missing_is_refused_before_anything_is_written(
    kubernetes: KubernetesHarness, missing: str, spec: dict[str, Any], code: RefusalCode
) -> None:
    kubernetes.cluster.controllers.accounts = False
    name = "default" if missing == "serviceaccounts" else "events-data"
    kubernetes.cluster.delete(missing, name, namespace=NAMESPACE, force=True)
    work = a_work(kubernetes.command(Behaviour()), **spec)

    [refused] = await kubernetes.executor.check([work])
    [again] = await kubernetes.executor.occupy([work])

    for each in (refused, again):
        assert isinstance(each, RefusedError)
        assert each.code == code
    assert kubernetes.cluster.all_of("jobs", namespace=NAMESPACE) == []


# -- gangs, services, moves --------------------------------------------------------------------------------------------


async def test_members_of_a_gang_start_together_and_know_their_ranks(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    words = "import os; print(os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], flush=True)"
    command = [kubernetes.command(Behaviour())[0], "-S", "-c", words]
    work = a_work(command, type="distributed-job", replicas=3)
    await run(kubernetes.executor, work)

    view = await cluster_watcher.end(work.key, timeout_s=90)

    assert view.report is not None
    assert view.report.outcome is AttemptOutcome.COMPLETED
    texts = sorted(text for (_, _, _), text in kubernetes.cluster.server.logs.texts.items())
    assert texts == ["0 of 3\n", "1 of 3\n", "2 of 3\n"]
    assert kubernetes.cluster.get("services", name_of(work), namespace=NAMESPACE) is not None


async def test_a_member_that_fails_ends_its_gang_and_tells_how(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    words = "import os, sys, time; time.sleep(1) if os.environ['RANK'] == '1' else time.sleep(60); sys.exit(5)"
    command = [kubernetes.command(Behaviour())[0], "-S", "-c", words]
    work = a_work(command, type="distributed-job", replicas=3)
    await run(kubernetes.executor, work)

    view = await cluster_watcher.end(work.key, timeout_s=90)

    assert view.report is not None
    assert (view.report.outcome, view.reason, view.report.exit_code) == (AttemptOutcome.FAILED, "exit-code", 5)
    assert not kubernetes.node.busy


async def test_a_gang_that_lacks_a_member_does_not_start(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    kubernetes.node.limit = 2
    work = a_work(kubernetes.command(Behaviour(log="must not run")), type="distributed-job", replicas=3)
    await run(kubernetes.executor, work)
    await wait_until(lambda: len(kubernetes.node.started) == 2, "two of three are there", timeout_s=60)
    await asyncio.sleep(3)
    assert cluster_watcher.phases(work.key) == []

    await stop(kubernetes.executor, work, reason="gang-not-started")

    view = await cluster_watcher.end(work.key, timeout_s=60)
    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "gang-not-started", True)


async def test_moved_work_seals_a_checkpoint_before_it_ends(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    seal = """
import os, time
place = os.environ['LANDBRIDGE_CHECKPOINT_DIR'] + '/'
open('ready', 'w').close()
while not os.path.exists(os.environ['LANDBRIDGE_CHECKPOINT_REQUEST']): time.sleep(0.05)
os.mkdir(place + '.sealing-1')
open(place + '.sealing-1/manifest.json', 'w').write('{"files": {}}')
os.rename(place + '.sealing-1', place + 'sealed-asked')
time.sleep(60)
"""
    command = [kubernetes.command(Behaviour())[0], "-S", "-c", seal]
    work = a_work(command, checkpoints={"connection": "checkpoints"})
    await run(kubernetes.executor, work)
    await cluster_watcher.until(work.key, SlotPhase.RUNNING, timeout_s=30)
    await wait_until((kubernetes.directory(work.key) / "ready").exists, "the workload is ready", timeout_s=30)
    await stop(kubernetes.executor, work, reason="moved", grace_ms=20_000)

    view = await cluster_watcher.end(work.key, timeout_s=60)

    assert view.report is not None
    assert (view.report.outcome, view.reason) == (AttemptOutcome.CANCELLED, "moved")
    assert view.report.checkpoint is not None
    assert view.report.checkpoint.manifest == f"{work.operation}/e1-1/sealed-asked/manifest.json"


async def test_a_service_runs_when_it_is_ready_and_ends_when_it_is_told(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    work = a_work(kubernetes.command(Behaviour(seconds=60)), type="service", ports={"web": {"port": 8080}})
    await run(kubernetes.executor, work)
    await wait_until(lambda: kubernetes.cluster.get("deployments", name_of(work), namespace=NAMESPACE), "it is made")
    await cluster_watcher.until(work.key, SlotPhase.RUNNING, timeout_s=60)
    assert job_of(kubernetes, work)["spec"]["suspend"] is True

    await stop(kubernetes.executor, work)

    view = await cluster_watcher.end(work.key, timeout_s=60)
    assert view.report is not None
    assert (view.report.outcome, view.reason) == (AttemptOutcome.CANCELLED, "cancelled")


async def test_a_service_that_does_not_become_ready_leaves_nothing_that_makes_pods(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    kubernetes.node.accepts = False
    work = a_work(kubernetes.command(Behaviour(seconds=60)), type="service", ports={"web": {"port": 8080}})
    await run(kubernetes.executor, work)

    def deployment() -> dict[str, Any]:
        return kubernetes.cluster.get("deployments", name_of(work), namespace=NAMESPACE) or {}

    def pods() -> list[dict[str, Any]]:
        found = kubernetes.cluster.all_of("pods", namespace=NAMESPACE)
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    await wait_until(pods, "a pod of it waits")
    hasty = deployment()
    kubernetes.cluster.put(
        "deployments", hasty | {"spec": hasty["spec"] | {"progressDeadlineSeconds": 1}}, namespace=NAMESPACE
    )

    view = await cluster_watcher.end(work.key, timeout_s=60)

    assert (view.phase, view.reason) == (SlotPhase.TOMBSTONE, "not-ready")
    await wait_until(lambda: not pods(), "no pod of it is left", timeout_s=30)
    assert deployment()["spec"]["replicas"] == 0

    # Whoever scales an ended service up gets no pods: the slot is over.
    kubernetes.cluster.put("deployments", {**deployment(), "spec": deployment()["spec"] | {"replicas": 2}},
                           namespace=NAMESPACE)  # fmt: skip
    await wait_until(lambda: deployment()["spec"]["replicas"] == 0, "it is scaled down again", timeout_s=30)
    await wait_until(lambda: not pods(), "no pod of it is left", timeout_s=30)


# -- an API server that comes and goes ---------------------------------------------------------------------------------


async def test_cut_watches_lost_history_and_a_restarted_server_lose_and_double_nothing(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    works = [a_work(kubernetes.command(Behaviour(seconds=0.5, exit_code=number % 3))) for number in range(12)]
    await run(kubernetes.executor, *works)
    for blow in (
        kubernetes.cluster.cut_watches,
        kubernetes.cluster.compact,
        lambda: kubernetes.cluster.restart(0.5),
        kubernetes.cluster.cut_watches,
    ):
        await asyncio.sleep(0.7)
        done = blow()
        if asyncio.iscoroutine(done):
            await done

    for number, work in enumerate(works):
        view = await cluster_watcher.end(work.key, timeout_s=90)
        assert view.report is not None
        assert view.report.exit_code == number % 3
        ends = [seen for seen in cluster_watcher.of(work.key) if seen.phase in FINAL]
        assert len({str(seen.report) for seen in ends}) == 1
        assert len(kubernetes.cluster.pods_of(name_of(work), namespace=NAMESPACE)) <= 1
    assert len(kubernetes.node.started) == len(works)


async def test_running_work_costs_the_api_server_next_to_nothing(
    kubernetes: KubernetesHarness, cluster_watcher: Watcher
) -> None:
    kubernetes.node.accepts = False
    works = [a_work(kubernetes.command(Behaviour(seconds=60))) for _ in range(100)]
    await run(kubernetes.executor, *works)
    await wait_until(
        lambda: len(kubernetes.cluster.all_of("pods", namespace=NAMESPACE)) == len(works), "all pods are there",
        timeout_s=60,
    )  # fmt: skip
    for pod in kubernetes.cluster.all_of("pods", namespace=NAMESPACE):
        kubernetes.cluster.run_pod(pod["metadata"]["name"], namespace=NAMESPACE)
    await asyncio.sleep(2)
    before = sum(count for kind, count in kubernetes.cluster.requests().items() if kind != "WATCH")
    await asyncio.sleep(5)
    kubernetes.executor.hold_lease(a_lease())
    after = sum(count for kind, count in kubernetes.cluster.requests().items() if kind != "WATCH")

    assert after - before <= 2
