"""What is made for each operator: valid by its published shape, started never by itself, and read in its own words."""

import shlex
from typing import Any

import pytest

from landbridge.domain.contract import Via
from landbridge_dispatch.executors.kubernetes import manifests, names, records
from landbridge_dispatch.executors.kubernetes.objects import owned
from landbridge_dispatch.executors.kubernetes.operators import told
from landbridge_dispatch.executors.kubernetes.operators.choosing import operator_for
from landbridge_dispatch.executors.kubernetes.operators.kinds import MADE, needed_by
from landbridge_dispatch.executors.kubernetes.operators.lineage import Lineage
from landbridge_dispatch.executors.kubernetes.operators.told import State
from landbridge_dispatch.executors.kubernetes.permissions import OPERATORS
from landbridge_dispatch.executors.kubernetes.resolution import resolve
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError
from support.kubernetes import operator_shapes, pod_security
from unit.dispatch.kubernetes.things import DIGEST, some_bindings, some_work

WRAPPER = {"image": f"registry.site/tools/busybox@{DIGEST}"}
FULL: dict[str, Any] = {
    "inputs": {"events": {"connection": "events", "path": "2026"}},
    "outputs": {"model": {"connection": "models"}},
    "checkpoints": {"connection": "checkpoints"},
    "identity": "trainer",
    "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
    "lifecycle": {"disconnection": {"policy": "checkpoint-then-stop", "checkpointWithin": "1m"}},
}


