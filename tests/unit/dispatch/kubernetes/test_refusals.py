"""What this site does not give is refused before anything is written, with a code of its own."""

from typing import Any

import msgspec
import pytest

from landbridge_dispatch.dispatcher.pricing import hourly_cost
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes.manifests import job
from landbridge_dispatch.executors.kubernetes.resolution import problems_of, resolve
from landbridge_dispatch.executors.kubernetes.settings import KubernetesSettings
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError
from support.deciding import NOW, a_contract
from unit.dispatch.kubernetes.things import DIGEST, IMAGE, some_bindings, some_work

CASES: dict[str, tuple[dict[str, Any], RefusalCode]] = {
    "a project that is not accepted": ({"project": "elsewhere"}, RefusalCode.PROJECT),
    "a connection that is not bound": ({"inputs": {"x": {"connection": "none"}}}, RefusalCode.CONNECTION_MISSING),
    "an identity that is nobody here": ({"identity": "root"}, RefusalCode.IDENTITY),
    "an output on what is read-only": ({"outputs": {"x": {"connection": "events"}}}, RefusalCode.CONNECTION_READ_ONLY),
    "an output on what holds no files": (
        {"outputs": {"x": {"connection": "words"}}}, RefusalCode.CONNECTION_READ_ONLY),
    "a path that leaves its connection": (
        {"inputs": {"x": {"connection": "events", "path": "../other"}}}, RefusalCode.PATH),
    "a path with a line break": ({"inputs": {"x": {"connection": "events", "path": "a\nb"}}}, RefusalCode.PATH),
    "no image": ({"image": None}, RefusalCode.WORKLOAD),
    "no command": ({"command": []}, RefusalCode.COMMAND),
    "code that is not in the image": ({"source": {"connection": "events", "commit": "a"}}, RefusalCode.WORKLOAD),
    "an image of another registry": ({"image": IMAGE | {"registry": "events"}}, RefusalCode.IMAGE),
    "an image without a digest": ({"image": IMAGE | {"digest": "latest"}}, RefusalCode.IMAGE),
    "a class that is not reached": ({"resources": {"accelerator": {"class": "gpu"}}}, RefusalCode.CLASS),
    "too many outputs": (
        {"outputs": {f"o{n}": {"connection": "models"} for n in range(25)}}, RefusalCode.WORKLOAD),
    "too many replicas": ({"type": "distributed-job", "replicas": 1001}, RefusalCode.WORKLOAD),
    "a service without a port": ({"type": "service"}, RefusalCode.WORKLOAD),
    "an output in an object store that nothing here writes to": (
        {"outputs": {"x": {"connection": "store"}}}, RefusalCode.CONNECTION_UNAVAILABLE),
    "an output in an object store that is read-only": (
        {"outputs": {"x": {"connection": "tables"}}}, RefusalCode.CONNECTION_READ_ONLY),
    "a checkpoint without a place": ({"resume_from": "x/e1-1/sealed-1/manifest.json"}, RefusalCode.RESUME),
    "a checkpoint that is none": (
        {"resume_from": "x/e1-1", "checkpoints": {"connection": "checkpoints"}}, RefusalCode.RESUME),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_refused(case: str) -> None:
    fields, code = CASES[case]
    bindings, work = some_bindings(), some_work(**fields)
    with pytest.raises(RefusedError) as refused:
        job(bindings, work, resolve(bindings, work))
    assert refused.value.code == code
    assert "claim-" not in str(refused.value), "no physical name leaves the site"


def test_a_variant_is_chosen_by_class() -> None:
    other = "sha256:" + "cd" * 32
    image = IMAGE | {"variants": {"gpu": {"digest": other, "accelerator": "gpu"}}}
    bindings = some_bindings(classes={"gpu": {"resource": "nvidia.com/gpu"}})
    found = resolve(bindings, some_work(image=image, resources={"accelerator": {"class": "gpu"}}))
    assert found.image == f"registry.site/team/trainer/churn@{other}"
    assert resolve(bindings, some_work(image=image)).image.endswith(DIGEST)
    assert found.pull_secrets == ["pull-tools"]


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"namespace": "Lb_{project}"}, "namespace"),
        ({"site": "UPPER"}, "site"),
        ({"keeper": {"url": "somewhere"}}, "url"),
        ({"keeper": {"tokenLifetime": "1m"}}, "tokenLifetime"),
        ({"wrapper": {"image": "busybox:latest"}}, "sha256"),
        ({"classes": {"gpu": {"resource": "a", "deviceClass": "b"}}}, "one of resource"),
        ({"runAsUser": 0}, "another than root"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_a_section_that_cannot_be_used_says_which_field(section: dict[str, Any], told: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=told):
        msgspec.convert(section, KubernetesSettings)


def test_options_of_connections_are_read_before_anything_starts() -> None:
    bindings = some_bindings()
    assert problems_of(bindings.connections) == []
    broken = {"models": msgspec.structs.replace(bindings.connections["models"], options={"claim": "a", "secret": "b"})}
    [problem] = problems_of(broken)
    assert problem.startswith("connections.models.options: expected at most one")


def test_members_of_a_gang_cannot_seal_one_checkpoint_into_an_object_store() -> None:
    bindings = some_bindings(carrier={"image": f"registry.site/tools/python@{DIGEST}"})
    work = some_work(type="distributed-job", replicas=2, checkpoints={"connection": "store"})
    with pytest.raises(RefusedError, match="a volume of all of them") as refused:
        resolve(bindings, work)
    assert refused.value.code == RefusalCode.WORKLOAD


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("endpoint", "s3.site:8333"),
        ("endpoint", "http://key:secret@s3.site"),
        ("endpoint", "http://s3.site/?x=1"),
        ("bucket", "Shared"),
        ("bucket", "a/b"),
        ("region", "eu 1"),
        ("prefix", "../other"),
        ("prefix", "/other"),
    ],
)
def test_a_store_that_cannot_be_reached_safely_is_refused_with_the_bindings(field: str, value: str) -> None:
    s3 = {"endpoint": "http://s3.site:8333", "bucket": "shared", "secret": "keys", field: value}
    binding = msgspec.structs.replace(some_bindings().connections["store"], options={"s3": s3})
    [problem] = problems_of({"store": binding})
    assert f"s3.{field}" in problem


