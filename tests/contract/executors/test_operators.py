"""Gangs by operators: the slot, its claims and its end are the same, whoever makes the pods."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contract.executors.cluster import NAMESPACE, KubernetesHarness
from contract.executors.conftest import opened
from contract.executors.harness import Behaviour, Watcher, a_lease, a_work, make_executor, run, stop
from landbridge.domain.contract import Contract
from landbridge.domain.contract_document import parse_contract
from landbridge.domain.ownership.environment_model import FinalReport, ReportState, SlotPhase
from landbridge.schema.wire.report_v1 import AttemptOutcome
from landbridge_dispatch.executors.kubernetes import following, names, progress, records
from landbridge_dispatch.executors.protocol import Burial, RefusalCode, RefusedError, Work
from support.kubernetes import FakeCluster, operators
from support.wait import wait_until

PLURALS = {
    "jobset": "jobsets",
    "kubeflow-trainer": "trainjobs",
    "kubeflow-training": "pytorchjobs",
    "kuberay": "rayjobs",
}
RANKED = ["jobset", "kubeflow-trainer", "kubeflow-training"]
ALL = [*RANKED, "kuberay"]


class GangHarness(KubernetesHarness):
    def __init__(self, home: Path, operator: str, *, installed: bool = True, **section: Any) -> None:
        super().__init__(home, operators=[operator], **section)
        self.operator, self.installs_operators = operator, installed

    @property
    def spec(self) -> dict[str, Any]:
        gang = {"gang": {"framework": "ray"}} if self.operator == "kuberay" else {}
        return {"type": "distributed-job", "replicas": 3, **gang}

    def a_gang(self, behaviour: Behaviour) -> Work:
        return a_work(self.command(behaviour), **self.spec)

    def object_of(self, work: Work) -> dict[str, Any] | None:
        return self.cluster.get(PLURALS[self.operator], names.name_of(work.key), namespace=NAMESPACE)


def via(operator: str, fallback: str = "") -> Contract:
    framework = "ray" if operator == "kuberay" else "ranks"
    chosen = {"operator": operator, **({"fallback": fallback} if fallback else {})}
    runtime = {"executor": "kubernetes", "operators": [operator], "via": {framework: chosen}}
    return parse_contract({"metadata": {"name": "cluster-a", "version": 1}, "spec": {"runtime": runtime}})


@pytest.fixture
async def gangs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[GangHarness]:
    """The executor for clusters with the operator that the test is about."""
    operator, section = request.param if isinstance(request.param, tuple) else (request.param, {})
    harness = GangHarness(tmp_path / "site", operator, **section)
    async for _ in opened(harness):
        harness.executor.know(via(operator))
        yield harness


@pytest.fixture
async def watcher_of_gangs(gangs: GangHarness) -> AsyncIterator[Watcher]:
    watching = Watcher(gangs.executor)
    yield watching
    await watching.close()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators are looked for in a period that a test can wait for."""
    monkeypatch.setattr(following, "EVERY_S", 0.3)


def slot_of(harness: KubernetesHarness, work: Work) -> dict[str, Any]:
    found = harness.cluster.get("jobs", names.name_of(work.key), namespace=NAMESPACE)
    assert found is not None
    return found


def alive(cluster: FakeCluster) -> list[dict[str, Any]]:
    pods = cluster.all_of("pods", namespace=NAMESPACE)
    return [pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]


@pytest.mark.parametrize("gangs", RANKED, indirect=True)
async def test_members_start_together_and_know_their_ranks(gangs: GangHarness, watcher_of_gangs: Watcher) -> None:
    words = (
        "import os; e = os.environ;"
        "print(e['RANK'], e['LANDBRIDGE_RANK'], 'of', e['WORLD_SIZE'], bool(e['MASTER_ADDR']), flush=True)"
    )
    work = a_work([gangs.command(Behaviour())[0], "-S", "-c", words], **gangs.spec)
    await run(gangs.executor, work)

    view = await watcher_of_gangs.end(work.key, timeout_s=90)

    assert view.report is not None
    assert view.report.outcome is AttemptOutcome.COMPLETED
    texts = sorted(gangs.cluster.server.logs.texts.values())
    assert texts == [f"{rank} {rank} of 3 True\n" for rank in range(3)]
    log = await gangs.executor.logs(work.key)
    assert log is not None
    assert log.data == b"0 0 of 3 True\n"
    made, slot = gangs.object_of(work), slot_of(gangs, work)
    assert made is not None
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == [slot["metadata"]["uid"]]
    assert slot["spec"]["suspend"] is True

    await gangs.executor.settle([(work.key, 1)])
    await gangs.executor.remove([work.key])
    await wait_until(lambda: gangs.object_of(work) is None, "the operator's object goes with the slot")


