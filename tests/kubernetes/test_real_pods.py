"""Rows of the table of states shown by pods that really run, and what the executor promises of them."""

import signal
from typing import Any

import pytest
import pytest_asyncio

from contract.executors.harness import a_lease, a_work, stop
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.schema.wire.report_v1 import AttemptOutcome
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError, Work
from support.kubernetes.access_point import image, real_is_wanted
from support.kubernetes_pods import Pods
from support.kubernetes_site import STARTS_S
from support.wait import wait_until

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        not real_is_wanted() or not image(), reason="no cluster whose pods run: see make test-kubernetes"
    ),
    pytest.mark.timeout(300),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def waiting(pods: Pods) -> dict[str, Work]:
    """Work that cannot start, by what it lacks: its patience passes while other tests run."""
    return {
        "volume": await pods.run("true", inputs={"x": {"connection": "events"}}),
        "secret": await pods.run("true", inputs={"x": {"connection": "secret"}}),
        "image": await pods.run("true", image=pods.image | {"digest": "sha256:" + "0" * 64}),
    }


# -- ends --------------------------------------------------------------------------------------------------------------


async def test_completed_with_log_outputs_metrics_and_context(pods: Pods) -> None:
    script = (
        'echo hello; echo weights >"$LANDBRIDGE_OUTPUT_MODEL/w"; '
        """echo '{"name": "auc", "value": 0.9}' >>"$LANDBRIDGE_METRICS" """
    )
    work = await pods.run(
        script,
        outputs={"model": {"connection": "models"}},
        acceptance=[{"metric": "auc", "atLeast": 0.8}, {"output": "model", "exists": True}],
        resources={"requests": {"memory": "64Mi", "cpu": "50m"}},
    )

    found = await pods.report(work)

    assert (found.outcome, found.exit_code, found.message) == (AttemptOutcome.COMPLETED, 0, "")
    assert found.metrics == {"auc": 0.9}
    assert found.outputs["model"].bytes == len("weights\n")
    assert found.resolved is not None
    assert found.resolved.host == pods.node
    assert found.resolved.image_digest == pods.image["digest"]
    log = await pods.executor.logs(work.key)
    assert log is not None
    assert (log.data, log.end) == (b"hello\n", True)


async def test_an_exit_code_and_a_signal_are_told_apart(pods: Pods) -> None:
    first, second = await pods.run("exit 3"), await pods.run("kill -SEGV $$$$")
    found = await pods.report(first)
    assert (found.outcome, found.reason, found.exit_code) == (AttemptOutcome.FAILED, "exit-code", 3)
    found = await pods.report(second)
    assert (found.outcome, found.reason, found.signal) == (AttemptOutcome.FAILED, "signal", signal.SIGSEGV)


async def test_too_much_memory_is_out_of_memory(pods: Pods) -> None:
    work = await pods.run("tail /dev/zero", resources={"requests": {"memory": "32Mi"}})
    found = await pods.report(work)
    assert (found.outcome, found.reason) == (AttemptOutcome.FAILED, "out-of-memory")


async def test_a_timeout_is_told(pods: Pods) -> None:
    work = await pods.run("sleep 120", lifecycle={"timeout": "2s", "stopGrace": "5s"})
    found = await pods.report(work)
    assert (found.outcome, found.reason) == (AttemptOutcome.FAILED, "timeout")


async def test_a_cancelled_workload_gets_the_polite_signal(pods: Pods) -> None:
    work, _ = await pods.running("trap 'echo bye; exit 9' TERM; while :; do sleep 1; done")
    await stop(pods.executor, work, grace_ms=20_000)
    found = await pods.report(work)
    assert (found.outcome, found.reason) == (AttemptOutcome.CANCELLED, "cancelled")
    assert found.exit_code == 9


async def test_who_ignores_the_polite_signal_is_killed(pods: Pods) -> None:
    work, _ = await pods.running("trap '' TERM; while :; do sleep 1; done")
    await stop(pods.executor, work, grace_ms=1_000)
    found = await pods.report(work)
    assert (found.outcome, found.reason, found.signal) == (AttemptOutcome.CANCELLED, "cancelled", signal.SIGKILL)