def made(operator: str, *, replicas: int = 4, bindings: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """The operator's object."""
    return all_made(operator, replicas=replicas, bindings=bindings, **spec)[-1]


def all_made(
    operator: str, *, replicas: int = 4, bindings: dict[str, Any] | None = None, **spec: Any
) -> list[dict[str, Any]]:
    """What is made for a gang of an operator's own kinds."""
    site = some_bindings(operators=[operator], **(bindings or {}))
    work = some_work(type="distributed-job", replicas=replicas, **{**FULL, **spec})
    job = manifests.job(site, work, resolve(site, work), "v1", operator)
    job["metadata"]["uid"] = "job-uid"
    made_beside = records.read(job, names.PARTS, list[dict[str, Any]])
    assert made_beside
    served = {kind.kind for kind in needed_by(operator)}
    return [owned(part, job) for part in made_beside if part["kind"] in served]


def pods_of(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Every pod template within."""
    if isinstance(item, dict):
        found = [item] if "containers" in item else []
        return found + [pod for value in item.values() for pod in pods_of(value)]
    return [pod for value in item for pod in pods_of(value)] if isinstance(item, list) else []


@pytest.mark.parametrize("operator", MADE)
@pytest.mark.parametrize("bindings", [{}, {"wrapper": WRAPPER}, {"localQueue": "landbridge"}])
@pytest.mark.parametrize("replicas", [1, 2, 1000])
def test_what_is_made_has_the_published_shape(operator: str, bindings: dict[str, Any], replicas: int) -> None:
    items = all_made(operator, replicas=replicas, bindings=bindings)
    assert items[-1]["kind"] == MADE[operator].kind
    assert [problem for item in items for problem in operator_shapes.problems(item["kind"], item)] == []
    pods = [pod for item in items for pod in pods_of(item)]
    assert pods
    for pod in pods:
        assert pod_security.violations(pod, "restricted") == []


def test_a_field_that_does_not_exist_would_be_found() -> None:
    item = made("jobset")
    item["spec"]["replicatedJobs"][0]["template"]["spec"]["restartLimit"] = 3
    item["spec"]["network"]["dns"] = True
    assert len(operator_shapes.problems("JobSet", item)) == 2


@pytest.mark.parametrize("operator", MADE)
def test_a_bound_queue_holds_it_until_it_is_let_start(operator: str) -> None:
    item = made(operator, bindings={"localQueue": "landbridge"})
    assert item["metadata"]["labels"][names.QUEUE_NAME] == "landbridge"
    assert item["spec"].get("runPolicy", item["spec"])["suspend"] is True
    assert made(operator)["spec"].get("runPolicy", made(operator)["spec"])["suspend"] is False


@pytest.mark.parametrize("operator", MADE)
def test_rights_are_those_for_what_is_followed(operator: str) -> None:
    listed = {(line.api_group, line.resource) for line in OPERATORS[operator]}
    assert listed == {(kind.group, kind.plural) for kind in needed_by(operator)}
    assert not {verb for line in OPERATORS[operator] for verb in line.verbs} & {"delete", "deletecollection", "update"}


def test_the_slots_job_never_runs_a_pod_of_its_own() -> None:
    site, work = some_bindings(operators=["jobset"]), some_work(type="distributed-job", replicas=4)
    job = manifests.job(site, work, resolve(site, work), "v1", "jobset")
    assert job["spec"]["suspend"] is True
    assert "landbridge.invalid" in job["spec"]["template"]["spec"]["containers"][0]["image"]


def test_a_train_job_takes_its_pods_from_a_runtime_of_its_own_which_is_made_before_it() -> None:
    runtime, train_job = all_made("kubeflow-trainer", replicas=3)
    assert train_job["spec"]["runtimeRef"] == {
        "apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": runtime["metadata"]["name"],
    }  # fmt: skip
    assert runtime["metadata"]["namespace"] == train_job["metadata"]["namespace"]
    assert runtime["metadata"]["ownerReferences"] == train_job["metadata"]["ownerReferences"]
    template = runtime["spec"]["template"]
    [group] = template["spec"]["replicatedJobs"]
    assert group["template"]["metadata"]["labels"]["trainer.kubeflow.org/trainjob-ancestor-step"] == "trainer"
    assert (group["template"]["spec"]["completions"], group["template"]["spec"]["backoffLimit"]) == (3, 0)
    # Whoever follows a slot finds the set, its Job and the pods by these.
    slot = train_job["metadata"]["labels"][names.SLOT]
    assert {found[names.SLOT] for found in labels_in(runtime)} == {slot}
    assert len(labels_in(runtime)) == 4


def labels_in(item: Any) -> list[dict[str, str]]:
    if isinstance(item, list):
        return [found for value in item for found in labels_in(value)]
    if not isinstance(item, dict):
        return []
    own = [item["metadata"]["labels"]] if "labels" in item.get("metadata", {}) else []
    return own + [found for value in item.values() for found in labels_in(value)]


def test_a_ray_job_is_the_wrapper_with_the_command_and_workers_have_no_token() -> None:
    command = ["python", "-c", "print('$HOME')", "$(WHERE)"]
    item = made("kuberay", command=command, env={"WHERE": "here; there"})
    words = shlex.split(item["spec"]["entrypoint"].removesuffix(" >/proc/1/fd/1 2>&1"))
    assert words == ["/bin/sh", "/landbridge/wrapper/wrapper.sh", "python", "-c", "print('$HOME')", "here; there"]
    cluster = item["spec"]["rayClusterSpec"]
    head = cluster["headGroupSpec"]["template"]["spec"]
    [group] = cluster["workerGroupSpecs"]
    worker = group["template"]["spec"]
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (3, 3, 3)
    assert "keeper" in {volume["name"] for volume in head["volumes"]}
    assert not {"keeper", "wrapper"} & {volume["name"] for volume in worker["volumes"]}
    for pod in (head, worker):
        [container] = pod["containers"]
        assert not {"command", "args"} & container.keys()
    told_to_worker = {entry["name"] for entry in worker["containers"][0]["env"]}
    assert not {name for name in told_to_worker if name.startswith("LANDBRIDGE_WRAPPER_")}


# -- which one runs it -------------------------------------------------------------------------------------------------

RANKS = some_work(type="distributed-job", replicas=2).view.spec
RAY = some_work(type="distributed-job", replicas=2, gang={"framework": "ray"}).view.spec
JOB = some_work().view.spec
TO_JOBSET, OR_JOB = Via("jobset"), Via("jobset", "indexed-job")


@pytest.mark.parametrize(
    ("spec", "via", "usable", "found"),
    [
        (JOB, {"ranks": TO_JOBSET}, {"jobset"}, ""),
        (RANKS, {}, {"jobset"}, ""),
        (RANKS, {"ranks": TO_JOBSET}, {"jobset"}, "jobset"),
        (RANKS, {"ranks": OR_JOB}, set(), ""),
        (RANKS, {"ranks": TO_JOBSET}, set(), None),
        (RANKS, {"ranks": Via("kuberay")}, {"kuberay"}, None),
        (RANKS, {"ranks": Via("volcano")}, {"jobset"}, None),
        (RAY, {}, {"kuberay"}, None),
        (RAY, {"ray": Via("kuberay")}, {"kuberay"}, "kuberay"),
        (RAY, {"ray": Via("kuberay", "indexed-job")}, set(), None),
        (RAY, {"ray": TO_JOBSET}, {"jobset"}, None),
    ],
)
def test_the_contract_says_which_and_the_cluster_whether(
    spec: Any, via: dict[str, Via], usable: set[str], found: str | None
) -> None:
    if found is not None:
        assert operator_for(spec, via, usable) == found
        return
    with pytest.raises(RefusedError) as refused:
        operator_for(spec, via, usable)
    assert refused.value.code == RefusalCode.OPERATOR


# -- what it tells -----------------------------------------------------------------------------------------------------


def with_conditions(kind: str, **conditions: str) -> dict[str, Any]:
    told_of = [
        {"type": name, "status": status, "reason": "Why", "message": "so"} for name, status in conditions.items()
    ]
    return {"kind": kind, "metadata": {"name": "x"}, "status": {"conditions": told_of}}


def ray(deployment: str, job: str = "") -> dict[str, Any]:
    return {"kind": "RayJob", "status": {"jobDeploymentStatus": deployment, "jobStatus": job}}


@pytest.mark.parametrize(
    ("item", "state"),
    [
        (None, State.GONE),
        ({"kind": "JobSet"}, State.WAITS),
        (with_conditions("JobSet", Suspended="True"), State.SUSPENDED),
        (with_conditions("JobSet", Suspended="False"), State.WAITS),
        (with_conditions("JobSet", Completed="True"), State.SUCCEEDED),
        (with_conditions("JobSet", Failed="True", Suspended="False"), State.FAILED),
        (with_conditions("TrainJob", Suspended="True"), State.SUSPENDED),
        (with_conditions("TrainJob", Suspended="False"), State.WAITS),
        (with_conditions("TrainJob", Complete="True"), State.SUCCEEDED),
        (with_conditions("TrainJob", Failed="True", Suspended="False"), State.FAILED),
        (with_conditions("PyTorchJob", Created="True"), State.WAITS),
        (with_conditions("PyTorchJob", Created="True", Running="True"), State.RUNS),
        (with_conditions("PyTorchJob", Running="False", Succeeded="True"), State.SUCCEEDED),
        (with_conditions("PyTorchJob", Running="False", Failed="True"), State.FAILED),
        (with_conditions("PyTorchJob", Suspended="True"), State.SUSPENDED),
        (ray(""), State.WAITS),
        (ray("Initializing"), State.WAITS),
        (ray("Running", "RUNNING"), State.RUNS),
        (ray("Complete", "SUCCEEDED"), State.SUCCEEDED),
        (ray("Complete", "STOPPED"), State.FAILED),
        (ray("Failed", "FAILED"), State.FAILED),
        (ray("ValidationFailed"), State.FAILED),
        (ray("Suspended"), State.SUSPENDED),
    ],
)
def test_each_operators_own_words_have_one_meaning(item: dict[str, Any] | None, state: State) -> None:
    assert told.told_by(item).state is state


def test_the_operators_words_are_kept() -> None:
    assert told.told_by(with_conditions("JobSet", Failed="True")).words == "Failed (Why: so)"


# -- who made whom -----------------------------------------------------------------------------------------------------


def thing(uid: str, *owners: str, name: str = "n", kind: str = "Job") -> dict[str, Any]:
    references = [{"uid": owner, "kind": kind, "name": f"{owner}-name"} for owner in owners]
    return {"metadata": {"uid": uid, "name": name, "ownerReferences": references}}


def test_a_pod_is_known_by_the_uids_of_all_between_it_and_the_slot() -> None:
    slot, pod = thing("slot", name="op-1"), thing("pod", "child")
    lineage = Lineage()
    assert lineage.unknown(pod, slot) == {"uid": "child", "kind": "Job", "name": "child-name"}
    lineage.note("op-1", thing("child", "set"))
    assert lineage.unknown(pod, slot) == {"uid": "set", "kind": "Job", "name": "set-name"}
    assert not lineage.descends(pod, slot)
    lineage.note("op-1", thing("set", "slot"))
    assert lineage.descends(pod, slot)
    assert lineage.unknown(pod, slot) is None
    assert not lineage.descends(thing("other", "elsewhere"), slot)
    lineage.forget("op-1")
    assert not lineage.descends(pod, slot)


def test_owners_in_a_circle_lead_nowhere() -> None:
    lineage = Lineage()
    lineage.note("op-1", thing("a", "b"))
    lineage.note("op-1", thing("b", "a"))
    assert not lineage.descends(thing("pod", "a"), thing("slot", name="op-1"))
    assert lineage.unknown(thing("pod", "a"), thing("slot", name="op-1")) is None