@pytest.mark.parametrize("gangs", ["kubeflow-trainer"], indirect=True)
async def test_members_of_a_train_job_are_told_what_torchrun_reads(
    gangs: GangHarness, watcher_of_gangs: Watcher
) -> None:
    words = "import os; e = os.environ; print(e['PET_NODE_RANK'], e['RANK'], 'of', e['PET_NNODES'], flush=True)"
    work = a_work([gangs.command(Behaviour())[0], "-S", "-c", words], **gangs.spec)
    await run(gangs.executor, work)

    await watcher_of_gangs.end(work.key, timeout_s=90)

    texts = sorted(gangs.cluster.server.logs.texts.values())
    assert texts == [f"{rank} {rank} of 3\n" for rank in range(3)]
    runtime = gangs.cluster.get("trainingruntimes", names.name_of(work.key), namespace=NAMESPACE)
    assert runtime is not None
    await gangs.executor.settle([(work.key, 1)])
    await gangs.executor.remove([work.key])
    await wait_until(
        lambda: not gangs.cluster.all_of("trainingruntimes", namespace=NAMESPACE), "its runtime goes with the slot"
    )


@pytest.mark.parametrize("gangs", RANKED, indirect=True)
async def test_a_member_that_fails_ends_all_and_tells_how(gangs: GangHarness, watcher_of_gangs: Watcher) -> None:
    words = "import os, sys, time; time.sleep(1) if os.environ['RANK'] == '1' else time.sleep(60); sys.exit(5)"
    work = a_work([gangs.command(Behaviour())[0], "-S", "-c", words], **gangs.spec)
    await run(gangs.executor, work)

    view = await watcher_of_gangs.end(work.key, timeout_s=90)

    assert view.report is not None
    assert (view.report.outcome, view.reason, view.report.exit_code) == (AttemptOutcome.FAILED, "exit-code", 5)
    assert not gangs.node.busy


@pytest.mark.parametrize("gangs", ["kuberay"], indirect=True)
@pytest.mark.parametrize(("code", "outcome"), [(0, AttemptOutcome.COMPLETED), (5, AttemptOutcome.FAILED)])
async def test_a_ray_driver_runs_once_on_the_head_and_its_end_counts(
    gangs: GangHarness, watcher_of_gangs: Watcher, code: int, outcome: AttemptOutcome
) -> None:
    work = gangs.a_gang(Behaviour(seconds=0.3, exit_code=code, log="once", metrics={"auc": 0.5}))
    await run(gangs.executor, work)

    view = await watcher_of_gangs.end(work.key, timeout_s=90)

    assert view.report is not None
    assert (view.report.outcome, view.report.exit_code, view.report.metrics) == (outcome, code, {"auc": 0.5})
    assert [text for text in gangs.cluster.server.logs.texts.values() if text] == ["once\n"]
    assert len(gangs.node.started) == 3
    await wait_until(lambda: not alive(gangs.cluster), "the cluster of the job is taken away", timeout_s=30)


@pytest.mark.parametrize("gangs", ALL, indirect=True)
async def test_a_stop_ends_all_and_nothing_is_made_anew(gangs: GangHarness, watcher_of_gangs: Watcher) -> None:
    work = gangs.a_gang(Behaviour(seconds=60))
    await run(gangs.executor, work)
    await watcher_of_gangs.until(work.key, SlotPhase.RUNNING, timeout_s=60)

    await stop(gangs.executor, work)

    view = await watcher_of_gangs.end(work.key, timeout_s=60)
    assert view.report is not None
    assert (view.report.outcome, view.reason) == (AttemptOutcome.CANCELLED, "cancelled")
    await wait_until(lambda: not alive(gangs.cluster), "no pod is left", timeout_s=30)
    made = gangs.object_of(work)
    assert made is not None
    assert made["spec"].get("runPolicy", made["spec"])["suspend"] is True


@pytest.mark.parametrize(("gangs", "others"), [("jobset", ["second", "nobodys"]),
                         ("kubeflow-trainer", ["second", "nobodys"]), ("kubeflow-training", ["nobodys"])],
                         indirect=["gangs"])  # fmt: skip