async def test_a_deleted_pod_is_removed_externally(pods: Pods) -> None:
    work, pod = await pods.running("sleep 300")
    await pods.admin.delete(pods.path("pods", pod["metadata"]["name"]), uid=pod["metadata"]["uid"], grace_s=2)
    found = await pods.report(work)
    assert (found.outcome, found.reason) == (AttemptOutcome.FAILED, "removed-externally")


async def test_an_evicted_pod_is_evicted(pods: Pods) -> None:
    work, pod = await pods.running("sleep 300")
    eviction: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod["metadata"]["name"]},
        "deleteOptions": {"gracePeriodSeconds": 2},
    }
    await pods.admin.create(pods.path("pods", f"{pod['metadata']['name']}/eviction"), eviction)
    found = await pods.report(work)
    assert (found.outcome, found.reason) == (AttemptOutcome.FAILED, "evicted")


async def test_a_deleted_job_is_told_as_empty_and_nothing_runs_on(pods: Pods) -> None:
    work, _ = await pods.running("sleep 300", lifecycle={"stopGrace": "1s"})
    path = pods.path("jobs", names.name_of(work.key), group="batch")
    job = await pods.admin.get(path)
    assert job is not None
    await pods.admin.delete(path, uid=job["metadata"]["uid"], propagation="Orphan")
    await pods.watcher.until(work.key, SlotPhase.EMPTY, timeout_s=STARTS_S)
    assert all(pod["status"]["phase"] not in ("Running", "Pending") for pod in await pods.pods(work))


# -- work that does not start ------------------------------------------------------------------------------------------


async def test_what_fits_nowhere_waits_with_the_schedulers_words(pods: Pods) -> None:
    work = await pods.run("true", resources={"requests": {"cpu": "10000"}})

    async def told() -> bool:
        view = await pods.executor.look(work.key)
        return view is not None and view.report is not None and "Insufficient cpu" in view.report.message

    await wait_until(told, "the scheduler's words are there", timeout_s=STARTS_S, every_s=0.3)
    assert pods.watcher.phases(work.key) == []
    await stop(pods.executor, work)
    view = await pods.end(work)
    assert (view.phase, view.reason) == (SlotPhase.TOMBSTONE, "cancelled")


async def test_an_image_that_is_not_there_fails_the_start(pods: Pods, waiting: dict[str, Work]) -> None:
    view = await pods.end(waiting["image"])
    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "image-pull-failed", False)


async def test_a_missing_secret_fails_the_start(pods: Pods, waiting: dict[str, Work]) -> None:
    view = await pods.end(waiting["secret"])
    assert (view.phase, view.reason) == (SlotPhase.TOMBSTONE, "secret-unavailable")


async def test_a_missing_volume_fails_the_start_and_a_missing_claim_is_refused(
    pods: Pods, waiting: dict[str, Work]
) -> None:
    [refused] = await pods.executor.occupy([pods.work("true", inputs={"x": {"connection": "gone"}})])
    assert isinstance(refused, RefusedError)
    assert refused.code is RefusalCode.CONNECTION_UNAVAILABLE
    view = await pods.end(waiting["volume"])
    assert (view.phase, view.reason) == (SlotPhase.TOMBSTONE, "connection-unavailable")


async def test_without_a_lease_nothing_starts(pods: Pods) -> None:
    pods.executor.hold_lease(a_lease(seconds=-1))
    try:
        work = await pods.run("echo must not run")
        view = await pods.end(work)
    finally:
        pods.executor.hold_lease(a_lease(seconds=3600))
    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "no-lease", True)


# -- ownership, gangs, services ----------------------------------------------------------------------------------------


async def test_a_second_pod_of_a_slot_never_starts(pods: Pods) -> None:
    work, pod = await pods.running("sleep 60")
    # A reference that makes nobody its controller: else the Job controller would delete the pod before it has asked.
    owners = [{**owner, "controller": False} for owner in pod["metadata"]["ownerReferences"]]
    labels = {key: value for key, value in pod["metadata"]["labels"].items() if "batch.kubernetes.io" not in key}
    labels = {key: value for key, value in labels.items() if key not in ("controller-uid", "job-name")}
    meta = {"name": "second", "labels": labels, "ownerReferences": owners}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    await pods.admin.create(pods.path("pods"), {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})

    async def message() -> str:
        found = await pods.admin.get(pods.path("pods", "second"))
        status = ((found or {}).get("status", {}).get("containerStatuses") or [{}])[0]
        return str(((status.get("state") or {}).get("terminated") or {}).get("message") or "")

    told = await wait_until(message, "the second pod has ended", timeout_s=STARTS_S, every_s=0.3)
    assert told.startswith("not-started slot-taken")
    view = await pods.executor.look(work.key)
    assert view is not None
    assert view.phase is SlotPhase.RUNNING
    await stop(pods.executor, work, grace_ms=1_000)
    await pods.end(work)