def test_the_class_that_was_chosen_is_the_one_that_is_reached_and_whose_image_runs() -> None:
    small, large = "sha256:" + "cd" * 32, "sha256:" + "ef" * 32
    classes = {"gpu-48gb": {"resource": "small.example/gpu"}, "gpu-80gb": {"deviceClass": "large.example"}}
    bindings = some_bindings(classes=classes)
    variants = {"small": {"digest": small, "accelerator": "gpu-48gb"}}
    asked = some_work(image=IMAGE | {"variants": variants}, resources={"accelerator": {"class": "gpu-48gb"}})
    chosen = msgspec.structs.replace(asked, view=asked.view.served_by("gpu-80gb"))
    found = resolve(bindings, chosen)
    assert found.reached is not None
    assert found.reached.device_class == "large.example"
    assert found.image.endswith(small), "what was built for the class that was asked for runs on one that is as good"
    assert '"gpu-80gb":"1"' in job(bindings, chosen, found)["metadata"]["annotations"][names.RECORD].replace(" ", "")
    variants["large"] = {"digest": large, "accelerator": "gpu-80gb"}
    asked = some_work(image=IMAGE | {"variants": variants}, resources={"accelerator": {"memory": "40Gi"}})
    chosen = msgspec.structs.replace(asked, view=asked.view.served_by("gpu-80gb"))
    assert resolve(bindings, chosen).image.endswith(large)
    with pytest.raises(RefusedError, match="class gpu-96gb is not reached here"):
        resolve(bindings, msgspec.structs.replace(asked, view=asked.view.served_by("gpu-96gb")))


def test_what_it_costs_follows_the_class_that_was_chosen() -> None:
    contract = a_contract(classes={"gpu-80gb": {"count": 4}}, cost={"perHour": {"gpu-80gb": 2.0}})
    asked = some_work(resources={"accelerator": {"class": "gpu-48gb", "count": 2}}).view
    assert hourly_cost(contract, asked, NOW) is None
    assert hourly_cost(contract, asked.served_by("gpu-80gb"), NOW) == 4.0