async def test_a_second_pod_of_a_rank_and_one_of_nobody_start_nothing(
    gangs: GangHarness, watcher_of_gangs: Watcher, others: list[str]
) -> None:
    work = gangs.a_gang(Behaviour(seconds=60))
    await run(gangs.executor, work)
    await watcher_of_gangs.until(work.key, SlotPhase.RUNNING, timeout_s=60)
    await wait_until(lambda: len(records.claims_of(slot_of(gangs, work))) == 3, "all have taken their ranks")
    pod = gangs.cluster.all_of("pods", namespace=NAMESPACE)[0]
    for name in others:
        owners = pod["metadata"]["ownerReferences"] if name == "second" else []
        other = {"metadata": {**pod["metadata"], "name": name, "ownerReferences": owners}, "spec": {**pod["spec"]}}
        for field in ("uid", "resourceVersion", "creationTimestamp", "finalizers"):
            other["metadata"].pop(field, None)
        other["spec"].pop("nodeName", None)
        gangs.cluster.put("pods", other, namespace=NAMESPACE)

    def told(name: str) -> str:
        found = gangs.cluster.get("pods", name, namespace=NAMESPACE)
        if found is None or found["status"].get("phase") != "Failed":
            return ""
        return str(found["status"]["containerStatuses"][0]["state"]["terminated"]["message"])

    await wait_until(lambda: all(map(told, others)), "they have ended", timeout_s=30)
    begins = {"second": "not-started slot-taken", "nobodys": "not-started not-here"}
    assert all(told(name).startswith(begins[name]) for name in others)
    view = await gangs.executor.look(work.key)
    assert view is not None
    assert view.phase is SlotPhase.RUNNING


@pytest.mark.parametrize("gangs", ALL, indirect=True)
async def test_whoever_comes_next_finds_it_running_and_its_end(gangs: GangHarness, watcher_of_gangs: Watcher) -> None:
    work = gangs.a_gang(Behaviour(seconds=3, exit_code=7))
    await run(gangs.executor, work)
    await watcher_of_gangs.until(work.key, SlotPhase.RUNNING, timeout_s=60)
    await gangs.executor.close()

    gangs.executor = make_executor(gangs.home)
    await gangs.executor.open()
    gangs.executor.hold_lease(a_lease())
    next_watcher = Watcher(gangs.executor)
    [found] = await gangs.executor.inventory()
    await gangs.executor.start([work.key])

    assert found.phase in (SlotPhase.RUNNING, SlotPhase.FINISHED)
    view = await next_watcher.end(work.key, timeout_s=60) if found.phase is SlotPhase.RUNNING else found
    await next_watcher.close()
    assert view.report is not None
    assert (view.reason, view.report.exit_code) == ("exit-code", 7)
    assert len(gangs.node.started) == 3


QUEUED = [(operator, {"localQueue": "landbridge"}) for operator in ALL]


@pytest.mark.parametrize("gangs", QUEUED, indirect=True)
async def test_a_queue_decides_when_it_starts_and_a_stop_takes_it_out(
    gangs: GangHarness, watcher_of_gangs: Watcher
) -> None:
    work = gangs.a_gang(Behaviour(log="must not run"))
    await run(gangs.executor, work)

    async def waits() -> bool:
        view = await gangs.executor.look(work.key)
        return view is not None and view.report is not None and "uspend" in view.report.message

    await wait_until(waits, "it is told that the queue holds it", timeout_s=30)
    made = gangs.object_of(work)
    assert made is not None
    assert made["metadata"]["labels"][names.QUEUE_NAME] == "landbridge"
    assert gangs.cluster.all_of("pods", namespace=NAMESPACE) == []

    await stop(gangs.executor, work)

    view = await watcher_of_gangs.end(work.key, timeout_s=30)
    assert (view.phase, view.denied) == (SlotPhase.TOMBSTONE, True)

    def is_out() -> bool:
        left = gangs.object_of(work)
        return left is not None and names.QUEUE_NAME not in left["metadata"]["labels"]

    await wait_until(is_out, "no queue can let it start any more")


@pytest.mark.parametrize("gangs", ["jobset"], indirect=True)
async def test_nothing_is_made_for_a_buried_slot(gangs: GangHarness) -> None:
    work = gangs.a_gang(Behaviour())
    assert await gangs.executor.occupy([work]) == [None]
    report = FinalReport(ReportState.RELINQUISHED, "", "not-granted")
    await gangs.executor.bury([Burial(work.key, report, 3, work.project)])

    await gangs.executor.start([work.key])

    assert gangs.object_of(work) is None
    assert gangs.cluster.all_of("pods", namespace=NAMESPACE) == []


@pytest.mark.parametrize("gangs", ["jobset"], indirect=True)
async def test_an_object_of_that_name_that_is_somebody_elses_keeps_it_from_starting(
    gangs: GangHarness, watcher_of_gangs: Watcher
) -> None:
    work = gangs.a_gang(Behaviour(log="must not run"))
    theirs = {"metadata": {"name": names.name_of(work.key)}, "spec": {"replicatedJobs": [], "suspend": True}}
    gangs.cluster.put("jobsets", theirs, namespace=NAMESPACE)
    await run(gangs.executor, work)

    view = await watcher_of_gangs.end(work.key, timeout_s=30)

    assert (view.phase, view.reason) == (SlotPhase.TOMBSTONE, "failed-to-start")
    kept = gangs.object_of(work)
    assert kept is not None
    assert kept["spec"] == theirs["spec"]