async def test_a_gang_starts_together_with_ranks(pods: Pods) -> None:
    script = 'echo "$RANK of $WORLD_SIZE" >"$LANDBRIDGE_OUTPUT_MODEL/$RANK"'
    work = await pods.run(
        script, type="distributed-job", replicas=2, outputs={"model": {"connection": "models"}},
        acceptance=[{"output": "model", "exists": True}],
    )  # fmt: skip
    found = await pods.report(work)
    assert found.outcome is AttemptOutcome.COMPLETED, found


async def test_a_lost_lease_stops_self_stopping_work(pods: Pods) -> None:
    policy = {"disconnection": {"policy": "stop-after-grace", "grace": "5s"}, "stopGrace": "5s"}
    pods.executor.hold_lease(a_lease(seconds=25))
    try:
        work, _ = await pods.running("sleep 300", lifecycle=policy)
        found = await pods.report(work)
    finally:
        pods.executor.hold_lease(a_lease(seconds=3600))
    assert found.reason == "self-stopped"


async def test_moved_work_seals_first(pods: Pods) -> None:
    script = (
        "while ! [ -f .landbridge/checkpoint-requested ]; do sleep 1; done; sleep 1; "
        'mkdir "$LANDBRIDGE_CHECKPOINT_DIR/sealed-7"; echo "{}" >"$LANDBRIDGE_CHECKPOINT_DIR/sealed-7/manifest.json"; '
        "sleep 300"
    )
    work, _ = await pods.running(script, checkpoints={"connection": "checkpoints"})
    await stop(pods.executor, work, reason="moved", grace_ms=20_000)
    found = await pods.report(work)
    assert (found.outcome, found.reason) == (AttemptOutcome.CANCELLED, "moved")
    assert found.checkpoint is not None
    assert found.checkpoint.manifest == f"{work.operation}/e1-1/sealed-7/manifest.json"


async def test_a_service_is_running_when_it_is_ready(pods: Pods) -> None:
    if not pods.has_python:
        pytest.skip(f"image {pods.reference} has no python3, which is the service here")
    web = ["python3", "-m", "http.server", "8080"]
    work = a_work(web, image=pods.image, type="service", ports={"web": {"port": 8080}})
    await pods.executor.occupy([work])
    await pods.executor.start([work.key])
    await pods.watcher.until(work.key, SlotPhase.RUNNING, timeout_s=STARTS_S)
    await stop(pods.executor, work, grace_ms=1_000)
    found = await pods.report(work)
    assert (found.outcome, found.reason) == (AttemptOutcome.CANCELLED, "cancelled")


async def test_a_service_that_does_not_become_ready_leaves_no_pod(pods: Pods) -> None:
    work = pods.work("sleep 300", type="service", ports={"web": {"port": 8080}})
    assert await pods.executor.occupy([work]) == [None]
    await pods.executor.start([work.key])
    await pods.pod(work)
    path = pods.path("deployments", names.name_of(work.key), group="apps")
    await pods.admin.merge(path, {"spec": {"progressDeadlineSeconds": 5}})

    view = await pods.end(work)

    assert (view.phase, view.reason) == (SlotPhase.TOMBSTONE, "not-ready")

    async def gone() -> bool:
        found = await pods.admin.get(path)
        return found is not None and found["spec"]["replicas"] == 0 and not await pods.pods(work)

    await wait_until(gone, "no pod of it is left", timeout_s=STARTS_S, every_s=0.5)


async def test_many_at_once_each_run_once(pods: Pods) -> None:
    works = [await pods.run(f"echo ran; exit {number % 3}") for number in range(12)]
    for number, work in enumerate(works):
        found = await pods.report(work)
        assert found.exit_code == number % 3
        assert len(await pods.pods(work)) == 1
