"""Drafts of contracts: what nodes, devices, classes and quotas become."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from landbridge.cli.annotated import annotated_text
from landbridge.domain.discovering import Draft, Survey, draft_contract
from landbridge.domain.discovering.offers import nominal
from landbridge.domain.documents import Document, read_document

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.2-eks-1a2b"}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def a_node(name: str, *, ready: bool = True, taints: Any = (), labels: Any = (), **allocatable: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"taints": list(taints), "providerID": "aws:///eu-central-1a/i-1"},
        "status": {
            "allocatable": {"cpu": "15890m", "memory": "61Gi", "pods": "110", **allocatable},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "kernelVersion": "6.1.9", "bootID": "5f0a-77",
                "kubeletVersion": "v1.36.2", "containerRuntimeVersion": "containerd://2.1.4",
            },
        },
    }  # fmt: skip


def a_gpu_node(name: str, count: str = "8", **labels: str) -> dict[str, Any]:
    told = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/cuda.driver-version.full": "575.57.08",
        "topology.kubernetes.io/region": "eu-central-1",
        "topology.kubernetes.io/zone": "eu-central-1a",
    }
    return a_node(name, taints=[TAINT], labels={**told, **labels}, **dict[str, Any]({"nvidia.com/gpu": count}))


def drafted(**survey: Any) -> tuple[Draft, dict[str, Any]]:
    """The draft, which must be a valid contract, with its remarks and without."""
    draft = draft_contract(Survey(**{"version": VERSION, **survey}), "cluster-a")
    for text in (json.dumps(draft.document), "\n".join(annotated_text(draft.document, draft.remarks))):
        read = read_document(text.encode())
        assert isinstance(read, Document), read
        assert read.kind.name == "EnvironmentContract"
    spec: dict[str, Any] = draft.document["spec"]
    return draft, spec


def test_an_empty_cluster_has_a_draft() -> None:
    draft, spec = drafted()

    assert spec["runtime"] == {"executor": "kubernetes", "kubernetes": "1.36"}
    assert "classes" not in spec
    assert any(told.startswith("owner:") for told in draft.questions)


def test_plain_nodes_are_one_class_and_those_of_the_control_plane_none() -> None:
    control = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    nodes = (a_node("a"), a_node("b"), a_node("c", taints=[control]))

    draft, spec = drafted(nodes=nodes)

    assert spec["classes"] == {"cpu-general": {"cpu": "31", "memory": "122Gi"}}
    assert "2 ready nodes" in draft.remarks["spec.classes.cpu-general.cpu"]
    assert spec["runtime"]["architectures"] == ["amd64"]
    assert spec["runtime"]["versions"]["container-runtime"] == "containerd://2.1.4"


def test_what_is_not_ready_is_not_counted_but_told() -> None:
    draft, spec = drafted(nodes=(a_node("a", ready=False), a_node("b")))

    assert spec["classes"]["cpu-general"]["cpu"] == "15"
    assert "not counted, because not ready or cordoned: a" in draft.questions


def test_devices_of_a_plug_in_are_a_class_by_their_memory() -> None:
    _, spec = drafted(nodes=(a_gpu_node("a"), a_gpu_node("b", count="4"), a_node("c")))

    assert spec["classes"]["gpu-80gb"] == {
        "count": 12,
        "perNode": 4,
        "memory": "80Gi",
        "driver": ">=575.57.08",
        "interruptible": False,
        "product": "NVIDIA-H100-80GB-HBM3",
        "via": {
            "resource": "nvidia.com/gpu",
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}],
        },
    }
    assert spec["location"] == {"regions": ["eu-central-1"], "provider": "aws", "zones": ["eu-central-1a"]}


def test_devices_of_two_products_are_told_apart_by_their_label() -> None:
    other = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "23034"}

    _, spec = drafted(nodes=(a_gpu_node("a"), a_gpu_node("b", **other)))

    selectors = {name: offer["via"]["nodeSelector"] for name, offer in spec["classes"].items()}
    assert selectors == {
        "gpu-80gb": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        "gpu-24gb": {"nvidia.com/gpu.product": "NVIDIA-L4"},
    }


def test_slices_and_interruptible_devices_are_classes_of_their_own() -> None:
    spot = {"karpenter.sh/capacity-type": "spot"}
    sliced = a_node("b", **dict[str, Any]({"nvidia.com/mig-1g.10gb": "7"}))

    _, spec = drafted(nodes=(a_gpu_node("a", **spot), sliced))

    assert spec["classes"]["gpu-80gb-spot"]["interruptible"] is True
    assert spec["classes"]["gpu-slice-1g-10gb"]["partition"] == "1g.10gb"
    assert spec["classes"]["gpu-slice-1g-10gb"]["count"] == 7


def test_devices_that_are_published_for_claims_are_reached_by_their_class() -> None:
    device = {
        "name": "gpu-0",
        "attributes": {"productName": {"string": "NVIDIA B200"}, "driverVersion": {"version": "580.1.0"}},
        "capacity": {"memory": {"value": "183359Mi"}},
    }
    spec = {"driver": "gpu.nvidia.com", "nodeName": "a", "devices": [device, {**device, "name": "gpu-1"}]}
    expression = "device.driver == 'gpu.nvidia.com'"
    classes = (
        {"metadata": {"name": "mig"}, "spec": {"selectors": [{"cel": {"expression": "device.driver == 'other'"}}]}},
        {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}},
    )

    _, found = drafted(
        nodes=(a_gpu_node("a", count="2"),), device_classes=classes, resource_slices=({"metadata": {}, "spec": spec},)
    )

    [offer] = found["classes"].values()
    assert (offer["count"], offer["memory"], offer["product"]) == (2, "180Gi", "NVIDIA B200")
    assert offer["via"]["deviceClass"] == "gpu"


def test_what_is_no_accelerator_is_no_class() -> None:
    others: dict[str, Any] = {"rdma/hca": "8", "hugepages-2Mi": "0", "smarter-devices/fuse": "20"}

    _, spec = drafted(nodes=(a_node("a", **others),))

    assert list(spec["classes"]) == ["cpu-general"]


def test_storage_operators_quotas_and_the_namespace() -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    draft, spec = drafted(
        nodes=(a_gpu_node("a"),),
        groups=("apps", "jobset.x-k8s.io", "kueue.x-k8s.io", "kubeflow.org", "ray.io"),
        kinds=frozenset({"jobsets.jobset.x-k8s.io", "localqueues.kueue.x-k8s.io", "notebooks.kubeflow.org",
                         "rayjobs.ray.io"}),
        storage_classes=(
            {"metadata": {"name": "gp3", "annotations": default}, "parameters": {"encrypted": "true"}},
            {"metadata": {"name": "Local_Fast"}, "provisioner": "local"},
        ),
        namespace="work",
        namespace_object={"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
        network_policies=({"metadata": {}, "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}},),
        quotas=(
            {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "40", "requests.nvidia.com/gpu": "6"}}},
            {"metadata": {"name": "r"}, "spec": {"hard": {"cpu": "32500m", "count/jobs.batch": "20", "secrets": "3"}}},
        ),
        limit_ranges=({"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "8"}}]}},),
        runtime_classes=({"metadata": {"name": "nvidia"}},),
        unread={"nodes": "Forbidden"},
    )  # fmt: skip

    assert spec["storage"] == {
        "gp3": {"storageClass": "gp3", "encrypted": True},
        "local-fast": {"storageClass": "Local_Fast"},
    }
    assert spec["runtime"]["operators"] == ["jobset", "kuberay", "kueue"]
    assert spec["runtime"]["via"] == {"ray": {"operator": "kuberay"}}
    assert any(question.endswith("unless it names an operator: jobset") for question in draft.questions)
    assert spec["quotas"] == {"cpu": "32500m", "gpu-80gb": "6", "running": "20"}
    assert spec["boundaries"] == {
        "admission": {"podSecurity": "restricted"},
        "network": {"default": "deny"},
        "tenancy": {"namespace": "work"},
    }
    assert "LimitRange l: at most cpu 8 for a Container" in draft.questions
    assert "nodes could not be read (Forbidden); what depends on them is missing here" in draft.questions
    assert draft.remarks["spec.quotas.gpu-80gb"] == "requests.nvidia.com/gpu of ResourceQuota q"


@pytest.mark.parametrize(
    ("reported_mi", "sold_gib"),
    [
        (81559, 80),
        (40960, 40),
        (23034, 24),
        (15360, 16),
        (97871, 96),
        (143771, 141),
        (9856, 10),
        (46068, 48),
        (7000, 6),
    ],
)
def test_devices_count_as_they_are_sold(reported_mi: int, sold_gib: int) -> None:
    assert nominal(reported_mi << 20) == sold_gib << 30


_WORDS = st.text("abcXYZ09-_./é", max_size=20)
_THINGS = st.dictionaries(_WORDS, st.one_of(_WORDS, st.integers(-5, 5), st.none()), max_size=3)
_NODES = st.builds(
    lambda name, labels, taints, more: a_node(name, labels=labels, taints=taints, **more),
    _WORDS,
    st.dictionaries(st.sampled_from(["nvidia.com/gpu.memory", "nvidia.com/gpu.product", "x"]), _WORDS, max_size=3),
    st.lists(st.fixed_dictionaries({"key": _WORDS, "effect": st.just("NoSchedule")}), max_size=2),
    st.dictionaries(st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "cpu"]), _WORDS, max_size=2),
)


@settings(deadline=None, max_examples=60)
@given(nodes=st.lists(_NODES, max_size=4), names=st.lists(_WORDS.filter(bool), max_size=3, unique=True))
@example(nodes=[], names=["09", "0o7", "1:20"])
def test_whatever_a_cluster_says_the_draft_is_a_valid_contract(nodes: list[Any], names: list[str]) -> None:
    classes = tuple({"metadata": {"name": name}, "provisioner": name} for name in names)

    drafted(nodes=tuple(nodes), storage_classes=classes)