@pytest.mark.parametrize("gangs", ["jobset"], indirect=True)
async def test_an_object_removed_by_others_before_the_start_is_told(
    gangs: GangHarness, watcher_of_gangs: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SHORT_S", 0.5)
    gangs.node.accepts = False
    work = gangs.a_gang(Behaviour(log="must not run"))
    await run(gangs.executor, work)
    await wait_until(lambda: alive(gangs.cluster), "its pods are there")
    gangs.cluster.delete("jobsets", names.name_of(work.key), namespace=NAMESPACE)

    view = await watcher_of_gangs.end(work.key, timeout_s=30)

    assert (view.phase, view.reason) == (SlotPhase.TOMBSTONE, "removed-externally")


@pytest.mark.parametrize("gangs", ["jobset"], indirect=True)
async def test_an_absent_operator_is_the_stated_fallback_or_a_refusal(
    gangs: GangHarness, watcher_of_gangs: Watcher
) -> None:
    gangs.executor.know(via("kubeflow-training"))
    refused_work, work = gangs.a_gang(Behaviour()), gangs.a_gang(Behaviour())

    [checked] = await gangs.executor.check([refused_work])
    [refused] = await gangs.executor.occupy([refused_work])

    for each in (checked, refused):
        assert isinstance(each, RefusedError)
        assert each.code == RefusalCode.OPERATOR
    assert gangs.cluster.all_of("jobs", namespace=NAMESPACE) == []

    gangs.executor.know(via("kubeflow-training", fallback="indexed-job"))
    await run(gangs.executor, work)
    view = await watcher_of_gangs.end(work.key, timeout_s=60)
    assert view.report is not None
    assert view.report.outcome is AttemptOutcome.COMPLETED
    assert slot_of(gangs, work)["spec"]["completionMode"] == "Indexed"


@pytest.mark.parametrize("gangs", ["kuberay"], indirect=True)
async def test_what_is_there_and_may_be_used_is_said(gangs: GangHarness) -> None:
    assert {"operator.kuberay", "framework.ray"} <= set(gangs.executor.features)
    assert "operator.jobset" not in gangs.executor.features


@pytest.mark.parametrize("gangs", ["kuberay"], indirect=True)
async def test_an_operator_that_goes_is_not_offered_any_more_and_one_that_comes_back_is(
    often: None, gangs: GangHarness, watcher_of_gangs: Watcher
) -> None:
    cluster, said = gangs.cluster, {"operator.kuberay", "framework.ray"}
    cluster.api.served.drop("ray.io", {"rayjobs"})
    await wait_until(lambda: not said & set(gangs.executor.features), "it is gone")
    [refused] = await gangs.executor.check([gangs.a_gang(Behaviour())])
    assert isinstance(refused, RefusedError)
    assert refused.code == RefusalCode.OPERATOR

    for definition in operators.definitions("kuberay"):
        cluster.api.served.define(definition)
    await wait_until(lambda: said <= set(gangs.executor.features), "it is there")
    work = gangs.a_gang(Behaviour(seconds=0.3, log="once"))
    await run(gangs.executor, work)
    view = await watcher_of_gangs.end(work.key, timeout_s=90)
    assert view.report is not None
    assert view.report.outcome is AttemptOutcome.COMPLETED


async def test_an_operator_installed_later_runs_gangs_within_the_period(tmp_path: Path, often: None) -> None:
    harness = GangHarness(tmp_path / "site", "jobset", installed=False)
    async for _ in opened(harness):
        harness.executor.know(via("jobset"))
        assert "operator.jobset" not in harness.executor.features
        [refused] = await harness.executor.check([harness.a_gang(Behaviour())])
        assert isinstance(refused, RefusedError)
        watcher = Watcher(harness.executor)

        harness.cluster.install("jobset")
        await wait_until(lambda: "operator.jobset" in harness.executor.features, "it is found")
        work = harness.a_gang(Behaviour(seconds=0.3, log="member"))
        await run(harness.executor, work)
        view = await watcher.end(work.key, timeout_s=90)
        await watcher.close()

        assert view.report is not None
        assert view.report.outcome is AttemptOutcome.COMPLETED
        assert harness.object_of(work) is not None


async def test_while_nothing_of_operators_changes_only_what_is_served_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "EVERY_S", 0.3)
    harness = GangHarness(tmp_path / "site", "jobset")
    async for _ in opened(harness):
        await asyncio.sleep(1.0)
        before = harness.cluster.requests()
        await asyncio.sleep(1.5)
        made = harness.cluster.requests() - before
        assert 3 <= made["GET"] <= 6
        assert made.total() == made["GET"]
